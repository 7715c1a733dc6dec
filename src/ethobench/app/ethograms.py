"""The ethogram of a session: the behaviors that are labeled, with keys, colors, groups and earlier names.

It is saved as ``ethogram.csv`` in the folder of corrections, in the layout of the ``ethogram.csv`` of a study with three more columns
(``group``, ``color``, ``hidden``); the user's own ``ethogram.csv`` is never changed. The column ``alias`` lists the earlier names of a
behavior. One atomic write of this file is therefore enough to rename or merge behaviors everywhere: files that still contain an earlier
name are read with the new one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, Behavior, Ethogram, Prediction
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.files import atomic_path
from ethobench.datasets.manifest_tables import TRUE, read_ethogram
from ethobench.formats.tables import read_table, write_table

COLUMNS = ("behavior", "key", "definition", "point", "background", "group", "color", "hidden", "alias")
MAX_BEHAVIORS = 500
MAX_LENGTHS = {"name": 100, "definition": 2000, "group": 60}
_COLOR = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True)
class Entry:
    """A behavior of the session.

    Attributes
    ----------
    behavior : Behavior
    background : bool
        Whether it means "none of the others".
    group : str
        Behaviors of one group exclude each other; those without a group overlap with all others.
    color : str
        ``#rrggbb``; empty for a color of the palette.
    hidden : bool
        Whether the page offers it for labeling. Behaviors of the user's files cannot be deleted, only hidden.
    aliases : tuple of str
        Earlier names, and names of behaviors that were merged into this one.
    """

    behavior: Behavior
    background: bool = False
    group: str = ""
    color: str = ""
    hidden: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the behavior."""
        return self.behavior.name

    def to_row(self) -> list[str]:
        """Return the cells of this behavior in ``ethogram.csv``."""
        b, yes = self.behavior, {True: "yes", False: ""}
        flags = [yes[b.point], yes[self.background], self.group, self.color, yes[self.hidden]]
        return [b.name, b.key, b.definition, *flags, "; ".join(self.aliases)]


def make_ethogram(entries: Iterable[Entry]) -> Ethogram:
    """Return the behaviors as an ethogram."""
    entries = tuple(entries)
    return Ethogram([e.behavior for e in entries], next((e.name for e in entries if e.background), None))


def aliases_of(entries: Iterable[Entry]) -> dict[str, str]:
    """Return earlier names and the names that replace them."""
    return {alias: entry.name for entry in entries for alias in entry.aliases}


def entries_of(ethogram: Ethogram) -> tuple[Entry, ...]:
    """Return the behaviors of an ethogram as entries."""
    return tuple(Entry(behavior, background=code == ethogram.background) for code, behavior in enumerate(ethogram))


def read_entries(path: Path) -> tuple[Entry, ...]:
    """Read the ``ethogram.csv`` of a session, or of a study.

    Raises
    ------
    FormatError
        If it is not a valid ethogram.
    """
    ethogram, aliases = read_ethogram(path, _entry_names(path))
    if ethogram is None:
        raise FormatError(path, "no such file")
    table = read_table(path)
    header = [name.strip().lower() for name in table.header]
    rows: dict[str, dict[str, str]] = {}
    for cells in table.rows:
        row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        rows.setdefault(row["behavior"], row)
    return tuple(
        replace(
            entry,
            group=rows[entry.name].get("group", ""),
            color=color if _COLOR.fullmatch(color := rows[entry.name].get("color", "").lower()) else "",
            hidden=rows[entry.name].get("hidden", "").lower() in TRUE,
            aliases=tuple(alias for alias, name in aliases.items() if name == entry.name),
        )
        for entry in entries_of(ethogram)
    )


def _entry_names(path: Path) -> set[str]:
    """Return the names in the column for channels of files, so that no behavior is skipped."""
    if not path.is_file():
        return set()
    table = read_table(path)
    columns = [i for i, name in enumerate(table.header) if name.strip().lower() in ("entry", "channel")]
    return {row[i].strip() for row in table.rows for i in columns}


def write_entries(path: Path, entries: Iterable[Entry], *, overwrite: bool) -> None:
    """Write the ``ethogram.csv`` of a session atomically."""
    with atomic_path(path, overwrite=overwrite) as temporary:
        write_table(temporary, COLUMNS, [entry.to_row() for entry in entries])


@dataclass(frozen=True)
class EthogramChange:
    """A change of the session's ethogram.

    Attributes
    ----------
    entries : tuple of Entry
        The new behaviors.
    renames : dict of str to str
        Old names to new names, where they differ; several old names with one new name are merged.
    deleted : tuple of str
        Old names of behaviors whose bouts are deleted.
    merges : bool
        Whether behaviors are merged.
    """

    entries: tuple[Entry, ...]
    renames: Mapping[str, str] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    merges: bool = False

    def affects(self, annotation: Annotation) -> bool:
        """Whether the file of an annotation contains names that the change renames or deletes."""
        return any(name in annotation.ethogram for name in (*self.renames, *self.deleted))

    def apply(self, annotation: Annotation, ethogram: Ethogram) -> Annotation:
        """Delete and rename the bouts of an annotation, and use an ethogram. Touching bouts of merged behaviors are joined."""
        deleted = [annotation.ethogram.code(name) for name in self.deleted if name in annotation.ethogram]
        if deleted:
            annotation = annotation.take(~np.isin(annotation.behavior, deleted))
            behaviors = [name for name in annotation.ethogram.names if name not in self.deleted]
            annotation = annotation.with_observed(annotation.observed.restrict(behaviors))
        names = Counter(self.renames.get(name, name) for name in annotation.ethogram.names)
        annotation = annotation.rename_existing(self.renames)
        for name in (name for name, count in names.items() if count > 1):
            chosen = annotation.behavior == annotation.ethogram.code(name)
            annotation = annotation.take(~chosen).overlay(annotation.take(chosen).merge_touching())
        return annotation.with_ethogram(ethogram)

    def apply_to_prediction(self, prediction: Prediction) -> Prediction:
        """Rename the columns of a prediction. The probability of merged behaviors is their sum, or their maximum if behaviors overlap."""
        renames = {old: new for old, new in self.renames.items() if old in prediction.ethogram}
        if not renames:
            return prediction
        ethogram = prediction.ethogram.rename(renames)
        new_names = [renames.get(name, name) for name in prediction.ethogram.names]
        combine = np.sum if prediction.exclusive else np.max
        values = prediction.probabilities
        columns = [combine(values[:, [i for i, new in enumerate(new_names) if new == name]], axis=1) for name in ethogram.names]
        extra = [values[:, i] for i in range(len(new_names), values.shape[1])]
        annotation = prediction.annotation.rename_existing(renames)
        return Prediction(
            np.stack([*columns, *extra], axis=1), ethogram, prediction.rate, annotation=annotation, exclusive=prediction.exclusive
        )


def parse_change(old: Sequence[Entry], behaviors: object, kept: Iterable[str] = ()) -> EthogramChange:
    """Validate the behaviors that the page sent, and return the change from the old ones.

    Parameters
    ----------
    old : sequence of Entry
    behaviors : list of dict
        All behaviors in their new order: ``name``, ``key``, ``definition``, ``color``, ``group`` (str), ``point``, ``background``,
        ``hidden`` (bool), and ``from``: the old names that become this behavior; none for a new one, several to merge them.
    kept : iterable of str
        Old names that cannot be deleted, because files of the user contain them.

    Raises
    ------
    EthobenchError
        If a name, key or color is not valid or not unique.
    """
    if not isinstance(behaviors, list) or not all(isinstance(fields, dict) for fields in behaviors):
        raise EthobenchError("the behaviors of an ethogram must be a list of objects")
    if len(behaviors) > MAX_BEHAVIORS:
        raise EthobenchError(f"an ethogram can have at most {MAX_BEHAVIORS} behaviors, got {len(behaviors)}")
    by_name = {entry.name: entry for entry in old}
    parsed = [_parse_entry(fields) for fields in behaviors]
    sources = [_parse_sources(fields, by_name) for fields in behaviors]
    _check_unique(parsed, sources)
    renames = {source: entry.name for entry, names in zip(parsed, sources, strict=True) for source in names if source != entry.name}
    deleted = tuple(name for name in by_name if not any(name in names for names in sources))
    for name in deleted:
        if name in {*kept}:
            raise EthobenchError(f"{name!r} is in files that the viewer does not change; hide it instead of deleting it")
    _check_reused_names(parsed, sources, by_name)
    _check_types(sources, by_name)
    names = {entry.name for entry in parsed}
    entries = []
    for entry, entry_sources in zip(parsed, sources, strict=True):
        earlier = [alias for name in entry_sources for alias in (*by_name[name].aliases, name)]
        channel = by_name[entry_sources[0]].behavior.channel if entry_sources else ""
        aliases = tuple(alias for alias in dict.fromkeys(earlier) if alias not in names and ";" not in alias)
        entries.append(replace(entry, behavior=replace(entry.behavior, channel=channel), aliases=aliases))
    return EthogramChange(tuple(entries), renames, deleted, merges=any(len(entry_sources) > 1 for entry_sources in sources))


def _parse_entry(fields: Mapping[str, Any]) -> Entry:
    texts = {}
    for column in ("name", "definition", "key", "color", "group"):
        value = fields.get(column) or ""
        if not isinstance(value, str):
            raise EthobenchError(f"the {column} of a behavior must be text, got {value!r}")
        texts[column] = " ".join(value.split()) if column != "key" else value
        if len(texts[column]) > MAX_LENGTHS.get(column, 20):
            raise EthobenchError(f"the {column} of a behavior can have at most {MAX_LENGTHS.get(column, 20)} characters")
    name = texts["name"]
    if not name:
        raise EthobenchError("every behavior needs a name")
    if not name.isprintable() and not _is_emoji_sequence(name):
        raise EthobenchError(f"the name {name!r} contains characters that cannot be displayed")
    if ";" in name:
        raise EthobenchError(f"the name {name!r} contains a semicolon, which separates names in ethogram.csv; omit it")
    if len(texts["key"]) > 1 or texts["key"] == " " or not texts["key"].isprintable():
        raise EthobenchError(f"the key of {name!r} must be a single character, got {texts['key']!r}")
    color = texts["color"].lower()
    if color and not _COLOR.fullmatch(color):
        raise EthobenchError(f"the color of {name!r} must have the form #rrggbb, got {color!r}")
    flags = {flag: fields.get(flag) is True for flag in ("point", "background", "hidden")}
    if flags["point"] and flags["background"]:
        raise EthobenchError(f"{name!r} cannot be the background, because it is a point event")
    behavior = Behavior(name, texts["definition"], flags["point"], texts["key"])
    return Entry(behavior, flags["background"], texts["group"], color, flags["hidden"])


def _is_emoji_sequence(name: str) -> bool:
    """Whether the only unprintable characters are the joiners of emoji and of some scripts."""
    return all(letter.isprintable() or letter in "\u200c\u200d" for letter in name)


def _parse_sources(fields: Mapping[str, Any], old: Mapping[str, Entry]) -> tuple[str, ...]:
    names = fields.get("from") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise EthobenchError("`from` must be a list of names")
    for name in names:
        if name not in old:
            raise EthobenchError(f"no behavior {name!r} in the ethogram; reload the page")
    return tuple(dict.fromkeys(names))


def _check_unique(entries: Sequence[Entry], sources: Sequence[Sequence[str]]) -> None:
    names: set[str] = set()
    name_of_key: dict[str, str] = {}
    for entry in entries:
        if entry.name in names:
            raise EthobenchError(f"two behaviors have the name {entry.name!r}; merge them or choose another name")
        names.add(entry.name)
        key = entry.behavior.key
        if key and not entry.hidden:
            if key in name_of_key:
                raise EthobenchError(f"{name_of_key[key]!r} and {entry.name!r} have the same key {key!r}")
            name_of_key[key] = entry.name
    background = [entry.name for entry in entries if entry.background]
    if len(background) > 1:
        raise EthobenchError(f"only one behavior can be the background, got {', '.join(map(repr, background))}")
    all_sources = [name for names in sources for name in names]
    duplicates = {name for name in all_sources if all_sources.count(name) > 1}
    if duplicates:
        raise EthobenchError(f"{', '.join(map(repr, sorted(duplicates)))} cannot become two behaviors")


def _check_reused_names(entries: Sequence[Entry], sources: Sequence[Sequence[str]], old: Mapping[str, Entry]) -> None:
    """Refuse a name that another behavior gives up in the same change, since files that were not rewritten yet would be ambiguous."""
    for entry, names in zip(entries, sources, strict=True):
        if entry.name in old and entry.name not in names:
            raise EthobenchError(f"{entry.name!r} is still the name of another behavior; save its new name first, then reuse it")
        for name in names:
            if name != entry.name and ";" in name:
                raise EthobenchError(f"{name!r} contains a semicolon and cannot be renamed here")


def _check_types(sources: Sequence[Sequence[str]], old: Mapping[str, Entry]) -> None:
    for names in sources:
        types = {old[name].behavior.point for name in names}
        if len(types) > 1:
            raise EthobenchError(f"{', '.join(map(repr, names))} cannot be merged: some are states and some are point events")
