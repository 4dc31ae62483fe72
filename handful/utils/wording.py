"""Grammar of counts and lists in messages."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, thing: str) -> str:
    """A number and a noun, in the plural if needed.

    >>> counted(1, "text"), counted(5, "text")
    ('1 text', '5 texts')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names joined as in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b"], "or"), listed(["a"])
    ('a, b and c', 'a or b', 'a')
    """
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
