"""Compare the lengths of annotations with those of poses and signals in the draft of a study.

Poses must be read for this, which takes longer than everything else in a draft. Therefore only some recordings are compared, at equal
distances in the list of recordings. The draft says how many. What was read is cached, so `check_study` does not parse it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError
from ethobench.core.recording import match_length
from ethobench.datasets.folder_scan import Scan
from ethobench.datasets.loose_files import Item
from ethobench.datasets.matching import Group
from ethobench.datasets.signals import open_signals
from ethobench.formats import read_at_rate

MAX_COMPARED = 20
MAX_BYTES = 100_000_000
"""Maximum number of recordings that are compared, and maximum size of their files with poses or signals."""


@dataclass(frozen=True)
class LengthComparison:
    """Lengths of annotations compared with those of poses or signals.

    Attributes
    ----------
    compared : int
        Number of recordings that were compared.
    total : int
        Number of recordings with both.
    problems : tuple of str
        Annotations that do not fit to their poses or signals, which `check_study` refuses.
    """

    compared: int = 0
    total: int = 0
    problems: tuple[str, ...] = ()


def compare_lengths(scan: Scan, groups: Sequence[Group], rates: Mapping[int, float | None]) -> LengthComparison:
    """Compare the lengths of annotations and poses or signals of at most `MAX_COMPARED` recordings, at equal distances.

    Parameters
    ----------
    scan : Scan
    groups : sequence of Group
    rates : mapping of int to float or None
        Frames per second by ``id(group)``.
    """
    candidates = [(group, pair) for group in groups if (pair := _signals_and_annotations(group)) is not None]
    step = max(1, -(-len(candidates) // MAX_COMPARED))
    problems: list[str] = []
    compared, n_bytes = 0, 0
    for group, (signals, annotated) in candidates[::step]:
        n_bytes += signals.path.stat().st_size
        if n_bytes > MAX_BYTES:
            break
        try:
            n_frames = open_signals(signals.path, signals.name, None, entry=scan.entry(signals), options=signals.options).n_frames
        except EthobenchError as error:
            problems.append(str(error))
            continue
        compared += 1
        problems += [problem for item in annotated if (problem := _problem(scan, item, rates[id(group)], n_frames))]
    return LengthComparison(compared, len(candidates), tuple(problems))


def _signals_and_annotations(group: Group) -> tuple[Item, list[Item]] | None:
    """Return the file with signals, and the other files with annotations; files with dates have another start and are not compared."""
    signals = next((item for item in group.items if item.has_signals), None)
    annotated = [item for item in group.items if item.annotations and item is not signals and _has_no_date(item.recording)]
    return None if signals is None or not annotated else (signals, annotated)


def _has_no_date(recording: Recording | None) -> bool:
    return recording is None or recording.start_time is None


def _problem(scan: Scan, item: Item, rate: float | None, n_frames: int) -> str:
    """Return why the annotations in a file do not fit to signals of a length; empty if they do."""
    annotations = item.annotations
    try:
        if rate is not None and item.recording is not None and item.recording.rate != rate:
            annotations = read_at_rate(item.path, rate, scan.formats[item.path], **item.options)[item.index].annotations
        for annotation in annotations.values():
            match_length(annotation, n_frames)
    except EthobenchError as error:
        return f"{scan.relative(item).as_posix()}: {error}"
    return ""
