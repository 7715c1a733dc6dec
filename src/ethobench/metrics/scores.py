"""Scoring: the verb, and the result with its intervals, breakdowns and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError, Note, NotFoundError
from ethobench.metrics._base import Array, Statistics
from ethobench.metrics._cases import Case
from ethobench.metrics._measures import Measure, Resampler, Sample, nanmean
from ethobench.metrics._pairing import make_case, make_pairs
from ethobench.metrics.bootstrap import HISTOGRAM_RESAMPLES, LEVEL, RESAMPLES, interval, resampling_weights
from ethobench.metrics.suites import Suite, suites

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("suite", "metric", "behavior", "recording", "value", "low", "high")


def score(
    pred: Annotation | Prediction | Mapping[str, Any],
    truth: Annotation | Prediction | Mapping[str, Any] | Dataset | None = None,
    *,
    suite: str = "ethobench",
    individuals: Mapping[str, str] | None = None,
    annotator: str | None = None,
    behaviors: Iterable[str] | str | None = None,
    tracks: str = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Scores:
    """Say how good predictions are.

    Parameters
    ----------
    pred : Annotation, Prediction, or mapping
        One prediction; or recordings' names to ``(prediction, truth)``; or recordings' names to predictions, with `truth` a
        Dataset or a mapping of truths.
    truth : Annotation, mapping or Dataset, optional
    suite : str
        Whose definitions: ``"ethobench"``, ``"banos"``, ``"bebe"``, ``"calms21"`` or ``"rodentbench"``.
    individuals : mapping, optional
        Recordings' names to individuals; intervals resample individuals. Each recording is its own unless given.
    annotator : str, optional
        Whose annotations of a Dataset are the truth: a name, ``"consensus"`` or ``"all"``.
    behaviors : iterable of str, optional
        Score only these; ``"all"`` scores every behaviour that either side knows.
    tracks : str
        ``"auto"`` scores subjects apart where both sides name them, ``"merge"`` pools them.
    resamples : int
        For the intervals of additive metrics (at most 1,000 for histograms); 0 for none.
    seed : int
        Of the resampling.

    Examples
    --------
    >>> truth = Annotation.from_frames([0, 0, 1, 1], ["rest", "run"], rate=1)
    >>> pred = Annotation.from_frames([0, 0, 0, 1], ["rest", "run"], rate=1)
    >>> scores = score(pred, truth)
    >>> round(scores.overall["f1"], 3), scores.behaviors["run"]["recall"]
    (0.733, 0.5)
    """
    chosen = suites[suite]
    pairs, who, metadata = make_pairs(pred, truth, individuals, annotator)
    cases = [
        make_case(name, who[name], p, t, chosen, behaviors=behaviors, tracks=tracks, both=False, metadata=metadata.get(name, {}))
        for name, (p, t) in pairs.items()
    ]
    return score_cases(cases, chosen, resamples=resamples, seed=seed)


def score_cases(cases: list[Case], suite: Suite, *, resamples: int = RESAMPLES, seed: int = 0) -> Scores:
    """Score cases that are already made; ethograms are joined by name."""
    ethogram = Ethogram([])
    for case in cases:
        ethogram = ethogram.join(case.ethogram)
    fitted = [case if case.ethogram == ethogram else _refit(case, ethogram) for case in cases]
    return Scores(fitted, suite, ethogram, resamples=resamples, seed=seed)


class Scores:
    """The scores of a set of recordings in one suite.

    Attributes
    ----------
    suite : Suite
    ethogram : Ethogram
    recordings, individuals : tuple of str
        In order; `individuals` without repeats.
    overall : dict of str to float
        By the suite's measures; NaN where undefined.
    behaviors : dict of str to dict
        The same for each behaviour.
    cases : list of Case
        The recordings as they were compared.
    notes : list of Note
        What was pooled, left out or not looked at.
    """

    def __init__(self, cases: list[Case], suite: Suite, ethogram: Ethogram, *, resamples: int = RESAMPLES, seed: int = 0) -> None:
        self.suite, self.ethogram = suite, ethogram
        self.recordings = tuple(case.id for case in cases)
        self.individuals = tuple(dict.fromkeys(case.individual for case in cases))
        self.cases, self._resamples, self._seed = cases, resamples, seed
        self._statistics: dict[Statistics, Array] = {}
        self._resamplers: dict[int, Resampler] = {}
        membership = np.array([[float(case.individual == who) for case in cases] for who in self.individuals])
        foreground = np.array([code != ethogram.background for code in range(len(ethogram))], dtype=bool)
        scored = np.array([self._was_observed(code) for code in range(len(ethogram))], dtype=bool)
        self._sample = Sample(membership, foreground, scored)

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {self.overall[name]:.3f}" for name in self.suite.headline)
        return f"Scores({self.suite.name}, {len(self.recordings)} recordings: {figures})"

    @cached_property
    def overall(self) -> dict[str, float]:
        """The suite's figures."""
        return {m.name: self._value(m)[0] for m in self.suite.measures}

    @cached_property
    def behaviors(self) -> dict[str, dict[str, float]]:
        """The suite's figures of each behaviour that was looked at."""
        names = [(code, b.name) for code, b in enumerate(self.ethogram) if self._sample.scored[code]]
        single = [m for m in self.suite.measures if m.behaviors and not m.of.joint]
        return {name: {m.name: float(self._value(m)[1][code]) for m in single} for code, name in names}

    @cached_property
    def intervals(self) -> dict[str, Any]:
        """Percentile intervals (95 %) by resampling individuals: ``overall`` and ``behaviors``; none for one individual."""
        result: dict[str, Any] = {"level": LEVEL, "overall": {}, "behaviors": {}}
        if len(self.individuals) < 2 or self._resamples < 1:
            return result
        for measure in self.suite.measures:
            if np.isnan(self.overall[measure.name]):
                continue
            overall, behaviors = self.resampled(measure)
            low, high = interval(overall)
            result["overall"][measure.name] = (float(low), float(high))
            lows, highs = interval(behaviors)
            for code in range(behaviors.shape[1]):
                if self._sample.scored[code]:
                    result["behaviors"].setdefault(self.ethogram[code].name, {})[measure.name] = (float(lows[code]), float(highs[code]))
        return result

    @cached_property
    def coverage(self) -> float:
        """Share of the frames looked at by the truth that the prediction looked at too."""
        seen = both = 0
        for case in self.cases:
            truth = case.truth.observed.anywhere()
            seen += iv.total(truth)
            both += iv.shared(truth, case.pred.observed.anywhere())
        return both / seen if seen else float("nan")

    @cached_property
    def notes(self) -> list[Note]:
        """What a reader of the figures must know."""
        notes = []
        pooled = [c for c in self.cases if c.merged and (c.truth.subjects or c.pred.subjects)]
        if pooled:
            notes.append(Note(f"subjects were pooled in {len(pooled)} of {len(self.cases)} recordings"))
        if self.coverage < 1:
            notes.append(Note(f"the prediction covers {self.coverage:.1%} of the frames looked at; the rest counts as without behaviour"))
        unseen = [b.name for code, b in enumerate(self.ethogram) if not self._sample.scored[code]]
        if unseen:
            notes.append(Note(f"never looked at, so not scored: {', '.join(unseen)}"))
        if self.absent:
            notes.append(Note(f"neither there nor predicted, so left out of means: {', '.join(self.absent)}"))
        points = [b.name for b in self.ethogram if b.point]
        if points:
            notes.append(Note(f"point events count in the figures of bouts only: {', '.join(points)}"))
        if not all(case.exclusive for case in self.cases):
            notes.append(Note("behaviours overlap, so figures of all behaviours together are undefined"))
        return notes

    @cached_property
    def absent(self) -> list[str]:
        """Behaviours that neither side shows in any recording."""
        names = []
        for code, behavior in enumerate(self.ethogram):
            used = any((side.behavior == code).any() for case in self.cases for side in (case.truth, case.pred))
            if not used and self._sample.scored[code] and not behavior.point and code != self.ethogram.background:
                names.append(behavior.name)
        return names

    def confusion(self) -> dict[str, Any] | None:
        """Return frames by true (row) and predicted (column) behaviour for each individual; None where behaviours overlap.

        Without a named background the last label, an empty one, stands for frames without any behaviour.
        """
        if not all(case.exclusive for case in self.cases):
            return None
        labels = [*self.ethogram.names, *([""] if self.ethogram.background is None else [])]
        matrices = np.tensordot(self._sample.membership, np.stack([case.confusion for case in self.cases]), axes=1)
        by_individual = {who: matrices[i].tolist() for i, who in enumerate(self.individuals)}
        return {"labels": labels, "matrix": matrices.sum(axis=0).tolist(), "individuals": by_individual}

    def per(self, unit: str) -> dict[str, dict[str, Any]]:
        """Break the figures down.

        Parameters
        ----------
        unit : {"recording", "individual"}

        Returns
        -------
        dict
            Names to ``{"overall": {...}, "behaviors": {...}}``.
        """
        if unit not in ("recording", "individual"):
            raise NotFoundError(f"figures are broken down per recording or individual, not {unit!r}")
        members: dict[str, list[Case]] = {}
        for case in self.cases:
            members.setdefault(case.id if unit == "recording" else case.individual, []).append(case)
        if len(members) == 1:
            return {name: {"overall": self.overall, "behaviors": self.behaviors} for name in members}
        parts = {name: Scores(cases, self.suite, self.ethogram, resamples=0) for name, cases in members.items()}
        place = {case.id: i for i, case in enumerate(self.cases)}
        for name, part in parts.items():
            rows = [place[case.id] for case in members[name]]
            part._statistics = {f: table[rows] for f, table in self._statistics.items()}
        return {name: {"overall": part.overall, "behaviors": part.behaviors} for name, part in parts.items()}

    def table(self) -> pd.DataFrame:
        """Return one tidy table: overall, by behaviour, and by recording.

        Columns are suite, metric, behavior, recording, value, low, high; an empty behavior or recording means all of them.
        """
        import pandas as pd

        low_high = (float("nan"), float("nan"))
        rows: list[tuple[Any, ...]] = []
        for name, value in self.overall.items():
            rows.append((self.suite.name, name, "", "", value, *self.intervals["overall"].get(name, low_high)))
        for behavior, figures in self.behaviors.items():
            between = self.intervals["behaviors"].get(behavior, {})
            rows += [(self.suite.name, name, behavior, "", value, *between.get(name, low_high)) for name, value in figures.items()]
        for recording, part in self.per("recording").items():
            rows += [(self.suite.name, name, "", recording, value, *low_high) for name, value in part["overall"].items()]
            for behavior, figures in part["behaviors"].items():
                rows += [(self.suite.name, name, behavior, recording, value, *low_high) for name, value in figures.items()]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; undefined ones are None."""
        plain: dict[str, Any] = _plain(
            {
                "suite": self.suite.name,
                "overall": self.overall,
                "behaviors": self.behaviors,
                "intervals": self.intervals,
                "recordings": self.per("recording"),
                "individuals": self.per("individual"),
                "confusion": self.confusion(),
                "coverage": self.coverage,
                "absent": self.absent,
                "notes": [str(note) for note in self.notes],
            }
        )
        return plain

    def compare(self, other: Scores) -> dict[str, dict[str, float]]:
        """Compare with another model or annotator on the same recordings.

        Returns
        -------
        dict
            By measure: ``difference`` (this one minus the other), ``low`` and ``high`` of its 95 % interval over individuals,
            and ``better``, the share of resamples in which this one is higher.
        """
        if (self.suite.name, self.recordings, self.individuals) != (other.suite.name, other.recordings, other.individuals):
            raise MismatchError("only scores of the same suite, recordings and individuals can be compared")
        result = {}
        for measure in self.suite.measures:
            mine, theirs = self.resampled(measure)[0], other.resampled(measure)[0]
            low, high = interval(mine - theirs)
            difference = self.overall[measure.name] - other.overall[measure.name]
            better = float(np.mean((mine > theirs)[~np.isnan(mine - theirs)])) if not np.isnan(mine - theirs).all() else float("nan")
            result[measure.name] = {"difference": difference, "low": float(low), "high": float(high), "better": better}
        return result

    def resampled(self, measure: Measure) -> tuple[Array, Array]:
        """Return a measure's values in all resamples: overall, and by behaviour."""
        count = min(self._resamples, HISTOGRAM_RESAMPLES) if measure.of.kind == "histogram" else self._resamples
        if count not in self._resamplers:
            self._resamplers[count] = Resampler(self._sample, resampling_weights(len(self.individuals), count, self._seed))
        return self._resamplers[count].evaluate(measure, self.statistics(measure))

    def statistics(self, measure: Measure) -> Array:
        """Return the statistics that a measure is made of, recordings first."""
        function = measure.of.statistics
        if function not in self._statistics:
            self._statistics[function] = np.stack([function(case) for case in self.cases])
        return self._statistics[function]

    def _value(self, measure: Measure) -> tuple[float, Array]:
        metric = measure.of
        if metric.probabilistic and any(case.probabilities is None for case in self.cases):
            return float("nan"), np.full(len(self.ethogram), np.nan)
        if metric.exact is not None and measure.over == "pooled":
            values = self._exact[metric.name]
            return float(nanmean(values[self._sample.averaged(measure)])), values
        overall, behaviors = Resampler(self._sample).evaluate(measure, self.statistics(measure))
        return float(overall[0]), behaviors[0]

    @cached_property
    def _exact(self) -> dict[str, Array]:
        """Values that need the ranked scores of all frames: each behaviour is ranked once for all of them."""
        from ethobench.metrics.probabilities import ranking_of

        wanted = {m.of.name: m.of.exact for m in self.suite.measures if m.of.exact is not None and m.over == "pooled"}
        values = {name: np.full(len(self.ethogram), np.nan) for name in wanted}
        for code in range(len(self.ethogram)):
            ranking = ranking_of(self.cases, code)
            for name, function in wanted.items():
                values[name][code] = function(ranking)
        return values

    def _was_observed(self, code: int) -> bool:
        name = self.ethogram[code].name
        return any(iv.total(case.truth.observed.of(name)) or _on_tracks(case, name) for case in self.cases)


def _on_tracks(case: Case, name: str) -> bool:
    return any(iv.total(where) for track, where in case.truth.observed.tracks.items() if track.behavior == name)


def _refit(case: Case, ethogram: Ethogram) -> Case:
    """Express a case in a larger ethogram."""
    from dataclasses import replace

    probabilities = None
    if case.probabilities is not None:
        probabilities = np.zeros((len(case.probabilities), len(ethogram)), dtype=case.probabilities.dtype)
        for code, behavior in enumerate(case.ethogram):
            probabilities[:, ethogram.code(behavior.name)] = case.probabilities[:, code]
    return replace(case, pred=case.pred.with_ethogram(ethogram), truth=case.truth.with_ethogram(ethogram), probabilities=probabilities)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
