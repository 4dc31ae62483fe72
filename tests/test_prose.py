"""Plain English in what people read: docs, errors, help and docstrings. CONTRIBUTING.md, section Writing, has the style."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
THING = (
    "example|text|word|line|row|label|quer(?:y|ie)|epoch|episode|class|cell|number|column|file|unit|object|value|marker|"
    "document|sentence|headline|post|review|task|vector|letter|step|string|piece|once"
)
UNIT = (
    "class|text|line|row|word|cell|epoch|run|process|second|seed|method|update|direction|episode|example|corpus|draw|"
    "category|group|data set|machine|round|post|step|number|file|page|task"
)
NUMBER = r"(?:\d(?:[\d,]*\d)?|\{\}|one|two|three|four|five|six|ten|twenty|hundred)"

# (pattern, what to write instead); a space matches a line break too
SLIPS = [
    (rf"\b(?:{THING})(?:s|es)? an? (?:{UNIT})\b", "'per': 'examples per class', 'one line per cell', 'texts per second'"),
    (rf"\b{NUMBER} an? (?:{UNIT})\b", "'per': '200 per class', '8,000 per second'"),
    (rf"\Aan? (?:{UNIT})\Z", "'per class', of a number"),
    (rf"\bfrom {NUMBER} (?:\w+ )?(?:an?|per) (?:{UNIT}) on\b", "'with at least one example per class'"),
    (
        rf"\b{NUMBER} (?:(?!with|for|and|or|than|of|in)\w+ ){{0,2}}at (?:least|most)\b",
        "'at least 1', 'at most 1,000 lines': the number comes last",
    ),
    (r"\b\w+s at (?:least|most)\b(?=[.,:;)]|$)", "'at most 40 epochs': the number comes last"),
    (r"\bat the least\b", "'at least'"),
    (
        r"\bbeside (?:what|those|its peers|that of|others?\b|the (?:paper|largest|heaviest|peers))",
        "'compared with' or 'next to'",
    ),
    (r"\bdo(?:es)? no work\b", "'must be at least 1'"),
    (r"\b[Mm]end(?:s|ed|ing)?\b", "'fix'"),
    (r"\b(?:do|does|did|done) (?:no )?harm\b", "'reduces accuracy', or say what breaks"),
    (r"\bThere (?:is (?:0|\{\})|are 0) ", "'Found 0 classes; at least 2 are needed'"),
    (r"\bthat (?:is not one|are not)\b(?=[.,:;)]|$)", "name it: 'the first invalid item'"),
    (r"\b[Hh]alves of characters\b", "'unpaired surrogates'"),
    (r"(?<!here\s)\bis no (?:number|URL|list|string|word|zip|object|path|class|label|text|character|file)\b", "'is not a …'"),
    (r"\b(?:that|which) (?:is|are) no (?!longer|more|less)\w+", "'that are not words'"),
    (r"\bit should be (?:an?|int|float|str|bool|one)\b|\bwhich should\b", "'it must be a list'"),
    (r"\bmake the model again\b", "'create the model again'"),
    (r"\b[Ll]eave (?:such|the|second|texts?|--?[\w-]+) (?:\w+ ){0,3}out\b", "'skip', 'remove' or 'ignore'"),
    (r"\b[Ll]eave (?:`\w+`|them|it|--?[\w-]+) out\b", "'remove `delimiter`'"),
    (r"\bwould obey\b", "'characters that control the terminal'"),
    (r"\bwhere (?:it|they|files|an? \w+) lies?\b", "'where it is', 'its folder'"),
    (r"\btold apart\b", "'distinguished'"),
    (r"\b[Tt]elling (?:words?|ones)\b", "'informative words'"),
    (r"\bunevenly (?:\w+ ){1,2}falls?\b|\bfalls? (?:un)?evenly\b", "'is spread unevenly'"),
    (r"\bweighs? (?:words|them|texts|examples|the same)\b", "'weights words', 'has the same weight'"),
    (r"\bvectors? of `\w+` numbers\b|\b[Nn]umbers of (?:a|its) vectors?\b", "'vectors of length `dim`'"),
    (r"\b[Ss]tands? (?:here|there|below|beside|once|in the place)\b", "'is', 'is shown' or 'replaces'"),
    (r"\bwhere a word stands\b|\bstands? from (?:the|each|its|head)\b", "'the position of a word relative to …'"),
    (r"\bfiles? (?:or folder )?at hand\b", "'local files'"),
    (r"\b[Ww]hoever\b", "'anyone who', 'a process that'"),
    (r"\bis at it\b", "'is running it'"),
    (r"\bto its end\b", "'to the end'"),
    (r"\bdifferences? to (?:the|another|frequency)\b", "'difference from'"),
    (r"\bgone on with\b", "'resumed'"),
    (r"\bgo(?:es)? on (?:where|with|from|at|to)\b", "'continues' or 'resumes'"),
    (r"\b(?:an?|interrupted|killed) (?:\w+ )*goes on\b", "'is resumed'"),
    (r"\b[Aa]new\b", "'again'"),
    (r"\bbut for\b", "'except for'"),
    (r"\b(?:for|of|to|by) who (?:does|do|look|has|is|read|sees?)s?\b", "'for anyone who'"),
    (r"\bchoose of\b", "'choose one of'"),
    (r"\bone's own\b", "'your own'"),
    (
        r"\b(?:names?|splits?|network|seed|reason|folder|filters|line) of (?:its|their|our) own\b",
        "'its own name', 'their own splits'",
    ),
    (r"\brightly\b", "'correctly'"),
    (r"\btoo modest\b", "'too low'"),
    (r"\b(?:is|are) (?:told|said)\b(?=[.,:;)]| in\b)", "'is reported'"),
    (r"\bpart in (?:an|the|this) (?:answer|sum|score)\b", "'contribution to the score'"),
    (r"\b(?:paper|code|other|data) ha(?:s|ve) not\b(?=[.,:;)]| is\b)", "'does not have'"),
    (r"\b[Ss]o many (?!\w+ that)", "'this many', or name the number"),
    (r"\b(?:numbers|several|names|them|sets),? with commas\b|\bcommas between\b|\bjoined by commas\b", "'separated by commas'"),
    (r"[,:;(]\s?also (?:for|of|those|by|where|when|if|what|an?|new|your|from|one|on)\b", "'including' or 'even'"),
    (r"\ba stranger\b", "'an untrusted source'"),
    (r"\bever after\b", "'from then on'"),
    (r"\bworth a trial\b", "'worth trying'"),
    (r"\b[Rr]ooms\b(?! are| have)", "'modules' or 'packages'"),
    (r"\b[Tt]he way of the\b", "'data flow'"),
    (r"\bin any company\b|\bof like length\b", "'whatever the other classes', 'of similar length'"),
    (
        r"\A(?:Of (?!the \{\}|the \w+ that|all|these)|In place of |Such as )",
        "name the thing: 'Seed for episodes', not 'Of episodes'",
    ),
    (r"\AWhat (?!to )[^?]*?\.(?=\n|\Z)", "start with a noun or a verb: 'The settings of a run', not 'What decides a run'"),
]
COMPILED = [(re.compile(pattern.replace(" ", r"\s+"), re.M), advice) for pattern, advice in SLIPS]

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "handful").rglob("*.md")])
MODULES = sorted((ROOT / "handful").rglob("*.py"))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _slips(text: str, place: str, line: int) -> Iterator[str]:
    for pattern, advice in COMPILED:
        for match in pattern.finditer(text):
            found = line + text.count("\n", 0, match.start())
            yield f"{place}:{found}: {' '.join(match.group().split())!r}: write {advice}."


def _without_quotations(text: str) -> str:
    """A page without block quotes and without the column `stumbles` of a table: both show prose as it should not be."""
    lines, stumbling = [], False
    for line in text.split("\n"):
        stumbling = line.startswith("|") and (stumbling or line.startswith("| stumbles |"))
        lines.append("" if line.startswith(">") else line.split("|", 2)[2] if stumbling else line)
    return "\n".join(lines)


def _strings(source: str) -> Iterator[tuple[int, str]]:
    """The line and the value of every string that has words in it; `{}` stands for what an f-string fills in."""
    nodes = list(ast.walk(ast.parse(source)))
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node}
    for node in nodes:
        if id(node) in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def _check(found: list[str]) -> None:
    assert not found, "\n" + "\n".join(found)


def _each(paths: Iterable[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=_name)


@_each(PAGES)
def test_pages_read_well(path: Path) -> None:
    _check(list(_slips(_without_quotations(path.read_text("utf-8")), _name(path), 1)))


@_each(MODULES)
def test_messages_docstrings_and_comments_read_well(path: Path) -> None:
    source = path.read_text("utf-8")
    texts = [*_strings(source), *_comments(source)]
    _check([slip for line, text in texts for slip in _slips(text, _name(path), line)])


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_links_of_pages_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize(
    ("text", "slips"),
    [
        ("One example a class is enough.", 1),
        ("One example per class is enough.", 0),
        ("It answers 8,000 texts a\nsecond.", 1),
        ("0 workers do no work: give 1 at least.", 2),
        ("--workers is 0: it must be at least 1.", 0),
        ("There is 0 class in the examples.", 1),
        ("Give each text a label, and each label a text to show.", 1),
        ("What decides a run.", 1),
        ("All settings of a run.", 0),
        ("There are so many texts that memory is short.", 0),
        ("Texts that are no words, which lie with so many others.", 2),
        ("There is no file x.csv: check the path.", 0),
        ("x.jsonl is jsonl, which has no delimiter: leave `delimiter` out.", 1),
        ("Data without what a terminal would obey.", 1),
        ("The known encoders, and where they lie.", 1),
    ],
)
def test_the_table_finds_slips(text: str, slips: int) -> None:
    assert len(list(_slips(text, "here", 1))) == slips


def test_quotations_are_skipped_and_lines_are_counted_right() -> None:
    table = "| stumbles | reads |\n|---|---|\n| a line a cell | a line a row |\n"
    page = f"# Title\n\n> One example a class.\n\n{table}\na text a line\n"
    found = list(_slips(_without_quotations(page), "page.md", 1))
    assert [slip.split(": ")[0] for slip in found] == ["page.md:7", "page.md:9"]
