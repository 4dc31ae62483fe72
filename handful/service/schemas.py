"""Bodies of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from .store.names import Mark, Role, TextState


def _sound(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a text must not have zero bytes")
    return text


Plain = Annotated[str, AfterValidator(_sound)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_sound)]
Note = Annotated[str, StringConstraints(max_length=10_000), AfterValidator(_sound)]
ProjectId = Annotated[str, StringConstraints(pattern="^[0-9a-f]{24}$")]
ActionId = Annotated[str, StringConstraints(min_length=8, max_length=100, pattern=r"^[\w.:-]+$")]
Number = Annotated[int, Field(ge=0, lt=2**31)]


class Request(BaseModel):
    """A body of a request: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Act(Request):
    """A body with the id of an action: the same id sent again changes nothing."""

    id: ActionId = Field(
        default_factory=lambda: uuid4().hex, description="Made by the client; sent again, nothing is done twice."
    )


class ErrorDetail(BaseModel):
    """One invalid field."""

    where: str
    message: str


class ErrorFacts(BaseModel):
    """An error: a code for programs and a sentence for people."""

    code: str
    message: str
    details: list[ErrorDetail] | None = None


class ErrorBody(BaseModel):
    """The body of every answer that is an error."""

    error: ErrorFacts


# Accounts


class SessionRequest(Request):
    """A key or token that a browser keeps as a cookie."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class Account(BaseModel):
    """Who is asking, and what is allowed."""

    account: str
    annotator: str
    role: Role
    limits: dict[str, int]
    version: str


class MemberRequest(Request):
    """The role of an account in a project."""

    role: Role


class Member(BaseModel):
    """An account that a project is shared with."""

    account: str
    role: Role


# Projects and classes


class ClassRequest(Request):
    """A class: its name, a note for people, and words for the model in place of the name."""

    name: Name
    note: Note = ""
    words: Note = ""


class NewClass(ClassRequest, Act):
    """A class to add."""


class ClassEdit(Act):
    """Fields of a class to change."""

    name: Name | None = None
    note: Note | None = None
    words: Note | None = None
    position: Annotated[int, Field(ge=0, lt=10_000)] | None = None


class ClassMerge(Act):
    """The class that gets the labels of another."""

    into: Number


class ProjectRequest(Request):
    """A project to create."""

    name: Name
    encoder: Annotated[str, StringConstraints(max_length=100)] = "words"
    language: Annotated[str, StringConstraints(max_length=10)] = "en"
    use_class_names: bool = Field(True, description="Whether the names of classes count as examples.")
    classes: Annotated[list[ClassRequest], Field(max_length=1_000)] = Field(default_factory=list)


class ProjectEdit(Request):
    """Settings of a project to change."""

    name: Name | None = None
    encoder: Annotated[str, StringConstraints(max_length=100)] | None = None
    language: Annotated[str, StringConstraints(max_length=10)] | None = None
    use_class_names: bool | None = None


class ClassFacts(BaseModel):
    """A class and how many texts have it."""

    number: int
    name: str
    note: str
    words: str
    position: int
    texts: int


class AnnotatorFacts(BaseModel):
    """A person and how many labels they gave."""

    annotator: str
    labels: int
    last: float


class ProjectSummary(BaseModel):
    """A project in a list."""

    id: str
    name: str
    owner: str
    role: Role
    encoder: str
    language: str
    use_class_names: bool
    created: float
    version: int = Field(description="Changes with every label and every change of a class.")
    texts: int = Field(description="The number below which texts are there.")
    importing: bool


class ProjectFacts(ProjectSummary):
    """A project with its classes and counts."""

    classes: list[ClassFacts]
    states: dict[str, int]
    annotators: list[AnnotatorFacts]
    test_set: dict[str, int]


# Texts and labels


class TextRequest(Request):
    """A text to add, with a label if it has one."""

    text: Plain
    label: Name | None = Field(None, description="The name of a class; a new one is added.")
    extra: dict[str, Any] | None = None


class TextsRequest(Request):
    """Texts to add."""

    texts: Annotated[list[TextRequest], Field(min_length=1)]


class LabelFacts(BaseModel):
    """A label of one person."""

    annotator: str
    mark: Mark
    label: int | None = Field(serialization_alias="class")
    final: bool
    made: float


class Prediction(BaseModel):
    """The most probable class of a text."""

    label: int = Field(serialization_alias="class")
    probability: float
    margin: float = Field(description="How much more probable it is than the next class.")


class TextFacts(BaseModel):
    """A text as it stands."""

    id: int
    text: str
    state: TextState
    label: int | None = Field(serialization_alias="class", description="On which the labels agree, or that of the majority.")
    test: bool
    extra: dict[str, Any] | None
    labels: list[LabelFacts]
    prediction: Prediction | None


class TextPage(BaseModel):
    """Texts of one page of a table."""

    total: int
    texts: list[TextFacts]
    prediction_version: int | None = Field(description="The project's version that predictions belong to.")


class LabelRequest(Act):
    """A label for one text or many: a class, a mark, or `clear` to take it away."""

    texts: Annotated[list[Number], Field(min_length=1)]
    mark: Literal["class", "skip", "unsure", "none", "clear"] = "class"
    label: Number | None = Field(None, validation_alias="class")
    final: bool = Field(False, description="Whether it settles a disagreement.")


class ActionFacts(BaseModel):
    """An action that is stored and durable."""

    action: int
    repeated: bool = Field(description="Whether it was stored before, under the same id.")
    changed: int
    version: int


class ClassAdded(ActionFacts):
    """A class that was added."""

    number: int


class DismissalRequest(Request):
    """A probable mistake that is none."""

    kind: Literal["mistakes", "contradictions", "duplicates"]
    item: Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_sound)]


class TestSetRequest(Request):
    """How many texts to draw at random."""

    size: Annotated[int, Field(ge=1, le=10_000)]


# Predictions


class PredictRequest(Request):
    """Texts to classify."""

    texts: Annotated[list[Plain], Field(min_length=1)]
    top_k: Annotated[int, Field(ge=1, le=1_000)] | None = None
    reject_below: Annotated[float, Field(ge=0, le=1)] | None = None


class ExplainRequest(Request):
    """A text, or the number of a text of the project."""

    text: Plain | None = None
    id: Number | None = None


class JobFacts(BaseModel):
    """A job and its progress."""

    id: str
    project: str | None
    kind: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    done: int
    total: int | None
    message: str
    created: float
    result: dict[str, Any]
