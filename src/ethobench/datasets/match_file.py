"""Matches that the user states: a table of names that belong together, where the names of files or recordings differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import TypeAlias

from ethobench.core.errors import FormatError, MismatchError, Note, NotFoundError
from ethobench.core.messages import Message, Option
from ethobench.core.wording import join_names
from ethobench.datasets.loose_files import Item, recording_name
from ethobench.formats.tables import read_table

Match: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]] | str | Path
"""Names that belong together: name to name, pairs of names, or a CSV file with the columns ``left`` and ``right``."""

SIDES = ("left", "right")
RULE = "match file"
MAX_NAMES = 5  # names that a message lists


def read_match(match: Match) -> list[tuple[str, str]]:
    r"""Return pairs of names that belong together.

    Parameters
    ----------
    match : mapping, pairs, or path
        A file is a CSV table (also XLSX) with the columns ``left`` and ``right``; others are ignored.

    Raises
    ------
    FormatError
        If the file has no such columns, or a name is missing.

    Examples
    --------
    >>> _ = (folder / "match.csv").write_text("left,right\nm1_anna,mouse 1\n")
    >>> read_match(folder / "match.csv")
    [('m1_anna', 'mouse 1')]
    """
    if isinstance(match, Mapping):
        return [(str(first), str(second)) for first, second in match.items()]
    if not isinstance(match, (str, Path)):
        return [(str(first), str(second)) for first, second in match]
    path = Path(match)
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file; it is a CSV table with the columns left and right")
    table = read_table(path)
    header = [name.strip().lower() for name in table.header]
    missing = [name for name in SIDES if name not in header]
    if missing:
        raise FormatError(path, f"no column {join_names(missing)}; expected the columns left and right, got {', '.join(table.header)}")
    pairs = []
    for cells, line in zip(table.rows, table.row_numbers, strict=True):
        first, second = (cells[header.index(name)].strip() for name in SIDES)
        if not (first and second):
            raise FormatError(path, "a name is missing", f"row {line}")
        pairs.append((first, second))
    if not pairs:
        raise FormatError(path, "no names below the header")
    return pairs


def apply_match(items: Sequence[Item], sources: Sequence[Path], pairs: Sequence[tuple[str, str]], notes: list[Note]) -> None:
    """Mark items that the user matched: those of one recording get the same `Item.match_key`, and the name on the right.

    With two sources, a name on the left is looked up in the first and a name on the right in the second; where it is not there, and with
    more or fewer sources, in all of them.

    Raises
    ------
    NotFoundError
        If no file or recording has a name; lists similar names.
    MismatchError
        If a name is matched twice, or with itself.
    """
    indexes = [_index(items, sources, side if len(sources) == 2 else None) for side in range(2)]
    everywhere = _index(items, sources, None)
    unknown = [(name, side) for pair in pairs for side, name in enumerate(pair) if name not in indexes[side] and name not in everywhere]
    if unknown:
        raise NotFoundError(_unknown_names(unknown, everywhere, list(dict.fromkeys(item.name for item in items))))
    _check_duplicates(pairs, one_to_one=len(sources) == 2)
    for first, second in pairs:
        matched = [indexes[side].get(name) or everywhere[name] for side, name in enumerate((first, second))]
        if any(one is other for one in matched[0] for other in matched[1]):
            raise MismatchError(f"{first!r} and {second!r} are the same recording already; the names to match must be of two")
        key, name = id(matched[1][0]), matched[1][0].name
        for item in (*matched[0], *matched[1]):
            if item.match_key not in (None, key):
                raise MismatchError(f"{item} is matched twice ({first!r} with {second!r}, and before with {item.name!r})")
            item.match_key, item.matched_by = key, RULE
        for item in matched[0]:
            item.name = name
    notes.append(Note(f"{len(pairs)} recordings are matched as stated", code="matched-as-stated"))


def _index(items: Iterable[Item], sources: Sequence[Path], source: int | None) -> dict[str, list[Item]]:
    """Return items by all names that a user may know them by: of the recording, of the entry, of the file, and its path."""
    index: dict[str, list[Item]] = {}
    per_file = Counter(item.path for item in items)
    for item in items:
        if source is not None and item.source != source:
            continue
        names = {item.name, *([item.recording.id] if item.recording is not None and item.named_inside else [])}
        if per_file[item.path] == 1 and not item.of_dataset:
            root = sources[item.source]
            inside = [item.path.relative_to(root).as_posix()] if root.is_dir() and item.path.is_relative_to(root) else []
            names |= {recording_name(item.path), item.path.name, item.path.as_posix(), str(item.path), *inside}
        for name in names:
            index.setdefault(name, []).append(item)
    return index


def _check_duplicates(pairs: Sequence[tuple[str, str]], *, one_to_one: bool) -> None:
    for side in range(2) if one_to_one else range(1):
        counts = Counter(pair[side] for pair in pairs)
        duplicates = [name for name, count in counts.items() if count > 1]
        if duplicates:
            raise MismatchError(f"duplicate names in the column {SIDES[side]} of the match: {', '.join(duplicates[:MAX_NAMES])}")


def _unknown_names(unknown: Sequence[tuple[str, int]], names: Iterable[str], available: Sequence[str]) -> str:
    names, texts = list(names), []
    for name, side in unknown:
        similar = get_close_matches(name, names, n=1)
        texts.append(f"{name!r} ({SIDES[side]}{f'; did you mean {similar[0]!r}?' if similar else ''})")
    return f"the match names what is not among the files: {list_names(texts)}. Available: {list_names(available)}"


def list_names(names: Sequence[str]) -> str:
    """List the first names, and how many more there are.

    Examples
    --------
    >>> list_names(["a", "b", "c", "d", "e", "f", "g"])
    'a, b, c, d, e and 2 more'
    """
    return join_names(names, "", most=MAX_NAMES)


def describe_unmatched(sides: Sequence[tuple[object, Sequence[str]]], *, entries: bool = False) -> str:
    """Describe names that could not be matched on two sides, and how to match them.

    Parameters
    ----------
    sides : sequence of (path, names)
    entries : bool
        Whether to suggest the choice of an entry where one side has several recordings for each of the other.

    Examples
    --------
    >>> print(describe_unmatched([("pred", ["m1_run2"]), ("truth", ["m1", "m2"])]))
    only in pred: m1_run2; only in truth: m1, m2.
    If they are the same recordings under other names, list the pairs in a CSV file and pass it with match=:
      left,right
      m1_run2,m1
    >>> print(describe_unmatched([("pred", ["m1"]), ("truth", ["m1/S1", "m1/S2"])], entries=True).splitlines()[1])
    To compare with one of several observations or streams, choose it with entry='S1'.
    """
    listed = "; ".join(f"only in {path}: {list_names(names)}" for path, names in sides if names)
    examples = [list(names) for _, names in sides if names]
    if len(examples) < 2:
        return listed
    entry = _entry_to_choose(*examples) if entries else ""
    choice = ("To compare with one of several observations or streams, choose it with ", Option("entry", entry), ".\n") if entry else ()
    pairs = ((first, second) for first in examples[0][:50] for second in examples[1][:50])
    first, second = max(pairs, key=lambda pair: SequenceMatcher(None, *pair).ratio())
    quoted = [f'"{name}"' if "," in name else name for name in (first, second)]
    advice = "If they are the same recordings under other names, list the pairs in a CSV file and pass it with "
    return Message(f"{listed}.\n", *choice, advice, Option("match"), f":\n  left,right\n  {','.join(quoted)}")


def _entry_to_choose(first: Sequence[str], second: Sequence[str]) -> str:
    """Return an entry of the side with more recordings: the part after the other side's name, or a name if the other side has only one."""
    few, many = sorted((first, second), key=len)
    streams = [name.removeprefix(f"{prefix}/") for prefix in few for name in many if name.startswith(f"{prefix}/")]
    return next(iter(streams), many[0] if len(few) == 1 < len(many) else "")
