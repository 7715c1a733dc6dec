"""Phrases that depend on a number or a list, in one place, so that no other code builds sentences from fragments.

A translation replaces these functions and the texts that they receive: `plural` has both forms of a complete phrase, and `join_names` is
the only function that knows how a list is written.
"""

from __future__ import annotations

from collections.abc import Iterable

UNITS = {
    "annotators": ("{n:,} annotator", "{n:,} annotators"),
    "behaviors": ("{n:,} behavior", "{n:,} behaviors"),
    "datasets": ("{n:,} dataset", "{n:,} datasets"),
    "individuals": ("{n:,} individual", "{n:,} individuals"),
    "labs": ("{n:,} lab", "{n:,} labs"),
    "models": ("{n:,} model", "{n:,} models"),
    "recordings": ("{n:,} recording", "{n:,} recordings"),
}
"""What is counted, and both forms of a number of it."""


def plural(n: int, one: str, other: str, **values: object) -> str:
    """Return the form of a phrase for a number.

    Parameters
    ----------
    n : int
        The number, ``{n}`` in the phrase; ``{n:,}`` has separators of thousands.
    one, other : str
        The phrase for one and for any other number.
    **values : object
        What other braces of the phrase contain.

    Examples
    --------
    >>> plural(1, "{n} bout of {name} is short", "{n:,} bouts of {name} are short", name="groom")
    '1 bout of groom is short'
    >>> plural(1200, "{n} bout", "{n:,} bouts")
    '1,200 bouts'
    """
    return (one if n == 1 else other).format(n=n, **values)


def count_units(n: int, unit: str) -> str:
    """Return a number of recordings, individuals or what else is counted.

    Examples
    --------
    >>> count_units(1, "recordings"), count_units(12, "labs")
    ('1 recording', '12 labs')
    """
    return plural(n, *UNITS.get(unit, (f"{{n:,}} {unit}",) * 2))


def join_names(names: Iterable[object], conjunction: str = "and", *, most: int | None = None) -> str:
    """Write names as a list.

    Parameters
    ----------
    names : iterable of object
    conjunction : {"and", "or", ""}
        What stands before the last name; without it, all names are separated by commas.
    most : int, optional
        How many names to write; of the others, only the number.

    Examples
    --------
    >>> join_names(["torch", "safetensors"]), join_names("abc", "or"), join_names("abc", "")
    ('torch and safetensors', 'a, b or c', 'a, b, c')
    >>> join_names("abcdefg", "", most=5)
    'a, b, c, d, e and 2 more'
    """
    texts = [str(name) for name in names]
    if most is not None and len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    if not conjunction or len(texts) < 2:
        return ", ".join(texts)
    return f"{', '.join(texts[:-1])} {conjunction} {texts[-1]}"
