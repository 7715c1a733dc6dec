"""Frame rates and names of annotators in the draft of a study."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ethobench.core import ClockOrigin
from ethobench.core.errors import EthobenchError
from ethobench.core.messages import Message, Option
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.datasets.folder_scan import Scan
from ethobench.datasets.loose_files import Item, recording_name
from ethobench.datasets.matching import Group
from ethobench.datasets.name_guesses import names_recording
from ethobench.datasets.signals import open_signals
from ethobench.datasets.study_names import name_tokens
from ethobench.datasets.video_clock import read_video_clock
from ethobench.formats import formats, read_at_rate
from ethobench.formats.bouts import SECONDS_RATE

AnnotatorLabels: TypeAlias = dict[tuple[int, str], str]
"""Names of annotators by ``(id(item), name in the file)``."""

GENERIC_WORDS = frozenset(
    {"annot", "annotated", "annotation", "annotations", "behav", "behavior", "behaviors", "behaviour", "behaviours", "boris", "bouts"}
    | {
        "coded",
        "coding",
        "event",
        "events",
        "export",
        "final",
        "label",
        "labeled",
        "labelled",
        "labels",
        "manual",
        "scored",
        "scores",
        "scoring",
    }
)
"""Words in names of annotation files that do not name a person."""


def number_text(value: float) -> str:
    """Return a number with all its digits, and without a decimal point if it is an integer."""
    return str(int(value)) if value == int(value) else repr(value)


class Rates:
    """Frame rates of the recordings of a draft, and where they come from.

    Parameters
    ----------
    scan : Scan
    user_rate : float or None
        Rate of all recordings, if set by the user.
    """

    def __init__(self, scan: Scan, user_rate: float | None) -> None:
        self.scan, self.user_rate = scan, user_rate
        self._origins: Counter[str] = Counter()
        self._rates: Counter[float] = Counter()
        self._in_seconds: list[str] = []
        self._notes: list[str] = []

    def of(self, group: Group) -> float | None:
        """Return the rate of a recording; None if no file states it."""
        rate, origin = self._rate(group)
        self._origins[origin] += 1
        if rate is not None:
            self._rates[rate] += 1
        elif any(item.has_signals for item in group.items) and any(_is_in_seconds(item) for item in group.items):
            self._in_seconds.append(group.name)
        return rate

    def _rate(self, group: Group) -> tuple[float | None, str]:
        if self.user_rate is not None:
            return self.user_rate, "as set"
        annotated = [item for item in group.items if item.annotations]
        stated = Counter(r.rate for item in annotated if item.has_clock and (r := item.recording) is not None and r.rate)
        if len(stated) == 1:
            return next(iter(stated)), "from annotations"
        video = next((item for item in group.items if item.is_video), None)
        clock, notes = (None, []) if video is None else read_video_clock(video.path, video.path.name)
        self._notes += [str(note) for note in notes]
        if clock is not None:
            return clock.rate, "from videos"
        if stated:
            return stated.most_common(1)[0][0], "from annotations"
        signals = next((item for item in group.items if item.has_signals), None)
        rate = None if signals is None else self._rate_of_signals(signals)
        return rate, "unknown" if rate is None else "from signals"

    def _rate_of_signals(self, item: Item) -> float | None:
        """Return the rate that a table of signals states; files of pose trackers state none."""
        if item.recording is not None and item.recording.rate is not None:
            return item.recording.rate if item.has_clock else None
        if "poses" in formats[self.scan.formats[item.path]].contents:
            return None
        try:
            return open_signals(item.path, item.name, None, entry=self.scan.entry(item), options=item.options).rate
        except EthobenchError:
            return None

    def fits(self, item: Item, rate: float | None) -> bool:
        """Whether an annotation has a rate, or can be read at it."""
        if rate is None or item.recording is None or item.recording.rate == rate:
            return True
        try:
            return read_at_rate(item.path, rate, self.scan.formats[item.path], **item.options)[item.index].rate == rate
        except EthobenchError:
            return False

    def check(self) -> None:
        """Raise an error if annotations in seconds cannot be compared with poses, since no file states a rate."""
        if self._in_seconds:
            names = ", ".join(self._in_seconds[:5]) + (", ..." if len(self._in_seconds) > 5 else "")
            problem = f"no file states the frame rate of {len(self._in_seconds)} recordings whose annotations are in seconds ({names})"
            raise EthobenchError(Message(problem, "; state it, such as ", Option("rate", 30)))

    def describe(self) -> list[str]:
        """Return what is known about the rates, and what to do about unknown ones."""
        lines = list(dict.fromkeys(self._notes))[:3]
        if self._rates:
            origins = ", ".join(f"{origin} ({n})" for origin, n in self._origins.items() if origin != "unknown")
            rates = ", ".join(f"{rate:g} Hz" for rate, _ in self._rates.most_common(6)) + (", ..." if len(self._rates) > 6 else "")
            lines.append(f"rate: {rates}, {origins}")
        if self._origins["unknown"]:
            unknown = f"rate: unknown for {self._origins['unknown']} recordings, since no file states it"
            lines.append(Message(unknown, "; state it with ", Option("rate")))
        return lines


def _is_in_seconds(item: Item) -> bool:
    """Whether an annotation states times in seconds, and no rate."""
    r = item.recording
    return r is not None and bool(item.annotations) and r.clock_origin is ClockOrigin.ASSUMED and r.rate == SECONDS_RATE


def annotator_labels(scan: Scan, groups: Sequence[Group]) -> AnnotatorLabels:
    """Name the annotators of all recordings.

    A name in a file is kept. Another annotator is named by the folder if several folders have annotations, and by what the name of the file
    has beyond the name of the recording. Names in files with several annotators cannot be changed; a duplicate has no label.
    """
    annotated = [item for group in groups for item in group.items if item.annotations]
    folders = [set(scan.folders(item)) for item in annotated]
    common = set.intersection(*folders) if folders else set()
    affixes = {id(item): _affix(item, group) for group in groups for item in group.items if item.annotations}
    affixes_in: dict[Path, set[str]] = {}
    for item in annotated:
        affixes_in.setdefault(item.path.parent, set()).add(affixes[id(item)])
    labels: AnnotatorLabels = {}
    for group in groups:
        used: set[str] = set()
        items = [item for item in group.items if item.annotations]
        for item in sorted(items, key=lambda item: -len(item.annotations)):
            in_name = {*name_tokens(group.name)}
            parts = [p for p in scan.folders(item) if p not in common and not names_recording(p) and not {*name_tokens(p)} <= in_name]
            if affixes[id(item)] and (not parts or len(affixes_in[item.path.parent] - {""}) > 1):
                parts.append(affixes[id(item)])
            fallback = item.annotator or "_".join(parts) or (recording_name(item.path) if len(items) > 1 else DEFAULT_ANNOTATOR)
            for name in item.annotations:
                is_named = name not in (DEFAULT_ANNOTATOR, item.name, "" if item.recording is None else item.recording.id)
                label = name if is_named or len(item.annotations) > 1 else fallback
                if label in used and len(item.annotations) > 1:
                    continue
                if label in used and is_named:
                    label = f"{label} ({fallback})"
                label = next(text for text in (label, *(f"{label} {k}" for k in range(2, len(used) + 3))) if text not in used)
                used.add(label)
                labels[id(item), name] = label
    return labels


def _affix(item: Item, group: Group) -> str:
    """Return what the name of a file has beyond the name of the recording, without words such as "labels"."""
    words = [word for word in re.split(r"[_\-.\s]+", recording_name(item.path)) if word]
    lower, core = [word.casefold() for word in words], list(name_tokens(item.name if item.matched_by == "folder" else group.name))
    starts = [k for k in range(len(words) - len(core) + 1) if lower[k : k + len(core)] == core]
    if not starts:
        return ""
    rest = words[: starts[0]] + words[starts[0] + len(core) :]
    return "_".join(word for word in rest if word.casefold() not in GENERIC_WORDS)
