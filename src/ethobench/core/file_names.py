"""File names made from the names of recordings, annotators and datasets: harmless, short enough for every file system, and different."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

MAX_BYTES = 100
"""Length of a name in UTF-8. File systems hold 255 bytes, enough for two names, a number and a suffix; a Chinese character has three."""

_DIGEST_DIGITS = 10


def shorten(name: str, max_bytes: int = MAX_BYTES, *, digest_of: str = "") -> str:
    """Cut a name that is too long for a file name, and end it with a digest, so that different names stay different.

    Parameters
    ----------
    name : str
    max_bytes : int
        Of the result in UTF-8. Shorter names stay as they are.
    digest_of : str
        What the digest is computed from; the whole name unless given.

    Examples
    --------
    >>> shorten("mouse 1")
    'mouse 1'
    >>> shorten("小鼠" * 30, 40)
    '小鼠小鼠小鼠小鼠小_1f2d222f5a'
    """
    content = name.encode("utf-8", "surrogatepass")
    if len(content) <= max_bytes:
        return name
    digest = hashlib.blake2b((digest_of or name).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_DIGITS]
    return f"{content[: max_bytes - len(digest) - 1].decode(errors='ignore')}_{digest}"


def file_stem(name: str, *, keep_dots: bool = False) -> str:
    """Make a file name without suffix from any text: letters, digits, ``-`` and ``_``, at most `MAX_BYTES` bytes.

    Parameters
    ----------
    name : str
    keep_dots : bool
        Leave dots inside the name.

    Examples
    --------
    >>> file_stem("../cage 3: 小鼠")
    'cage_3_小鼠'
    """
    harmless = re.sub(r"[^\w.-]+" if keep_dots else r"[^\w-]+", "_", name).strip("._") or "recording"
    return shorten(harmless, digest_of=name)


def file_stems(names: Iterable[str]) -> list[str]:
    """Make a file name from each text as `file_stem` does, all different, also where case or composed letters make no difference.

    Examples
    --------
    >>> file_stems(["day/1", "day 1", "Day_1"])
    ['day_1', 'day_1_2', 'Day_1_3']
    """
    stems: list[str] = []
    used: set[str] = set()
    for name in names:
        base = stem = file_stem(name, keep_dots=True)
        number = 2
        while fold(stem) in used:
            stem, number = f"{base}_{number}", number + 1
        used.add(fold(stem))
        stems.append(stem)
    return stems


def fold(name: str) -> str:
    """Return the same text for names that some file system takes for the same file."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
