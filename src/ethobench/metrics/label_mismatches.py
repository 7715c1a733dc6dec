"""Labels that annotators use for the same behavior under different names.

One annotator writes ``i``, another ``interact``: every score of the two is 0, although only the names differ. A label is reported if
one annotator uses it and another, who annotated the same recordings, does not have it in the ethogram. Its likely counterpart is another
such label that overlaps with it in time more than expected by chance, or that has a similar name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations

import numpy as np

from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.errors import Note
from ethobench.core.intervals import Intervals
from ethobench.core.messages import Message, Option
from ethobench.core.wording import join_names, plural

MIN_KAPPA = 0.3  # Cohen's kappa of the frames of two labels, from which on they are probably one behavior
MIN_OVERLAP = 0.05  # Dice coefficient below which two labels with similar names are not one behavior
MIN_SIMILARITY = 0.75  # of two names, as computed by `difflib.SequenceMatcher.ratio`
POINT_TOLERANCE = 0.5  # seconds around a point event


@dataclass(frozen=True)
class LabelMismatch:
    """A label that only some annotators of the same recordings use.

    Attributes
    ----------
    label : str
    annotators : tuple of str
        Who uses it.
    counterpart : str
        The label of other annotators that probably means the same behavior; empty if there is none.
    other_annotators : tuple of str
        Who uses the counterpart; if there is none, those whose ethogram lacks `label`.
    overlap : float
        Dice coefficient of the frames of both labels; NaN if there is no counterpart.
    """

    label: str
    annotators: tuple[str, ...]
    counterpart: str = ""
    other_annotators: tuple[str, ...] = ()
    overlap: float = float("nan")

    def __str__(self) -> str:
        text = _only(self.annotators, self.label)
        if not self.counterpart:
            return text
        old, new = sorted((self.label, self.counterpart), key=len)
        evidence = "similar names" if np.isnan(self.overlap) else f"they overlap {self.overlap:.0%} of the time"
        text += f"; {_only(self.other_annotators, self.counterpart)}; {evidence}: the same behavior?"
        return Message(text, _advise_renaming(old, new))


def find_label_mismatches(recordings: Mapping[str, Mapping[str, Annotation]]) -> list[LabelMismatch]:
    """Find labels that only some annotators of the same recordings use, and their likely counterparts.

    Parameters
    ----------
    recordings : mapping of str to mapping of str to Annotation
        Annotations by recording and annotator.

    Examples
    --------
    >>> anna = Annotation.from_bouts([10, 50], [20, 70], ["i", "i"], ["i"], rate=10, n_frames=100)
    >>> ben = Annotation.from_bouts([11, 50], [21, 68], ["interact"] * 2, ["interact"], rate=10, n_frames=100)
    >>> (mismatch,) = find_label_mismatches({"day1": {"anna": anna, "ben": ben}})
    >>> mismatch.label, mismatch.counterpart, round(mismatch.overlap, 2)
    ('i', 'interact', 0.93)
    """
    annotators = list(dict.fromkeys(name for group in recordings.values() for name in group))
    users: dict[str, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    matches: dict[tuple[str, str], float] = {}
    for first, second in combinations(annotators, 2):
        shared = [(group[first], group[second]) for group in recordings.values() if first in group and second in group]
        if not shared:
            continue
        only = _used_by_one(shared)
        for user, other, labels in ((first, second, only[0]), (second, first, only[1])):
            for label in labels:
                users.setdefault(label, []).append(user)
                lacking.setdefault(label, []).append(other)
        for label, counterpart, overlap in _counterparts(shared, *only):
            matches.setdefault((label, counterpart), overlap)
    mismatches: list[LabelMismatch] = []
    named: set[str] = set()
    for (label, counterpart), overlap in matches.items():
        if not {label, counterpart} & named:
            named |= {label, counterpart}
            mismatches.append(LabelMismatch(label, _unique(users[label]), counterpart, _unique(users[counterpart]), overlap))
    rest = [label for label in users if label not in named]
    return mismatches + [LabelMismatch(label, _unique(users[label]), other_annotators=_unique(lacking[label])) for label in rest]


def label_notes(recordings: Mapping[str, Mapping[str, Annotation]], behaviors: Iterable[str] | None = None) -> list[Note]:
    """Return notes about label mismatches: one for each likely counterpart, and one for all other labels of the same annotators.

    Parameters
    ----------
    recordings : mapping of str to mapping of str to Annotation
        Annotations by recording and annotator.
    behaviors : iterable of str, optional
        Report only mismatches that concern these.
    """
    mismatches = find_label_mismatches(recordings)
    if behaviors is not None:
        chosen = {*behaviors}
        mismatches = [m for m in mismatches if {m.label, m.counterpart} & chosen]
    notes = [Note(str(m)) for m in mismatches if m.counterpart]
    others: dict[tuple[str, ...], list[str]] = {}
    for m in mismatches:
        if not m.counterpart:
            others.setdefault(m.annotators, []).append(m.label)
    return notes + [Note(_only(names, *labels)) for names, labels in others.items()]


def similar_label_notes(annotations: Iterable[Annotation]) -> list[Note]:
    """Return notes about labels with similar names that never occur in the same annotation, such as ``groom`` and ``grooming``."""
    used: dict[str, int] = {}
    listed_together: set[frozenset[str]] = set()
    for annotation in annotations:
        for label in _used(annotation):
            used[label] = used.get(label, 0) + 1
        listed_together |= {frozenset(pair) for pair in combinations(annotation.ethogram.names, 2)}
    notes = []
    for first, second in combinations(used, 2):
        if frozenset((first, second)) not in listed_together and _similar(first, second):
            old, new = sorted((first, second), key=lambda name: used[name])
            text = f"annotations use either {first!r} or {second!r}: the same behavior?"
            notes.append(Note(Message(text, _advise_renaming(old, new))))
    return notes


def _used_by_one(shared: Sequence[tuple[Annotation, Annotation]]) -> tuple[list[str], list[str]]:
    """Return the labels that occur on either side and are in no ethogram of the other, except backgrounds."""
    sides = [[pair[k] for pair in shared] for k in range(2)]
    used = [dict.fromkeys(label for a in side for label in _used(a)) for side in sides]
    listed = [{name for a in side for name in a.ethogram.names} for side in sides]
    return [label for label in used[0] if label not in listed[1]], [label for label in used[1] if label not in listed[0]]


def _used(a: Annotation) -> list[str]:
    return [a.ethogram[int(code)].name for code in np.unique(a.behavior) if code != a.ethogram.background]


def _counterparts(
    shared: Sequence[tuple[Annotation, Annotation]], first_labels: Sequence[str], second_labels: Sequence[str]
) -> list[tuple[str, str, float]]:
    """Pair labels of two annotators, the likeliest first; return both labels and their overlap."""
    candidates = []
    for first in first_labels:
        for second in second_labels:
            overlap, kappa = _time_overlap(shared, first, second)
            similar = _similar(first, second)
            if kappa >= MIN_KAPPA or (similar and not overlap < MIN_OVERLAP):
                candidates.append((kappa + 0.5 * similar, first, second, overlap))
    result: list[tuple[str, str, float]] = []
    for _, first, second, overlap in sorted(candidates, key=lambda c: -c[0]):
        if all(first != f and second != s for f, s, _ in result):
            result.append((first, second, overlap))
    return result


def _time_overlap(shared: Sequence[tuple[Annotation, Annotation]], first: str, second: str) -> tuple[float, float]:
    """Return the Dice coefficient and Cohen's kappa of the frames of two labels."""
    both = n_first = n_second = total = 0
    for a, b in shared:
        if a.rate != b.rate:
            continue
        spans = _frames(a, first), _frames(b, second)
        both += iv.total(iv.intersection(*spans))
        n_first, n_second = n_first + iv.total(spans[0]), n_second + iv.total(spans[1])
        total += max(a.n_frames, b.n_frames)
    if not n_first or not n_second or not total:
        return float("nan"), 0.0
    agreed = (total - n_first - n_second + 2 * both) / total
    chance = (n_first * n_second + (total - n_first) * (total - n_second)) / total**2
    return 2 * both / (n_first + n_second), (agreed - chance) / (1 - chance) if chance < 1 else 0.0


def _frames(a: Annotation, label: str) -> Intervals:
    """Return the frames of a label; point events are extended by half a second on either side."""
    if label not in a.ethogram:
        return iv.empty()
    spans = a.spans(label)
    width = np.where(spans.start == spans.stop, round(POINT_TOLERANCE * a.rate), 0)
    return iv.union(iv.clip(iv.intervals(spans.start - width, spans.stop + width), 0, a.n_frames))


def _similar(first: str, second: str) -> bool:
    """Return whether one name is a prefix or the initials of the other, or nearly the same."""
    one, two = (re.sub(r"[\W_]+", " ", name.casefold()).strip() for name in (first, second))
    short, long = sorted((one, two), key=len)
    if not short or re.findall(r"\d+", one) != re.findall(r"\d+", two):
        return False
    initials = "".join(word[0] for word in long.split())
    plain = short.replace(" ", ""), long.replace(" ", "")
    return long.startswith(short) or short == initials or SequenceMatcher(None, *plain).ratio() >= MIN_SIMILARITY


def _only(annotators: Sequence[str], *labels: str) -> str:
    names, used = join_names(annotators), join_names(map(repr, labels), "")
    return plural(len(annotators), "only {names} uses {used}", "only {names} use {used}", names=names, used=used)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _advise_renaming(old: str, new: str) -> Message:
    return Message(" If so, rename one of them (", Option("rename", {old: new}), ")")
