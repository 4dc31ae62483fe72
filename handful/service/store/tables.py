"""The tables of the store.

A text is known by its number in its project, and so is a class. A text is there once its number is below `projects.visible`:
an import writes beyond that number in small steps and becomes visible by one update at the end.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()
NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only an INTEGER


def _project() -> Column[str]:
    return Column("project", String(32), ForeignKey("projects.id", ondelete="CASCADE"), nullable=False)


KEYS = Table(
    "keys",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("account", String(200), nullable=False),
    Column("role", String(10), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)

PROJECTS = Table(
    "projects",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("owner", String(200), nullable=False, index=True),
    Column("name", String(200), nullable=False),
    Column("encoder", String(100), nullable=False),
    Column("language", String(10), nullable=False),
    Column("use_class_names", Boolean, nullable=False),
    Column("created", Float, nullable=False),
    Column("ready", Boolean, nullable=False),  # False while it is being restored or deleted
    Column("version", Integer, nullable=False),  # of what a model learns from
    Column("visible", Integer, nullable=False),  # number below which texts are there
    Column("import_job", String(32)),  # the job that writes texts beyond that number
)

MEMBERS = Table(
    "members",
    METADATA,
    _project(),
    Column("account", String(200), nullable=False),
    Column("role", String(10), nullable=False),
    PrimaryKeyConstraint("project", "account"),
)

CLASSES = Table(
    "classes",
    METADATA,
    _project(),
    Column("number", Integer, nullable=False),
    Column("name", String(200), nullable=False),
    Column("note", Text, nullable=False),
    Column("words", Text, nullable=False),  # that stand for the class in the model; empty: those of its name
    Column("position", Integer, nullable=False),
    Column("state", String(10), nullable=False),  # live, pending (an import is not finished) or deleted
    PrimaryKeyConstraint("project", "number"),
)

TEXTS = Table(
    "texts",
    METADATA,
    _project(),
    Column("number", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("folded", Text, nullable=False),  # for searching, in lower case with single spaces
    Column("digest", BigInteger, nullable=False),  # of the words alone: equal for texts that differ in case or punctuation
    Column("extra", Text),  # other columns of the imported file, as JSON
    Column("state", String(10), nullable=False),
    Column("label", Integer),  # on which its labels agree
    Column("test", Boolean, nullable=False),  # in the test set: no model learns from it
    PrimaryKeyConstraint("project", "number"),
    Index("texts_by_state", "project", "state", "label", "number"),  # with the number, so that counting reads no text
    Index("texts_by_test", "project", "test", "state", "number"),
    Index("texts_by_digest", "project", "digest"),
)

LABELS = Table(
    "labels",
    METADATA,
    _project(),
    Column("text", Integer, nullable=False),
    Column("annotator", String(200), nullable=False),
    Column("mark", String(10), nullable=False),  # class, skip, unsure or none
    Column("label", Integer),
    Column("final", Boolean, nullable=False),  # settles a disagreement
    Column("made", Float, nullable=False),
    PrimaryKeyConstraint("project", "text", "annotator"),
    Index("labels_by_class", "project", "label"),
    Index("labels_by_time", "project", "made"),
)

ACTIONS = Table(
    "actions",
    METADATA,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    _project(),
    Column("client", String(100), nullable=False),  # given by the client: an action that is sent again is not done twice
    Column("annotator", String(200), nullable=False),
    Column("kind", String(20), nullable=False),  # label, class, undo or redo
    Column("detail", Text, nullable=False),  # JSON
    Column("made", Float, nullable=False),
    Column("state", String(10), nullable=False),  # done, undone or dropped (undone, and something else was done since)
    UniqueConstraint("project", "client"),
    Index("actions_by_annotator", "project", "annotator", "id"),
)

CHANGES = Table(
    "changes",
    METADATA,
    Column("action", NUMBER, ForeignKey("actions.id", ondelete="CASCADE"), nullable=False),
    Column("text", Integer, nullable=False),
    Column("annotator", String(200), nullable=False),
    Column("mark_before", String(10)),
    Column("label_before", Integer),
    Column("final_before", Boolean),
    Column("mark_after", String(10)),
    Column("label_after", Integer),
    Column("final_after", Boolean),
    PrimaryKeyConstraint("action", "text", "annotator"),
)

DISMISSALS = Table(
    "dismissals",
    METADATA,
    _project(),
    Column("kind", String(20), nullable=False),
    Column("item", String(100), nullable=False),
    Column("annotator", String(200), nullable=False),
    Column("made", Float, nullable=False),
    PrimaryKeyConstraint("project", "kind", "item"),
)

JOBS = Table(
    "jobs",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("project", String(32), ForeignKey("projects.id", ondelete="CASCADE"), index=True),
    Column("account", String(200), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("state", String(10), nullable=False),  # waiting, running, done, failed or cancelled
    Column("done", BigInteger, nullable=False),
    Column("total", BigInteger),
    Column("message", Text, nullable=False),
    Column("result", Text, nullable=False),  # JSON
    Column("cancel", Boolean, nullable=False),
    Column("server", String(32), nullable=False),  # the process that runs it
    Column("seen", Float, nullable=False),  # when that process last said that it is alive
    Column("created", Float, nullable=False),
)
