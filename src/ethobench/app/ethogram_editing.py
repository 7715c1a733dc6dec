"""Editing the ethogram of a session: rename, merge, delete and reorder behaviors in all corrections, with undo.

The new ``ethogram.csv`` is written first, in one atomic step. Then corrections that contain old names are rewritten. A viewer that is
killed in between leaves files with old names, which are read with the new ones because ``ethogram.csv`` lists them as aliases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.app.blinding import blind_annotator, refuse_if_blind
from ethobench.app.corrections import Corrections, file_stamp
from ethobench.app.ethograms import (
    Entry,
    EthogramChange,
    aliases_of,
    entries_of,
    make_ethogram,
    parse_change,
    read_entries,
    write_entries,
)
from ethobench.app.history import History
from ethobench.app.recordings import ANNOTATOR, OpenRecording, TrackSnapshot
from ethobench.core import Annotation, Ethogram
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.wording import plural
from ethobench.datasets.manifest_tables import ETHOGRAM

MAX_UNDO = 50


@dataclass(frozen=True)
class _Undo:
    """The state before a change, and the revisions of the corrections after it."""

    entries: tuple[Entry, ...]
    change: EthogramChange
    tracks: Sequence[TrackSnapshot]
    revisions: Mapping[tuple[int, str], int]


class EthogramEditor:
    """The ethogram of all recordings of a project. The caller holds the lock of the project.

    Parameters
    ----------
    recordings : sequence of OpenRecording
    corrections : Corrections

    Attributes
    ----------
    entries : tuple of Entry
    revision : int
        Incremented by every change.
    notes : list of str
    """

    def __init__(self, recordings: Sequence[OpenRecording], corrections: Corrections) -> None:
        self.recordings, self.corrections = recordings, corrections
        self.path: Path = corrections.folder / ETHOGRAM
        self.entries: tuple[Entry, ...] = ()
        self.revision = 0
        self.notes: list[str] = []
        self._stamp: tuple[int, ...] | None = None
        self._problem = ""
        self._undo: list[_Undo] = []
        self._unsaved: set[tuple[int, str]] = set()
        self._read()
        if self.entries:
            self._use(EthogramChange(self.entries, aliases_of(self.entries)))

    def _read(self) -> None:
        try:
            self._stamp = file_stamp(self.path) if self.path.is_file() else None
            self.entries = read_entries(self.path) if self._stamp is not None else ()
            self._problem = ""
        except (EthobenchError, OSError) as error:
            self._problem = f"the ethogram of the session cannot be read: {error}; repair or delete this file"
            self.notes.append(self._problem)

    def adopt(self, recording: OpenRecording, annotator: str, annotation: Annotation) -> None:
        """Add a saved correction to a recording, with the current names of its behaviors."""
        recording.adopt(annotator, self._with_current_names(annotation) if self.entries else annotation)

    def express(self, recording: OpenRecording, annotation: Annotation) -> Annotation:
        """Return a correction that was read again, in the ethogram of its recording."""
        renamed = self._with_current_names(annotation)
        if any(name not in recording.ethogram for name in renamed.ethogram.names):
            recording.change_ethogram(EthogramChange(self.entries), recording.ethogram.join(renamed.ethogram))
            self.complete()
        return renamed.with_ethogram(recording.ethogram)

    def _with_current_names(self, annotation: Annotation) -> Annotation:
        """Rename behaviors, and drop those that the file lists without bouts, which may have been deleted."""
        renamed = annotation.rename_existing(aliases_of(self.entries))
        used = [renamed.ethogram[int(code)].name for code in np.unique(renamed.behavior)]
        return renamed.with_ethogram(renamed.ethogram.restrict(used))

    def complete(self) -> None:
        """Add the behaviors of all tracks that the file does not list; called when all corrections are read."""
        joined = reduce(Ethogram.join, (recording.ethogram for recording in self.recordings), Ethogram([]))
        names = {entry.name for entry in self.entries}
        has_background = any(entry.background for entry in self.entries)
        for entry in entries_of(joined):
            if entry.name not in names:
                self.entries += (Entry(entry.behavior, background=entry.background and not has_background),)

    def reload_if_changed(self) -> None:
        """Read the file again if another viewer changed it."""
        if self._problem or (file_stamp(self.path) if self.path.is_file() else None) == self._stamp:
            return
        self._read()
        if self._problem or not self.entries:
            return
        self._use(EthogramChange(self.entries, aliases_of(self.entries)))
        self.complete()
        self._undo.clear()
        self.revision += 1

    @property
    def can_undo(self) -> bool:
        """Whether a change can be undone."""
        return bool(self._undo)

    def counts(self, *, shown: bool = False) -> dict[str, tuple[int, int]]:
        """Return the number of bouts of each behavior in corrections, and in tracks that cannot be changed.

        Parameters
        ----------
        shown : bool
            Only in tracks that the page may see.
        """
        totals = {entry.name: [0, 0] for entry in self.entries}
        for recording in self.recordings:
            corrections = recording.shown_corrections if shown else recording.corrections
            others = recording.tracks if shown else [t for t in recording.originals if t.name not in recording.corrections]
            tracks = [(0, history.annotation) for history in corrections.values()]
            tracks += [(1, track.annotation) for track in others if track.kind == ANNOTATOR]
            for column, annotation in tracks:
                codes, bouts = np.unique(annotation.behavior, return_counts=True)
                for code, count in zip(codes.tolist(), bouts.tolist(), strict=True):
                    totals[annotation.ethogram[code].name][column] += count
        return {name: (editable, fixed) for name, (editable, fixed) in totals.items()}

    @property
    def fixed(self) -> set[str]:
        """Behaviors of the user's files, which can be hidden but not deleted."""
        return {name for recording in self.recordings for name in recording.source_names(aliases_of(self.entries))}

    def edit(self, revision: int, behaviors: object, confirmed: object) -> list[str]:
        """Change the ethogram.

        Parameters
        ----------
        revision : int
            The revision that the page shows.
        behaviors : list of dict
            See `parse_change`.
        confirmed : dict of str to int
            Behaviors to delete, and the number of bouts that the user agreed to delete with each.

        Returns
        -------
        list of str
            Warnings about corrections that could not be rewritten yet.

        Raises
        ------
        MismatchError
            If the revision is an older one, or more bouts would be deleted than the user confirmed.
        """
        self.reload_if_changed()
        self._check(revision)
        change = parse_change(self.entries, behaviors, self.fixed)
        if change.deleted or change.merges:
            refuse_if_blind("labels of others, which deleting or merging behaviors would change,")
        self._check_bouts(change, confirmed if isinstance(confirmed, dict) else {})
        if change.entries == self.entries:
            return []
        before = self.entries
        tracks = [recording.snapshot() for recording in self.recordings]
        warnings = self._commit(change)
        self._undo.append(_Undo(before, change, tracks, {(i, name): history.revision for i, name, history in self._histories()}))
        del self._undo[:-MAX_UNDO]
        return warnings

    def undo(self, revision: int) -> list[str]:
        """Undo the last change, with the bouts that it merged or deleted."""
        self.reload_if_changed()
        self._check(revision)
        if not self._undo:
            return []
        step = self._undo[-1]
        back = {new: old for old, new in step.change.renames.items()}
        edited = [name for i, name, h in self._histories() if step.revisions.get((i, name)) != h.revision]
        if edited and (step.change.merges or step.change.deleted):
            raise EthobenchError(f"labels of {edited[0]!r} were edited since behaviors were merged or deleted, so this cannot be undone")
        names = {entry.name for entry in step.entries}
        entries = []
        for entry in step.entries:
            new = step.change.renames.get(entry.name, entry.name)
            aliases = (*entry.aliases, *([new] if new not in names else []))
            entries.append(Entry(entry.behavior, entry.background, entry.group, entry.color, entry.hidden, tuple(dict.fromkeys(aliases))))
        added = tuple(entry.name for entry in self.entries if back.get(entry.name, entry.name) not in names)
        counts = self.counts()
        kept = tuple(e for e in self.entries if e.name in added and any(counts[e.name]))
        deleted = tuple(name for name in added if name not in {e.name for e in kept})
        warnings = self._commit(EthogramChange((*entries, *kept), back, deleted), step.tracks)
        self._undo.pop()
        return warnings

    def _check(self, revision: int) -> None:
        if self._problem:
            raise EthobenchError(self._problem)
        if revision != self.revision:
            raise MismatchError("the ethogram has changed in the meantime, perhaps in another window; check it and repeat the change")

    def _check_bouts(self, change: EthogramChange, confirmed: Mapping[str, Any]) -> None:
        counts = self.counts()
        for name in change.deleted:
            if counts[name][0] and confirmed.get(name) != counts[name][0]:
                raise MismatchError(f"{name!r} has {counts[name][0]} bouts, which would be deleted; confirm this first")
        types = {entry.name: entry.behavior.point for entry in change.entries}
        for entry in self.entries:
            new = change.renames.get(entry.name, entry.name)
            if new in types and types[new] != entry.behavior.point and any(counts[entry.name]):
                bouts = "bouts" if blind_annotator() is not None else plural(sum(counts[entry.name]), "{n} bout", "{n} bouts")
                if types[new]:
                    raise EthobenchError(f"{entry.name!r} has {bouts} and must remain a state")
                raise EthobenchError(f"{entry.name!r} has {bouts} and must remain a point event")

    def _commit(self, change: EthogramChange, snapshots: Sequence[TrackSnapshot | None] = ()) -> list[str]:
        """Write the file, change all tracks, then rewrite the corrections that contain old names."""
        with self.corrections.locked():
            if self.path.is_file() and file_stamp(self.path) != self._stamp:
                raise MismatchError(f"{self.path} was changed by another program; reload the page")
            write_entries(self.path, change.entries, overwrite=self._stamp is not None)
            self._stamp = file_stamp(self.path)
        for index, name, history in self._histories():
            if snapshots or change.affects(history.annotation):
                self._unsaved.add((index, name))
        self.entries = change.entries
        self._use(change, snapshots)
        self.revision += 1
        return self.save_pending()

    def _use(self, change: EthogramChange, snapshots: Sequence[TrackSnapshot | None] = ()) -> None:
        """Express all tracks of all recordings in the new ethogram."""
        for index, recording in enumerate(self.recordings):
            extra = [b for b in recording.ethogram if change.renames.get(b.name, b.name) == b.name and b.name not in change.deleted]
            ethogram = make_ethogram(change.entries).join(Ethogram(extra))
            recording.change_ethogram(change, ethogram, snapshots[index] if snapshots else None)

    def save_pending(self) -> list[str]:
        """Rewrite corrections that still contain old names; return warnings about those that cannot be written."""
        warnings = []
        for index, name in sorted(self._unsaved):
            recording = self.recordings[index]
            try:
                self.corrections.save(recording.recording, name, recording.corrections[name].annotation)
                self._unsaved.discard((index, name))
            except (EthobenchError, OSError) as error:
                reason = (error.strerror if isinstance(error, OSError) else None) or error
                warnings.append(f"{name!r} of {recording.recording.id!r} still has the old names: {reason}")
        return warnings

    def _histories(self) -> Iterator[tuple[int, str, History]]:
        for index, recording in enumerate(self.recordings):
            for name, history in recording.corrections.items():
                yield index, name, history
