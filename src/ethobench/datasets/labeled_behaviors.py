"""What was labeled in each recording of a study: certain behaviors, or a part of its time. Everything else is unobserved there.

Column ``behaviors_labeled`` lists behaviors; ``observed_from`` and ``observed_to`` state a time.

A cell is a JSON list, or entries separated by semicolons. An entry is ``agent,target,action``, as in MABe 2025 (``mouse1,mouse2,attack``;
``mouse1,self,rear``), or the name of a behavior, which was then labeled for all animals. ``[]`` states that nothing was labeled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ethobench.core import Annotation, Ethogram, Observed, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, Note
from ethobench.core.intervals import Intervals
from ethobench.core.recording import MAX_EXCESS
from ethobench.formats.mabe2025_tables import SELF, mouse_name

LABELED = "behaviors_labeled"
OUTSIDE = "outside-labeled"
"""Code of the note on bouts that are not among the labeled behaviors."""
EXAMPLE = "'mouse1,mouse2,attack', 'mouse1,self,rear' or 'attack'"


def parse_labeled_cell(cell: str) -> tuple[Track, ...]:
    """Return what a cell lists, without duplicates.

    Parameters
    ----------
    cell : str
        JSON list, or entries separated by semicolons.

    Returns
    -------
    tuple of Track
        An action on oneself has no target; the name of a behavior has neither subject nor target.

    Raises
    ------
    EthobenchError
        If an entry has another form.

    Examples
    --------
    >>> parse_labeled_cell("mouse1,mouse2,attack; mouse1,self,rear")
    (Track(behavior='attack', subject='mouse1', target='mouse2'), Track(behavior='rear', subject='mouse1', target=None))
    >>> parse_labeled_cell('["attack"]'), parse_labeled_cell("[]")
    ((Track(behavior='attack', subject=None, target=None),), ())
    """
    entries: object = [entry for entry in cell.split(";") if entry.strip()]
    if cell.lstrip().startswith("["):
        try:
            entries = json.loads(cell)
        except json.JSONDecodeError as error:
            raise EthobenchError(f"{LABELED} is not a valid JSON list ({error.msg})") from None
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise EthobenchError(f"{LABELED} needs a list of text such as {EXAMPLE}")
    return tuple(dict.fromkeys(_parse_entry(entry) for entry in entries))


def _parse_entry(entry: str) -> Track:
    names = [name.strip() for name in entry.replace('"', "").split(",")]
    if len(names) not in (1, 3) or not all(names):
        raise EthobenchError(f"{LABELED} needs entries such as {EXAMPLE}, separated by semicolons, got {entry.strip()!r}")
    if len(names) == 1:
        return Track(names[0])
    agent, target, action = names
    return Track(action, agent, None if target in (SELF, agent) else target)


def entry_text(track: Track) -> str:
    """Return a track as an entry of the list.

    >>> entry_text(Track("attack")), entry_text(Track("rear", "mouse1"))
    ('attack', 'mouse1,self,rear')
    """
    return str(track.behavior) if track.subject is None else f"{track.subject},{track.target or SELF},{track.behavior}"


def select_observed(annotation: Annotation, start: float, stop: float | None) -> Annotation:
    """Mark the frames outside of the time that was labeled as unobserved; bouts are cut there.

    Parameters
    ----------
    annotation : Annotation
    start : float
        Seconds from the beginning of the recording.
    stop : float or None
        Seconds; None for the end of the recording.

    Raises
    ------
    MismatchError
        If the time is after the end of the recording.

    Examples
    --------
    >>> select_observed(Annotation.from_frames([0] * 100, ["rest"], rate=10), 2.0, 7.5).observed
    Observed(55 frames in 1 intervals)
    """
    if start == 0 and stop is None:
        return annotation
    duration = annotation.n_frames / annotation.rate
    latest = start if stop is None else stop
    if latest > (1 + MAX_EXCESS) * duration or start >= duration:
        raise MismatchError(f"observed_from or observed_to is {latest:g} s, but the recording ends at {duration:g} s")
    last = annotation.n_frames if stop is None else round(stop * annotation.rate)
    observed = iv.clip(iv.full(annotation.n_frames), round(start * annotation.rate), last)
    return annotation.mark_unobserved(iv.complement(observed, annotation.n_frames))


@dataclass(frozen=True)
class LabeledList:
    """What one row of the manifest lists as labeled, with the names of the recording's animals.

    Attributes
    ----------
    location : str
        The row, for messages.
    tracks : tuple of Track
    """

    location: str
    tracks: tuple[Track, ...]

    @classmethod
    def resolve(
        cls, location: str, tracks: Sequence[Track], tracked: Sequence[str], annotated: Sequence[str]
    ) -> tuple[LabeledList, list[str], list[Note]]:
        """Replace the animals of a list by the names that the files use: ``1`` and ``mouse1`` are the same animal.

        Parameters
        ----------
        location : str
        tracks : sequence of Track
            As the row states them.
        tracked, annotated : sequence of str
            Animals of the poses, and of the annotations.

        Returns
        -------
        labeled : LabeledList
        problems : list of str
            Names of animals that the poses and annotations do not have.
        notes : list of Note
            The same, if there are no poses: an animal without bouts is then known from the list only.
        """
        names = {**{mouse_name(name): name for name in (*annotated, *tracked)}, **{name: name for name in (*annotated, *tracked)}}
        listed = dict.fromkeys(name for track in tracks for name in (track.subject, track.target) if name is not None)
        matches = {name: names.get(name, names.get(mouse_name(name))) for name in listed}
        absent = [name for name, match in matches.items() if match is None]
        resolved = tuple(
            Track(t.behavior, None if t.subject is None else matches[t.subject] or t.subject, matches.get(t.target or "") or t.target)
            for t in tracks
        )
        problems, notes = [], []
        if absent and tracked:
            animals = ", ".join(dict.fromkeys([*tracked, *annotated]))
            problems.append(f"{LABELED} names {', '.join(map(repr, absent))}, but the recording has: {animals}")
        elif absent and annotated:
            message = f"{LABELED} names {', '.join(map(repr, absent))}, of which there is no bout; annotated: {', '.join(annotated)}"
            notes.append(Note(message, location, "labeled-animals"))
        return cls(location, tuple(dict.fromkeys(resolved))), problems, notes

    def rename(self, *mappings: Mapping[str, str]) -> LabeledList:
        """Rename behaviors, old name to new name, by one mapping after the other."""
        tracks = []
        for track in self.tracks:
            name = str(track.behavior)
            for mapping in mappings:
                name = mapping.get(name, name)
            tracks.append(track._replace(behavior=name))
        return LabeledList(self.location, tuple(dict.fromkeys(tracks)))

    def unknown_behaviors(self, ethogram: Ethogram) -> list[str]:
        """Return one message for each listed behavior that the ethogram does not have."""
        unknown = dict.fromkeys(str(t.behavior) for t in self.tracks if t.behavior not in ethogram)
        return [f"{LABELED} names {name!r}, which is not in the ethogram; {_suggestion(name, ethogram.names)}" for name in unknown]

    def apply(self, annotation: Annotation) -> tuple[Annotation, list[Note]]:
        """Mark everything that is not listed as unobserved.

        Returns
        -------
        annotation : Annotation
            With the same bouts. Those that are not listed are in unobserved frames: neither training nor scores use them.
        notes : list of Note
            What has bouts but is not listed.
        """
        before = annotation.observed
        tracks: dict[Track, Intervals] = {t: before.of(str(t.behavior), t.subject, t.target) for t in self.tracks}
        background = annotation.ethogram.background_name
        if background is not None:  # observed wherever all others are
            tracks.setdefault(Track(background), before.of(background))
        listed = (name for track in self.tracks for name in (track.subject, track.target) if name is not None)
        subjects = tuple(dict.fromkeys([*annotation.subjects, *listed]))
        masked = replace(annotation, subjects=subjects).with_observed(Observed(iv.empty(), tracks))
        outside = [track for track in annotation.tracks() if not iv.total(masked.observed.of(*track)) and iv.total(before.of(*track))]
        return masked, [_outside_note(self.location, annotation, outside)] if outside else []


def _outside_note(location: str, annotation: Annotation, outside: Sequence[tuple[str, str | None, str | None]]) -> Note:
    columns = zip(
        (annotation.ethogram[int(code)].name for code in annotation.behavior),
        annotation.names(annotation.subject),
        annotation.names(annotation.target),
        strict=True,
    )
    n_bouts = sum(bout in {*outside} for bout in columns)
    listed = ", ".join(entry_text(Track(*track)) for track in outside)
    message = f"{n_bouts} bouts are not in {LABELED} and count as unobserved (add them to the list if they were labeled): {listed}"
    return Note(message, location, OUTSIDE)


def _suggestion(name: str, names: Iterable[str]) -> str:
    known_values = list(names)
    similar = get_close_matches(name, known_values, n=1, cutoff=0.7)
    return f"did you mean {similar[0]!r}?" if similar else f"behaviors: {', '.join(known_values)}"


class StudyLists:
    """What was labeled in the recordings of a study, by recording and annotator.

    Parameters
    ----------
    add_problem : callable
        Called with location and message of each problem.
    """

    def __init__(self, add_problem: Callable[[str, str], None]) -> None:
        self.add_problem = add_problem
        self.lists: dict[str, dict[str, LabeledList]] = {}

    def add(
        self,
        recording: str,
        rows: Sequence[tuple[str, str, tuple[Track, ...] | None]],
        tracked: Sequence[str],
        annotations: Mapping[str, Annotation],
    ) -> list[Note]:
        """Add what the rows of a recording list; a row without a list has the first list of the recording.

        Parameters
        ----------
        recording : str
        rows : sequence of tuple
            Location, annotator and list of each row.
        tracked : sequence of str
            Animals of the poses.
        annotations : mapping of str to Annotation
            By annotator.
        """
        stated = [(location, tracks) for location, _, tracks in rows if tracks is not None]
        if not stated:
            return []
        annotated = tuple(dict.fromkeys(name for a in annotations.values() for name in a.subjects))
        combined: dict[str, tuple[str, list[Track]]] = {}
        for location, annotator, tracks in rows:
            source, listed = stated[0] if tracks is None else (location, tracks)
            combined.setdefault(annotator, (source, []))[1].extend(listed)
        problems: dict[tuple[str, str], None] = {}
        notes: dict[Note, None] = {}
        for annotator, (location, listed_by) in combined.items():
            labeled, wrong, list_notes = LabeledList.resolve(location, listed_by, tracked, annotated)
            self.lists.setdefault(recording, {})[annotator] = labeled
            problems |= dict.fromkeys((location, message) for message in wrong)
            notes |= dict.fromkeys(list_notes)
        for problem in problems:
            self.add_problem(*problem)
        return list(notes)

    def rename(self, *mappings: Mapping[str, str]) -> None:
        """Rename behaviors in all lists, old name to new name, by one mapping after the other."""
        self.lists = {
            name: {annotator: labeled.rename(*mappings) for annotator, labeled in lists.items()} for name, lists in self.lists.items()
        }

    def extend(self, ethogram: Ethogram, recordings: Iterable[Recording]) -> Ethogram:
        """Return the ethogram with behaviors that were labeled but never occur; a note of the recording names each."""
        added: dict[str, None] = {}
        for recording in recordings:
            for labeled in self.lists.get(recording.id, {}).values():
                for name in dict.fromkeys(str(track.behavior) for track in labeled.tracks):
                    if name not in ethogram and name not in added:
                        added[name] = None
                        message = f"no annotation has {name!r}, which {LABELED} lists; if its name is right, add it to ethogram.csv"
                        recording.notes = (*recording.notes, Note(message, labeled.location, "labeled-behavior"))
        return ethogram.join(Ethogram(added)) if added else ethogram

    def apply(self, recording: Recording, ethogram: Ethogram) -> None:
        """Mark what was not labeled as unobserved in the annotations of a recording, in place; add problems and notes.

        Parameters
        ----------
        recording : Recording
            Its metadata state the list of the first annotator.
        ethogram : Ethogram
            Listed behaviors that it lacks are problems.
        """
        if recording.id not in self.lists:
            if self.lists and recording.annotations:
                message = f"{LABELED} is blank, so every behavior counts as labeled; state [] if nothing was labeled"
                recording.notes = (*recording.notes, Note(message, code="labeled-blank"))
            return
        lists, annotations = self.lists[recording.id], dict(recording.annotations)
        for annotator, labeled in lists.items():
            for message in labeled.unknown_behaviors(ethogram):
                self.add_problem(labeled.location, message)
            if annotator in annotations:
                annotations[annotator], notes = labeled.apply(annotations[annotator])
                recording.notes = (*recording.notes, *notes)
        recording.annotations = annotations
        recording.metadata = {**recording.metadata, LABELED: [entry_text(track) for track in next(iter(lists.values())).tracks]}
        recording.subjects = tuple(dict.fromkeys([*recording.subjects, *(name for a in annotations.values() for name in a.subjects)]))
