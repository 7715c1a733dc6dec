"""Check a study: read everything that its ``recordings.csv`` lists, and describe all problems instead of stopping at the first."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethobench.core import ClockOrigin, Dataset, Ethogram, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, Note, ReadWarning
from ethobench.core.observation_period import OBSERVED_TO, observation_period_notes
from ethobench.datasets.manifest import read_study
from ethobench.datasets.manifest_tables import MANIFEST, Problems, read_rows

MIN_INDIVIDUALS = 5
"""Number of individuals below which confidence intervals are withheld."""


@dataclass(frozen=True)
class Problem:
    """One problem of a study.

    Attributes
    ----------
    location : str
        Where: a row of the manifest, its header, or another file.
    message : str
        What is wrong, and what may have been meant.
    """

    location: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


@dataclass(frozen=True)
class StudyCheck:
    """Result of `check_study`.

    Attributes
    ----------
    path : Path
        The manifest.
    problems : tuple of Problem
        What prevents the study from loading, in the order of the rows.
    warnings : tuple of str
        What does not prevent it from loading, but limits what can be done with it.
    notes : tuple of Note
        Notes of the readers.
    dataset : Dataset
        The recordings without problems.
    """

    path: Path
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    notes: tuple[Note, ...]
    dataset: Dataset

    @property
    def is_valid(self) -> bool:
        """Whether the study loads."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return problems, warnings and `summarize_study` as a JSON-compatible dict."""
        return {
            "study": str(self.path),
            "valid": self.is_valid,
            "problems": [{"location": problem.location, "problem": problem.message} for problem in self.problems],
            "warnings": list(self.warnings),
            "notes": [str(note) for note in self.notes],
            **summarize_study(self.dataset),
        }


def check_study(path: str | Path) -> StudyCheck:
    r"""Check a study: the columns and cells of its manifest, and every file that it lists.

    Parameters
    ----------
    path : str or Path
        Folder with a ``recordings.csv``, or the manifest itself.

    Raises
    ------
    FormatError
        If there is no manifest.

    See Also
    --------
    discover_study : draft a manifest from the files in a folder.

    Examples
    --------
    >>> _ = (folder / "recordings.csv").write_text("recording,animal,fps,labels\nm1,mouse 1,30,m1.csv\n")
    >>> for problem in check_study(folder).problems:
    ...     print(problem)
    header: column 'animal' is not known; did you mean 'individual'?
    header: column 'fps' is not known; did you mean 'rate'?
    header: column 'labels' is not known; did you mean 'annotations'?
    row 2: annotations: m1.csv does not exist
    """
    path = Path(path)
    manifest = path / MANIFEST if path.is_dir() else path
    if not manifest.is_file():
        raise FormatError(manifest, f"no such file; `ethobench study make {manifest.parent}` drafts one from the files in a folder")
    problems = Problems(manifest)
    corrections: list[str] = []
    data = Dataset((), Ethogram([]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReadWarning)
        try:
            data = read_study(manifest, problems, keep_going=True)
        except FormatError as error:
            location = error.location if error.path == manifest else str(error.path)
            problems.add(location or MANIFEST, error.message)
        except (EthobenchError, OSError) as error:
            problems.add(MANIFEST, error)
        corrections = [str(warning.message) for warning in caught if issubclass(warning.category, ReadWarning)]
    for recording in data:
        if not (recording.has_signals or recording.annotations or recording.video):
            problems.add(recording.id, "has neither signals nor annotations nor a video")
    return StudyCheck(
        manifest,
        tuple(Problem(*problem) for problem in problems.problems),
        (*corrections, *(_warnings(data, manifest) if len(data) else [])),
        tuple(Note(note.message, f"{r.id}: {note.location}" if note.location else r.id, note.code) for r in data for note in r.notes),
        data,
    )


def _warnings(data: Dataset, manifest: Path) -> list[str]:
    """Return what limits the use of a study that loads."""
    n = len(data)
    unknown = sum(r.rate is None for r in data)
    assumed = ", ".join(sorted({f"{r.rate:g}" for r in data if r.rate is not None and r.clock_origin is ClockOrigin.ASSUMED}))
    signals, labeled = sum(r.has_signals for r in data), sum(bool(r.annotations) for r in data)
    features, shared = sum(_has_features(r) for r in data), _shared_signals(manifest)
    return [
        text
        for text, applies in (
            (f"the frame rate of {unknown} of {n} recordings is unknown; fill in the column rate", unknown),
            (f"no file states the frame rate; {assumed} Hz is assumed; fill in the column rate", assumed),
            (f"{n - signals} of {n} recordings have no signals, so a model cannot use them", 0 < signals < n),
            (f"{n - features} of {n} recordings have no features; a model needs them for all recordings or for none", 0 < features < n),
            (f"{n - labeled} of {n} recordings have no annotations", 0 < labeled < n),
            ("there is only one individual, so a model cannot be tested on another one", len(data.individuals) == 1 and n > 1),
            (
                f"{len(data.individuals)} individuals; confidence intervals need at least {MIN_INDIVIDUALS}",
                1 < len(data.individuals) < MIN_INDIVIDUALS,
            ),
            (f"{len(shared)} signal files are listed for more than one recording: {', '.join(sorted(shared)[:3])}", shared),
        )
        if applies
    ] + [str(note) for note in observation_period_notes(r.annotations for r in data if OBSERVED_TO not in r.metadata)]


def _shared_signals(manifest: Path) -> list[str]:
    """Return the signal files that several recordings without an entry share."""
    recordings: dict[str, set[str]] = {}
    for row in read_rows(manifest, Problems(manifest)):
        if row["signals"] and not row["entry"]:
            recordings.setdefault(row["signals"], set()).add(row["recording"])
    return [file for file, names in recordings.items() if len(names) > 1]


def _has_features(recording: Recording) -> bool:
    """Return whether a recording has per-frame features, as its only signals or beside them."""
    if recording.features is not None:
        return recording.features.is_features
    return isinstance(recording.signals, Signals) and recording.signals.is_features


def summarize_study(data: Dataset) -> dict[str, Any]:
    """Count what a study has: recordings, individuals, frames, seconds, rates, and the bouts of each behavior by annotator."""
    bouts: dict[str, dict[str, int]] = {annotator: dict.fromkeys(data.ethogram.names, 0) for annotator in data.annotators}
    annotated: Counter[str] = Counter()
    for recording in data:
        for annotator, a in recording.annotations.items():
            annotated[annotator] += 1
            for code, behavior in enumerate(a.ethogram):
                bouts[annotator][behavior.name] = bouts[annotator].get(behavior.name, 0) + len(a.spans(code).start)
    rates = Counter(r.rate for r in data)
    return {
        "recordings": len(data),
        "individuals": len(data.individuals),
        "with_signals": sum(r.has_signals for r in data),
        "with_features": sum(_has_features(r) for r in data),
        "with_video": sum(r.video is not None for r in data),
        "frames": data.n_frames,
        "seconds": sum((r.n_frames or 0) / r.rate for r in data if r.rate),
        "rates": [{"rate": rate, "recordings": count} for rate, count in sorted(rates.items(), key=lambda pair: -pair[1])],
        "annotators": dict(annotated),
        "behaviors": list(data.ethogram.names),
        "bouts": bouts,
    }
