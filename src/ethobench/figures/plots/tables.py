"""The numbers behind figures: annotations, poses and scores as lists of rows, which are drawn, saved as CSV, or used elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ethobench.core import Annotation, Dataset, Poses, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, NotFoundError, ParameterError
from ethobench.core.ethogram import Ethogram, join_ethograms
from ethobench.metrics import Scores, probabilities
from ethobench.metrics.budgets import time_budget
from ethobench.metrics.rater_agreement import PAIR_METRICS, Agreement

Row: TypeAlias = dict[str, Any]
Table: TypeAlias = list[Row]
Source: TypeAlias = Annotation | Recording | Dataset | Iterable[Recording] | Mapping[str, Annotation]
BY = ("recording", "individual", "all")
NO_BEHAVIOR = "(none)"


def named_annotations(source: Source, annotator: str | None = None) -> dict[str, Annotation]:
    """Return annotations by name: those of a mapping, the annotators of a recording, or one for each recording of several.

    Parameters
    ----------
    source : Annotation, Recording, Dataset, recordings, or mapping of names to annotations
    annotator : str, optional
        Which annotator of each recording; may be omitted if each has one.
    """
    if isinstance(source, Annotation):
        return {"": source}
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, Recording):
        matches = dict(source.annotations) if annotator is None else {annotator: source.annotation(annotator)}
    else:
        matches = {recording.id: recording.annotation(annotator) for recording in source if recording.annotations}
    if not matches:
        raise EthobenchError("there is no annotation to draw")
    return matches


def bout_table(source: Source, annotator: str | None = None) -> Table:
    """Return all bouts: name (of the recording or annotator), subject, behavior, and start and stop in seconds.

    Examples
    --------
    >>> bout_table(annotation)[0]
    {'name': '', 'subject': '', 'behavior': 'attack', 'start': 0.0, 'stop': 0.16666666666666666}
    """
    rows: Table = []
    for name, a in named_annotations(source, annotator).items():
        subjects, behaviors = a.names(a.subject), a.ethogram.names
        rows += [
            {"name": name, "subject": subject or "", "behavior": behaviors[code], "start": start / a.rate, "stop": stop / a.rate}
            for subject, code, start, stop in zip(subjects, a.behavior.tolist(), a.start.tolist(), a.stop.tolist(), strict=True)
        ]
    return rows


def budget_table(source: Source, *, by: str = "recording", annotator: str | None = None) -> Table:
    """Return the share of the observed time of each behavior, with bouts and seconds, by recording, by individual, or of all together.

    Parameters
    ----------
    source : Annotation, Recording, Dataset, recordings, or mapping of names to annotations
    by : {"recording", "individual", "all"}
    annotator : str, optional
        Which annotator of each recording.

    Examples
    --------
    >>> [(row["unit"], row["behavior"], round(row["share"], 3)) for row in budget_table({"day 1": annotation})]
    [('day 1', 'attack', 0.05), ('day 1', 'mount', 0.1)]
    """
    if by not in BY:
        raise ParameterError(f"`by` must be {', '.join(BY[:-1])} or {BY[-1]}, got {by!r}")
    annotations = named_annotations(source, annotator)
    unit_of = {name: name for name in annotations}
    if by == "all":
        unit_of = dict.fromkeys(annotations, "all")
    elif by == "individual":
        recordings = [source] if isinstance(source, Recording) else [] if isinstance(source, Annotation | Mapping) else list(source)
        unit_of |= {recording.id: recording.individual for recording in recordings}
    rows: Table = []
    for unit in dict.fromkeys(unit_of[name] for name in annotations):
        concerned = [a for name, a in annotations.items() if unit_of[name] == unit]
        totals: dict[str, Row] = {}
        for row in time_budget(*concerned):
            known_values = totals.setdefault(
                row["behavior"], {"unit": unit, "behavior": row["behavior"], "shares": [], "seconds": 0.0, "bouts": 0}
            )
            known_values["seconds"] += row["seconds"]
            known_values["bouts"] += row["bouts"]
            known_values["shares"] += [] if row["share"] is None else [row["share"]]
        for row in totals.values():
            shares = row.pop("shares")  # one of each subject
            rows.append({**row, "share": float(np.mean(shares)) if shares else None})
    return rows


def transition_table(source: Source, *, annotator: str | None = None, background: bool = False) -> Table:
    """Return how often each behavior is followed by each other one, and the share of the transitions from the first.

    Bouts follow each other by their starts, separately for each recording and subject. Bouts of the same behavior in a row are one.

    Parameters
    ----------
    source : Annotation, Recording, Dataset, recordings, or mapping of names to annotations
    annotator : str, optional
        Which annotator of each recording.
    background : bool
        Whether the background is a behavior here; by default its bouts are ignored.

    Examples
    --------
    >>> labels = Annotation.from_frames([0, 1, 0, 2, 0, 1], ["rest", "walk", "groom"], rate=1)
    >>> [(row["behavior"], row["next"], row["count"]) for row in transition_table(labels) if row["count"]]
    [('rest', 'walk', 2), ('rest', 'groom', 1), ('walk', 'rest', 1), ('groom', 'rest', 1)]
    """
    annotations = named_annotations(source, annotator).values()
    ethogram = join_ethograms(a.ethogram for a in annotations)
    counts = np.zeros((len(ethogram), len(ethogram)), dtype=np.int64)
    for a in annotations:
        codes = np.array([ethogram.code(name) for name in a.ethogram.names], dtype=np.int64)
        for subject in np.unique(a.subject):
            chosen = a.subject == subject
            if not background and a.ethogram.background is not None:
                chosen &= a.behavior != a.ethogram.background
            order = codes[a.behavior[chosen]]  # bouts are sorted by start
            changed = order[1:] != order[:-1]
            np.add.at(counts, (order[:-1][changed], order[1:][changed]), 1)
    kept = [code for code in range(len(ethogram)) if background or code != ethogram.background]
    totals = counts.sum(axis=1)
    return [
        {
            "behavior": ethogram[i].name,
            "next": ethogram[j].name,
            "count": int(counts[i, j]),
            "share": float(counts[i, j] / totals[i]) if totals[i] else None,
        }
        for i in kept
        for j in kept
    ]


def duration_table(source: Source, *, behaviors: Sequence[str] | None = None, annotator: str | None = None) -> Table:
    """Return the duration in seconds of each bout, except point events and bouts of the background.

    Examples
    --------
    >>> [(row["behavior"], round(row["seconds"], 3)) for row in duration_table(annotation)]
    [('attack', 0.167), ('mount', 0.333)]
    """
    annotations = named_annotations(source, annotator)
    ethogram = join_ethograms(a.ethogram for a in annotations.values())
    for name in behaviors or ():
        ethogram.code(name)
    chosen = behaviors or [name for name in ethogram.names if name != ethogram.background_name]
    rows: Table = []
    for behavior in chosen:
        for name, a in annotations.items():
            if behavior in a.ethogram:
                spans = a.spans(behavior)
                seconds = ((spans.stop - spans.start) / a.rate)[spans.stop > spans.start]
                rows += [{"name": name, "behavior": behavior, "seconds": float(value)} for value in seconds]
    return rows


def confusion_table(scores: Scores) -> Table:
    """Return the frames of each true and predicted behavior, and their share of the frames of the true one.

    Raises
    ------
    EthobenchError
        If behaviors overlap, so that there is no confusion matrix.
    """
    matrix = scores.pooled_statistics("frames.accuracy")
    if matrix is None or np.isnan(matrix).any():
        raise EthobenchError("there is no confusion matrix, because behaviors overlap")
    labels = [*scores.ethogram.names, *([NO_BEHAVIOR] if scores.ethogram.background is None else [])]
    rows: Table = []
    for truth, counts in zip(labels, matrix, strict=True):
        total = counts.sum()
        shares = [float(n / total) if total else None for n in counts]
        rows += [{"truth": truth, "prediction": p, "frames": int(n), "share": s} for p, n, s in zip(labels, counts, shares, strict=True)]
    return rows


def agreement_table(result: Agreement, measure: str = "kappa") -> Table:
    """Return the agreement of each pair of annotators by behavior ("all behaviors" first), with its 95 % interval where there is one."""
    if measure not in PAIR_METRICS:
        raise ParameterError(f"`measure` must be one of {', '.join(PAIR_METRICS)}, got {measure!r}")
    return [
        {
            "annotators": f"{row['annotator_1']} – {row['annotator_2']}",
            "behavior": row["behavior"] or "all behaviors",
            "value": row[measure],
            "low": row.get(f"{measure}_low"),
            "high": row.get(f"{measure}_high"),
        }
        for row in result.pairs
        if row["behavior"] not in result.never_annotated
    ]


def reliability_table(scores: Scores) -> Table:
    """Return the share of frames with a behavior in ten bins of its predicted probability.

    Raises
    ------
    EthobenchError
        If the predictions have no probabilities.
    """
    table = scores.pooled_statistics("probabilities.average_precision")
    if table is None or np.isnan(table).any():
        raise EthobenchError("a reliability diagram needs predictions with probabilities")
    true, frames, total = probabilities.reliability(table)
    return [
        {"behavior": behavior.name, "probability": float(expected / n), "share": float(n_true / n), "frames": int(n)}
        for code, behavior in enumerate(scores.ethogram)
        if code != scores.ethogram.background and true[code].sum()
        for n_true, n, expected in zip(true[code], frames[code], total[code], strict=True)
        if n
    ]


def position_table(source: Recording | Poses, *, individual: str | None = None, keypoint: str | None = None) -> dict[str, Any]:
    """Return the path of an animal: ``x`` and ``y`` (n_frames,), NaN where it was not tracked, and ``rate`` (None if unknown).

    Parameters
    ----------
    source : Recording or Poses
    individual : str, optional
        Which animal; the first by default.
    keypoint : str, optional
        Which body point; by default the centroid, the mean of the tracked keypoints.
    """
    poses = source.signals if isinstance(source, Recording) else source
    if not isinstance(poses, Poses):
        raise EthobenchError("there are no poses, so there is no path to draw")
    index = 0 if individual is None else _position(poses.individuals, individual, "individual")
    points = np.asarray(poses.positions[:, index, :, :2], dtype=float)
    if keypoint is not None:
        path = points[:, _position(poses.keypoints, keypoint, "keypoint")]
    else:
        tracked = ~np.isnan(points).any(axis=2)
        count = tracked.sum(axis=1)
        sums = np.where(tracked[..., None], points, 0.0).sum(axis=1)
        path = np.divide(sums, count[:, None], out=np.full_like(sums, np.nan), where=count[:, None] > 0)
    rate = poses.rate or (source.rate if isinstance(source, Recording) else None)
    return {"individual": poses.individuals[index], "x": path[:, 0], "y": path[:, 1], "rate": rate}


def _position(names: Sequence[str], name: str, kind: str) -> int:
    if name not in names:
        raise NotFoundError(f"no {kind} {name!r}; available: {', '.join(names)}")
    return names.index(name)


def unobserved_spans(annotation: Annotation, subject: str | None = None) -> Any:
    """Return the unobserved spans of an annotation in seconds, as pairs of start and length (n_spans, 2)."""
    hidden = iv.complement(annotation.observed.of_all(annotation.ethogram.names, subject), annotation.n_frames)
    return np.stack((hidden.start, hidden.stop - hidden.start), axis=1) / annotation.rate


def joined(annotations: Iterable[Annotation]) -> Ethogram:
    """Return the joined ethogram of annotations."""
    return join_ethograms(a.ethogram for a in annotations)


def learning_curve_table(rows: Sequence[Mapping[str, Any]], sizes: Mapping[tuple[str, ...], float], measure: str = "f1") -> Table:
    """Return scores against the mean number of training recordings: ``model``, ``recordings``, ``mean``, ``low`` and ``high``.

    Parameters
    ----------
    rows : sequence of mappings
        As `ethobench.benchmarks.results.results_table` returns them.
    sizes : mapping
        Mean number of training recordings by benchmark, dataset, model and setting; see `training_sizes`.
    measure : str
        Which score. The band extends one standard deviation over individuals to either side.

    Raises
    ------
    NotFoundError
        If there is no such score.
    """
    measures = dict.fromkeys(row["metric"] for row in rows)
    if measure not in measures:
        raise NotFoundError(f"no measure {measure!r}; available: {', '.join(measures)}")
    suite = next(row["suite"] for row in rows if row["metric"] == measure)
    table: Table = []
    for row in rows:
        size = sizes.get((row["benchmark"], row["dataset"], row["model"], row["setting"]))
        if row["metric"] == measure and row["suite"] == suite and row["mean"] is not None and size is not None:
            spread = row["std"]
            low, high = (None, None) if spread is None else (row["mean"] - spread, row["mean"] + spread)
            table.append(
                {"dataset": row["dataset"], "model": row["model"], "recordings": size, "mean": row["mean"], "low": low, "high": high}
            )
    return sorted(table, key=lambda row: (row["dataset"], row["model"], row["recordings"]))


def training_sizes(jobs: Iterable[Any]) -> dict[tuple[str, ...], float]:
    """Return the mean number of training recordings of jobs, by benchmark, dataset, model and setting."""
    counts: dict[tuple[str, ...], list[int]] = {}
    for job in jobs:
        counts.setdefault((job.benchmark, job.dataset, job.model, str(job.setting)), []).append(len(job.train))
    return {key: sum(numbers) / len(numbers) for key, numbers in counts.items()}


def group_table(recordings: Iterable[Recording], column: str, *, annotator: str | None = None) -> Table:
    """Return the share of the observed time of each behavior by recording, with its individual and group.

    Parameters
    ----------
    recordings : iterable of Recording
    column : str
        Entry of the recordings' `metadata` (a column of ``recordings.csv``) that names the group, such as "treatment".
    annotator : str, optional
        Which annotator of each recording.

    Raises
    ------
    NotFoundError
        If a recording has no such entry.
    """
    recordings = list(recordings)
    missing = [recording.id for recording in recordings if not str(recording.metadata.get(column, "")).strip()]
    if missing:
        available = ", ".join(dict.fromkeys(name for recording in recordings for name in recording.metadata)) or "none"
        raise NotFoundError(
            f"{len(missing)} of {len(recordings)} recordings have no {column!r}, such as {missing[0]!r}; columns of the study: {available}"
        )
    group_of = {recording.id: (recording.individual, str(recording.metadata[column])) for recording in recordings}
    background = {a.ethogram.background_name for recording in recordings for a in recording.annotations.values()}
    return [
        {"recording": row["unit"], "individual": group_of[row["unit"]][0], "group": group_of[row["unit"]][1], "behavior": row["behavior"]}
        | {"value": row["share"]}
        for row in budget_table(recordings, annotator=annotator)
        if row["behavior"] not in background
    ]
