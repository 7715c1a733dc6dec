"""The result of scoring, with its intervals, breakdowns and comparisons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Behavior, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError, Note, NotFoundError
from ethobench.core.intervals import BoolArray, IntArray
from ethobench.core.occurrence import Occurrence
from ethobench.metrics.base import Array, Statistics
from ethobench.metrics.bootstrap import (
    HISTOGRAM_RESAMPLES,
    LEVEL,
    MIN_GROUPS,
    RESAMPLES,
    Resampled,
    confidence_interval,
    probability_higher,
    sample_weights,
    too_few,
)
from ethobench.metrics.cases import Case
from ethobench.metrics.measures import Measure, Resampler, Sample, nanmean
from ethobench.metrics.occurrence import occurrence_of
from ethobench.metrics.state import pack, statistics_name, unpack
from ethobench.metrics.suites import Suite, suites

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("suite", "metric", "behavior", "recording", "value", "low", "high")


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
        The same for each behavior.
    cases : list of Case
        The recordings as they were compared.
    notes : list of Note
        What was pooled, left out or not looked at.
    """

    def __init__(
        self,
        suite: Suite,
        ethogram: Ethogram,
        owners: Mapping[str, str],
        *,
        cases: list[Case] | None = None,
        scored: Iterable[bool] | None = None,
        resamples: int = RESAMPLES,
        seed: int = 0,
    ) -> None:
        self.suite, self.ethogram = suite, ethogram
        self.recordings, self.individuals = tuple(owners), tuple(dict.fromkeys(owners.values()))
        self.cases, self._resamples, self._seed = cases or [], resamples, seed
        self._statistics: dict[Statistics, Array] = {}
        self._resamplers: dict[int, Resampler] = {}
        membership = np.array([[float(owner == who) for owner in owners.values()] for who in self.individuals])
        foreground = np.array([code != ethogram.background for code in range(len(ethogram))], dtype=bool)
        known = [True] * len(ethogram) if scored is None else list(scored)
        points = np.array([b.point for b in ethogram], dtype=bool)
        self._sample = Sample(membership, foreground, np.array(known, dtype=bool), points)

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {self.overall[name]:.3f}" for name in self.suite.headline)
        return f"Scores({self.suite.name}, {len(self.recordings)} recordings: {figures})"

    @cached_property
    def overall(self) -> dict[str, float]:
        """The suite's figures."""
        return {m.name: self._value(m)[0] for m in self.suite.measures}

    @cached_property
    def behaviors(self) -> dict[str, dict[str, float]]:
        """The suite's figures of each behavior that was looked at."""
        names = [(code, b.name) for code, b in enumerate(self.ethogram) if self._sample.scored[code]]
        single = [m for m in self.suite.measures if m.behaviors and not m.of.joint]
        return {name: {m.name: float(self._value(m)[1][code]) for m in single} for code, name in names}

    @property
    def unit(self) -> str:
        """What intervals count: ``"individuals"``, or ``"recordings"`` where no individuals are named and each is taken as one."""
        own = (
            name == who or name.startswith((f"{who}@", f"{who} ("))
            for name, who in zip(self.recordings, self.individuals_by_recording, strict=True)
        )
        return "recordings" if all(own) else "individuals"

    @cached_property
    def intervals(self) -> dict[str, Any]:
        """95 % intervals over individuals, as `ethobench.metrics.bootstrap` defines them.

        ``overall`` has one for each measure and ``behaviors`` the same for each behavior: ``(low, high)``, or None where it is
        withheld. ``n`` is the number of individuals, or of recordings (``unit``). ``reason`` says why there are no intervals at all,
        such as fewer than five individuals; else it is None, and ``withheld`` gives ``n`` and ``reason`` of every score that has
        a value but no interval.
        """
        reason = "scored without resampling" if self._resamples < 1 else too_few(len(self.individuals), self.unit)
        overall: dict[str, Any] = dict.fromkeys(self.overall)
        behaviors: dict[str, dict[str, Any]] = {name: dict.fromkeys(values) for name, values in self.behaviors.items()}
        withheld: dict[str, Any] = {"overall": {}, "behaviors": {name: {} for name in behaviors}}
        codes = {name: 1 + self.ethogram.code(name) for name in behaviors}
        for measure in self.suite.measures if not reason else ():
            values, lows, highs, n = self._ends(measure)
            places = [(overall, withheld["overall"], 0), *((behaviors[b], withheld["behaviors"][b], codes[b]) for b in behaviors)]
            for table, reasons, place in places:
                if measure.name not in table or np.isnan(values[place]):
                    continue
                if lows[place] <= highs[place]:
                    table[measure.name] = (float(lows[place]), float(highs[place]))
                else:
                    reasons[measure.name] = {"n": int(n[place]), "reason": self._why_withheld(measure, int(n[place]))}
        withheld["behaviors"] = {name: reasons for name, reasons in withheld["behaviors"].items() if reasons}
        result: dict[str, Any] = {"level": LEVEL, "overall": overall, "behaviors": behaviors}
        return {**result, "n": len(self.individuals), "unit": self.unit, "reason": reason or None, "withheld": withheld}

    def _ends(self, measure: Measure) -> tuple[Array, Array, Array, IntArray]:
        """Return a measure's values, the ends of their intervals, and in how many individuals each is defined; overall comes first."""
        value, by_behavior = self._value(measure)
        values = np.append(value, by_behavior)
        undefined = np.full(len(values), np.nan)
        if np.isnan(value) or measure.spread:
            return values, undefined, undefined, np.full(len(values), len(self.individuals))
        n = self.contributing(measure).sum(axis=0)
        return values, *confidence_interval(values, self.resampled(measure), n, measure.of.bounds, on_logit=measure.of.on_logit), n

    def _why_withheld(self, measure: Measure, n: int) -> str:
        if measure.spread:
            return "no interval of a standard deviation"
        return too_few(n, self.unit) or f"no spread: the same in all {self.unit}"

    @property
    def interval_note(self) -> str:
        """What intervals are based on, or why there are none, in a few words to print once with a table."""
        n = len(self.individuals)
        count = f"n = {n} {self.unit if n != 1 else self.unit.removesuffix('s')}"
        if self.intervals["reason"]:
            return f"{count}; {self.intervals['reason']}"
        few = [name for name, found in self.intervals["withheld"]["behaviors"].items() if any(w["n"] < MIN_GROUPS for w in found.values())]
        return f"{count}; in brackets 95 % intervals" + (
            f"; not where fewer than {MIN_GROUPS} have a value: {', '.join(few)}" if few else ""
        )

    @cached_property
    def coverage(self) -> float:
        """Share of the frames looked at by the truth that the prediction looked at too."""
        seen = both = 0
        for case in self.cases:
            truth = case.truth.observed.of_any()
            seen += iv.total(truth)
            both += iv.overlap(truth, case.pred.observed.of_any())
        return both / seen if seen else float("nan")

    @cached_property
    def notes(self) -> list[Note]:
        """What a reader of the figures must know."""
        notes = []
        pooled = [c for c in self.cases if c.merged and (c.truth.subjects or c.pred.subjects)]
        if pooled:
            notes.append(Note(f"subjects were pooled in {len(pooled)} of {len(self.cases)} recordings"))
        if self.coverage < 1:
            notes.append(Note(f"the prediction covers {self.coverage:.1%} of the frames looked at; the rest counts as without behavior"))
        points = [b.name for b in self.ethogram if b.point]
        if points:
            notes.append(Note(f"point events count in the figures of bouts only: {', '.join(points)}"))
        if not all(case.exclusive for case in self.cases):
            notes.append(Note("behaviors overlap, so figures of all behaviors together are undefined"))
        return notes

    @cached_property
    def occurrence(self) -> Occurrence | None:
        """How often each behavior was annotated and predicted; None where stored scores do not tell."""
        return occurrence_of(self)

    @cached_property
    def absent(self) -> list[str]:
        """Behaviors that neither side shows in any recording."""
        never = () if self.occurrence is None else self.occurrence.never_annotated
        return [name for name in never if self._sample.scored[self.ethogram.code(name)] and not self.ethogram[name].point]

    def occurrence_lines(self, occurrence: Occurrence | None = None) -> list[str]:
        """Name the behaviors that were never annotated, and those that were only predicted: one line each.

        Parameters
        ----------
        occurrence : Occurrence, optional
            Of more than these scores, where other annotators or predictions are shown beside them.
        """
        occurrence = occurrence or self.occurrence
        if occurrence is None:
            return []
        counted = any(name not in self.undefined_behaviors for name in occurrence.never_annotated if name in self.behaviors)
        return occurrence.lines(f"the means of suite {self.suite.name} include them" if counted else "")

    @property
    def undefined_behaviors(self) -> list[str]:
        """Behaviors that tables leave out: they never occur, and the suite defines none of its headline scores for them."""
        never = () if self.occurrence is None else self.occurrence.never_annotated
        figures = {name: [self.behaviors.get(name, {}).get(m, np.nan) for m in self.suite.headline] for name in never}
        return [name for name, values in figures.items() if np.isnan(values).all()]

    def confusion(self) -> dict[str, Any] | None:
        """Return frames by true (row) and predicted (column) behavior for each individual; None where behaviors overlap.

        Without a named background the last label, an empty one, stands for frames without any behavior.
        """
        if not self.cases or not all(case.exclusive for case in self.cases):
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
        members = self._members(unit)
        if len(members) == 1:
            return {name: {"overall": self.overall, "behaviors": self.behaviors} for name in members}
        chosen = np.array(list(members.values()))
        result: dict[str, dict[str, Any]] = {name: {"overall": {}, "behaviors": {b: {} for b in self.behaviors}} for name in members}
        for measure in self.suite.measures:
            overall, behaviors = self._values_of(measure, chosen)
            for k, part in enumerate(result.values()):
                part["overall"][measure.name] = float(overall[k])
                for b, figures in part["behaviors"].items() if behaviors.shape[1] and measure.behaviors else ():
                    figures[measure.name] = float(behaviors[k, self.ethogram.code(b)])
        return result

    def overall_per(self, unit: str) -> dict[str, Array]:
        """Return the figures of all behaviors together, one value for each recording or individual, by measure."""
        members = self._members(unit)
        if len(members) == 1:
            return {name: np.array([value]) for name, value in self.overall.items()}
        chosen = np.array(list(members.values()))
        return {measure.name: self._values_of(measure, chosen)[0] for measure in self.suite.measures}

    def _members(self, unit: str) -> dict[str, Array]:
        """Return which recordings (1, else 0) belong to each recording or individual."""
        if unit not in ("recording", "individual"):
            raise NotFoundError(f"figures are broken down per recording or individual, not {unit!r}")
        rows = np.eye(len(self.recordings)) if unit == "recording" else self._sample.membership
        return dict(zip(self.recordings if unit == "recording" else self.individuals, rows, strict=True))

    def _values_of(self, measure: Measure, chosen: Array) -> tuple[Array, Array]:
        """Return a measure's values of several sets of recordings, each taken as one individual."""
        metric = measure.of
        if metric.probabilistic and any(case.probabilities is None for case in self.cases):
            return np.full(len(chosen), np.nan), np.full((len(chosen), len(self.ethogram)), np.nan)
        if self.cases and metric.exact is not None:
            from ethobench.metrics.probabilities import ranking_of

            groups = [[self.cases[k] for k in np.flatnonzero(row)] for row in chosen]
            values = np.array([[metric.exact(ranking_of(g, code)) for code in range(len(self.ethogram))] for g in groups])
        elif measure.over in ("recordings", "cells"):
            table, parts = self.statistics(measure), []
            for row in chosen > 0:
                alone = replace(self._sample, membership=np.eye(int(row.sum())))
                parts.append(Resampler(alone).evaluate(measure, table[row]))
            return np.array([p[0][0] for p in parts]), np.array([p[1][0] for p in parts])
        else:
            statistics = self.statistics(measure)
            summed = (chosen @ statistics.reshape(len(statistics), -1)).reshape(-1, *statistics.shape[1:])
            values = self._sample.defined(metric, metric.value(summed))
            if measure.spread:
                values = np.zeros_like(values)
        if metric.joint:
            return values, np.empty((len(chosen), 0))
        return nanmean(values[:, self._sample.averaged(measure)]), values

    def select(self, recordings: Collection[str]) -> Scores:
        """Return the scores of some of the recordings.

        Parameters
        ----------
        recordings : collection of str
            Names among `recordings`.
        """
        unknown = [name for name in recordings if name not in self.recordings]
        if unknown:
            raise NotFoundError(f"not scored: {', '.join(unknown)}; scored are: {', '.join(self.recordings)}")
        rows = [k for k, name in enumerate(self.recordings) if name in recordings]
        owners = {self.recordings[k]: self.individuals_by_recording[k] for k in rows}
        options: dict[str, Any] = {"scored": self._sample.scored, "resamples": self._resamples, "seed": self._seed}
        chosen = Scores(self.suite, self.ethogram, owners, cases=[self.cases[k] for k in rows] if self.cases else None, **options)
        chosen._statistics = {function: table[rows] for function, table in self._statistics.items()}
        return chosen

    @property
    def individuals_by_recording(self) -> tuple[str, ...]:
        """The individual of each recording."""
        return tuple(self.individuals[int(np.argmax(column))] for column in self._sample.membership.T)

    def to_state(self) -> dict[str, Any]:
        """Return the statistics themselves as plain values, so that any aggregate can be made again by `from_states`."""
        tables = {statistics_name(m.of.statistics): self.statistics(m) for m in self.suite.measures}
        return {
            "suite": self.suite.name,
            "behaviors": list(self.ethogram.names),
            "points": [b.name for b in self.ethogram if b.point],
            "background": self.ethogram.background_name,
            "scored": self._sample.scored.tolist(),
            "recordings": list(self.recordings),
            "individuals": list(self.individuals_by_recording),
            "statistics": {name: pack(table) for name, table in tables.items()},
        }

    @classmethod
    def from_states(cls, states: Sequence[Mapping[str, Any]], *, resamples: int = RESAMPLES, seed: int = 0) -> Scores:
        """Bring the statistics of several scorings in one suite and ethogram together.

        Figures that need ranked scores (average precision) come from bins then, which is close but not exact.
        """
        first = states[0]
        shared = ("suite", "behaviors", "background")
        if any([state[key] for key in shared] != [first[key] for key in shared] for state in states):
            raise MismatchError("only scores of the same suite and ethogram can be brought together")
        owners: dict[str, str] = {}
        for k, state in enumerate(states):
            for name, who in zip(state["recordings"], state["individuals"], strict=True):
                owners[name if name not in owners else f"{name} ({k})"] = who
        ethogram = Ethogram([Behavior(name, point=name in first["points"]) for name in first["behaviors"]], first["background"])
        scored = np.any([state["scored"] for state in states], axis=0)
        scores = cls(suites[first["suite"]], ethogram, owners, scored=scored, resamples=resamples, seed=seed)
        for statistics in dict.fromkeys(measure.of.statistics for measure in scores.suite.measures):
            name = statistics_name(statistics)
            scores._statistics[statistics] = unpack([state["statistics"][name] for state in states])
        return scores

    def table(self) -> pd.DataFrame:
        """Return one tidy table: overall, by behavior, and by recording.

        Columns are suite, metric, behavior, recording, value, low, high; an empty behavior or recording means all of them, a missing
        low and high that the interval is withheld (see `intervals`).
        """
        import pandas as pd

        low_high = (float("nan"), float("nan"))
        rows: list[tuple[Any, ...]] = []
        for name, value in self.overall.items():
            rows.append((self.suite.name, name, "", "", value, *(self.intervals["overall"][name] or low_high)))
        for behavior, figures in self.behaviors.items():
            between = self.intervals["behaviors"][behavior]
            rows += [(self.suite.name, name, behavior, "", value, *(between[name] or low_high)) for name, value in figures.items()]
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
                "notes": [*(str(note) for note in self.notes), *self.occurrence_lines()],
            }
        )
        return plain

    def compare(self, other: Scores, measures: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
        """Compare with another model or annotator on the same recordings.

        Parameters
        ----------
        other : Scores
        measures : collection of str, optional
            Which measures; all unless given.

        Returns
        -------
        dict
            By measure: ``difference`` (this one minus the other), ``low`` and ``high`` of its 95 % interval over individuals (paired),
            and ``better``, the probability that this one is higher in the population (`probability_higher`; never quite 0 or 1).
            ``n`` counts the individuals in whom both scores are defined. With fewer than five of them, or where the difference is the
            same in all, ``low``, ``high`` and ``better`` are None, and ``reason`` says so.
        """
        if (self.suite.name, self.recordings, self.individuals) != (other.suite.name, other.recordings, other.individuals):
            raise MismatchError("only scores of the same suite, recordings and individuals can be compared")
        result = {}
        for measure in self.suite.measures:
            if measures is None or measure.name in measures:
                result[measure.name] = self._compare(other, measure)
        return result

    def _compare(self, other: Scores, measure: Measure) -> dict[str, Any]:
        difference = self.overall[measure.name] - other.overall[measure.name]
        row: dict[str, Any] = {"difference": difference, "low": None, "high": None, "better": None, "n": len(self.individuals)}
        if self._resamples < 1 or self._resamples != other._resamples:
            return {**row, "reason": "scored without resampling, or with different numbers of resamples"}
        if np.isnan(difference):
            return {**row, "reason": "undefined for one of the two"}
        if measure.spread:
            return {**row, "reason": "no interval of a standard deviation"}
        defined = (self.contributing(measure) & other.contributing(measure)).sum(axis=0)
        row["n"] = n = int(defined[0])
        if few := too_few(n, self.unit):
            return {**row, "reason": few}
        resampled = (self.resampled(measure) - other.resampled(measure)).of(0)
        low, high = confidence_interval(difference, resampled, n, measure.difference_bounds)
        if np.isnan(low):
            return {**row, "reason": f"no spread: the same difference in all {self.unit}"}
        return {**row, "low": float(low), "high": float(high), "better": probability_higher(difference, resampled, n), "reason": None}

    def contributing(self, measure: Measure) -> BoolArray:
        """Tell in which individuals (rows) a measure is defined: overall in the first column, then of each behavior."""
        return np.column_stack(Resampler(self._sample).contributing(measure, self.statistics(measure)))

    def resampled(self, measure: Measure) -> Resampled:
        """Return a measure's values in other samples of the individuals: overall in the first column, then of each behavior."""
        count = min(self._resamples, HISTOGRAM_RESAMPLES) if measure.of.kind == "histogram" else self._resamples
        if count not in self._resamplers:
            self._resamplers[count] = Resampler(self._sample, sample_weights(len(self.individuals), count, self._seed))
        values = np.column_stack(self._resamplers[count].evaluate(measure, self.statistics(measure)))
        return Resampled(values[:count], values[count:])

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
        if self.cases and metric.exact is not None and measure.over == "pooled":
            values = self._exact[metric.name]
            return float(nanmean(values[self._sample.averaged(measure)])), values
        overall, behaviors = Resampler(self._sample).evaluate(measure, self.statistics(measure))
        return float(overall[0]), behaviors[0]

    @cached_property
    def _exact(self) -> dict[str, Array]:
        """Values that need the ranked scores of all frames: each behavior is ranked once for all of them."""
        from ethobench.metrics.probabilities import ranking_of

        wanted = {m.of.name: m.of.exact for m in self.suite.measures if m.of.exact is not None and m.over == "pooled"}
        values = {name: np.full(len(self.ethogram), np.nan) for name in wanted}
        for code in range(len(self.ethogram)):
            ranking = ranking_of(self.cases, code)
            for name, function in wanted.items():
                values[name][code] = function(ranking)
        return values


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
