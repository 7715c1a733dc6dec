"""Names: which characters every file format can store, and file names derived from names of recordings, annotators and datasets."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from ethobench.core.errors import EthobenchError

MAX_BYTES = 100
"""Maximum length of a name in UTF-8. File systems allow 255 bytes: two names, a number and a suffix. Chinese characters have three."""

_DIGEST_DIGITS = 10


def shorten(name: str, max_bytes: int = MAX_BYTES, *, digest_of: str = "") -> str:
    """Truncate a name that is too long for a file name, and append a digest, so that different names stay different.

    Parameters
    ----------
    name : str
    max_bytes : int
        Maximum length of the result in UTF-8. Shorter names are unchanged.
    digest_of : str
        Text to compute the digest from. Default: the name.

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
    """Convert any text to a file name without suffix: letters, digits, ``-`` and ``_``, at most `MAX_BYTES` bytes.

    Parameters
    ----------
    name : str
    keep_dots : bool
        Whether to keep dots inside the name.

    Examples
    --------
    >>> file_stem("../cage 3: 小鼠")
    'cage_3_小鼠'
    """
    safe = re.sub(r"[^\w.-]+" if keep_dots else r"[^\w-]+", "_", name).strip("._") or "recording"
    return shorten(safe, digest_of=name)


def file_stems(names: Iterable[str]) -> list[str]:
    """Convert texts to file names as `file_stem` does, all different even on file systems that ignore case or Unicode composition.

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
        while normalize_file_name(stem) in used:
            stem, number = f"{base}_{number}", number + 1
        used.add(normalize_file_name(stem))
        stems.append(stem)
    return stems


def normalize_file_name(name: str) -> str:
    """Return the same text for names that some file systems treat as the same file."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


# Control characters except line feed and tab, lone surrogates, line and paragraph separators, and byte order marks. Files that contain them
# are read differently than they were written, or not at all.
UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def check_name(name: str, kind: str) -> None:
    r"""Raise an error for a name that some file formats cannot store.

    Parameters
    ----------
    name : str
        Name of a behavior, subject, annotator or recording.
    kind : str
        What the name is of, for the message.

    Raises
    ------
    EthobenchError
        For control characters, line breaks and tabs, lone surrogates, and leading or trailing spaces.

    Examples
    --------
    >>> check_name("nose poke", "behavior")
    >>> check_name("nose\rpoke", "behavior")
    Traceback (most recent call last):
    ...
    ethobench.core.errors.EthobenchError: the behavior 'nose\rpoke' has a control character ('\r'), which files cannot store; change it
    """
    check_text(name, kind)
    for character in "\n\t":
        if character in name:
            raise EthobenchError(f"the {kind} {name!r} has a line break or a tab, which files cannot store in a name; change it")
    if name != name.strip():
        raise EthobenchError(f"the {kind} {name!r} has a leading or trailing space, which files cannot store; change it")


def check_text(text: str, kind: str) -> None:
    """Raise an error for text (a comment, a modifier) with characters that some file formats cannot store."""
    match = UNWRITABLE.search(text)
    if match:
        excerpt = text if len(text) <= 60 else f"{text[:60]}..."
        if "\ud800" <= match[0] <= "\udfff":
            raise EthobenchError(f"the {kind} {excerpt!r} has a lone surrogate ({match[0]!r}), which files cannot store; change it")
        raise EthobenchError(f"the {kind} {excerpt!r} has a control character ({match[0]!r}), which files cannot store; change it")


def repair_text(text: str) -> str:
    r"""Replace characters that files cannot store: line breaks become line feeds, others the replacement character.

    Examples
    --------
    >>> repair_text("first\r\nsecond")
    'first\nsecond'
    """
    return UNWRITABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff"))


def repair_name(name: str) -> str:
    r"""Return a name on one line, without leading and trailing spaces and characters that files cannot store.

    Examples
    --------
    >>> repair_name(" nose\tpoke ")
    'nose poke'
    """
    return re.sub(r"\s*[\n\t]\s*", " ", repair_text(name).strip())
