"""`Scores`: the result of scoring, with confidence intervals, breakdowns, tables and comparisons."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError, Note, NotFoundError
from ethobench.core.occurrence import Amount, Occurrence
from ethobench.core.wording import count_units, join_names
from ethobench.metrics.base import Array, Measure, measure_label
from ethobench.metrics.bootstrap import LEVEL, MIN_GROUPS, confidence_interval, probability_higher, too_few
from ethobench.metrics.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

MAX_HTML_ROWS = 60
COLUMNS = ("suite", "metric", "behavior", "recording", "value", "low", "high")


class Scores(Evaluation):
    """The scores of a set of recordings in one suite, as `score` returns them.

    Attributes
    ----------
    suite : Suite
        The definitions used.
    ethogram : Ethogram
        The behaviors scored.
    recordings, individuals : tuple of str
        Names in order; `individuals` without duplicates.
    overall : dict of str to float
        Value of each measure of the suite; NaN where undefined.
    behaviors : dict of str to dict
        The same for each behavior.
    intervals : dict
        95 % confidence intervals over individuals.
    pairs : list of AlignedPair
        The recordings as they were compared; empty for scores restored from a store.
    notes : list of Note
        What was pooled, skipped or unobserved.

    See Also
    --------
    score : score predictions.
    Scores.compare : compare two models on the same recordings.

    Examples
    --------
    >>> from ethobench import Annotation, score
    >>> truth = Annotation.from_frames([0, 0, 1, 1], ["rest", "run"], rate=1)
    >>> pred = Annotation.from_frames([0, 0, 0, 1], ["rest", "run"], rate=1)
    >>> scores = score(pred, truth)
    >>> round(scores.overall["f1"], 3), round(scores.behaviors["run"]["f1"], 3)
    (0.733, 0.667)
    >>> scores.interval_note
    'n = 1 recording; no interval below 5 recordings'
    >>> scores.headline_table()["f1"].to_dict()
    {'all': '0.733', 'rest': '0.800', 'run': '0.667'}
    >>> sorted(scores.to_dict())[:4]
    ['absent', 'behaviors', 'confusion', 'coverage']
    """

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {self.overall[name]:.3f}" for name in self.suite.headline)
        return f"Scores({self.suite.name}, {len(self.recordings)} recordings: {values})"

    def _repr_html_(self) -> str:
        """Return the headline table as HTML, for notebooks."""
        from html import escape

        table = self.headline_table().to_html(border=0, max_rows=MAX_HTML_ROWS)
        return f"<p>{escape(self.suite.title)}; {escape(self.interval_note)}</p>\n{table}"

    @cached_property
    def overall(self) -> dict[str, float]:
        """Value of each measure of the suite, all behaviors together."""
        return {m.name: self.evaluate(m)[0] for m in self.suite.measures}

    @cached_property
    def behaviors(self) -> dict[str, dict[str, float]]:
        """Value of each measure of the suite, for each behavior that is observed."""
        names = [(code, b.name) for code, b in enumerate(self.ethogram) if self.grouping.scored[code]]
        measures = [m for m in self.suite.measures if m.behaviors and not m.metric.joint]
        return {name: {m.name: float(self.evaluate(m)[1][code]) for m in measures} for code, name in names}

    @property
    def unit(self) -> str:
        """What intervals count: individuals (or what takes their place in the suite), or recordings if each of them counts as one."""
        names_itself = (
            name == individual or name.startswith((f"{individual}@", f"{individual} ("))
            for name, individual in zip(self.recordings, self.individuals_by_recording, strict=True)
        )
        return "recordings" if all(names_itself) else f"{self.suite.unit}s"

    @cached_property
    def intervals(self) -> dict[str, Any]:
        """95 % confidence intervals over individuals, as defined in `ethobench.metrics.bootstrap`.

        ``overall`` has one for each measure and ``behaviors`` the same for each behavior: ``(low, high)``, or None if it is
        withheld. ``n`` is the number of individuals, or of recordings (``unit``). ``reason`` states why there are no intervals at all,
        such as fewer than five individuals; otherwise it is None, and ``withheld`` has ``n`` and ``reason`` of every score that has
        a value but no interval.
        """
        reason = "scored without resampling" if self._resamples < 1 else too_few(len(self.individuals), self.unit)
        overall: dict[str, Any] = dict.fromkeys(self.overall)
        behaviors: dict[str, dict[str, Any]] = {name: dict.fromkeys(values) for name, values in self.behaviors.items()}
        withheld: dict[str, Any] = {"overall": {}, "behaviors": {name: {} for name in behaviors}}
        columns = {name: 1 + self.ethogram.code(name) for name in behaviors}
        targets = [(overall, withheld["overall"], 0), *((behaviors[b], withheld["behaviors"][b], columns[b]) for b in behaviors)]
        for measure in self.suite.measures if not reason else ():
            values, lows, highs, n = self.evaluate_with_interval(measure)
            for table, reasons, column in targets:
                if measure.name not in table or np.isnan(values[column]):
                    continue
                if lows[column] <= highs[column]:
                    table[measure.name] = (float(lows[column]), float(highs[column]))
                else:
                    reasons[measure.name] = {"n": int(n[column]), "reason": self._reason_withheld(measure, int(n[column]))}
        withheld["behaviors"] = {name: reasons for name, reasons in withheld["behaviors"].items() if reasons}
        result: dict[str, Any] = {"level": LEVEL, "overall": overall, "behaviors": behaviors}
        return {**result, "n": len(self.individuals), "unit": self.unit, "reason": reason or None, "withheld": withheld}

    def _reason_withheld(self, measure: Measure, n: int) -> str:
        if measure.spread:
            return "no interval of a standard deviation"
        return too_few(n, self.unit) or f"no spread: the same in all {self.unit}"

    @property
    def interval_note(self) -> str:
        """What intervals are based on, or why there are none; to print once with a table that has them in brackets."""
        return self.describe_intervals()

    def describe_intervals(self, position: str = "in brackets") -> str:
        """Return what intervals are based on, or why there are none.

        Parameters
        ----------
        position : str
            Where a table has its intervals.
        """
        count = f"n = {count_units(len(self.individuals), self.unit)}"
        if self.intervals["reason"]:
            return f"{count}; {self.intervals['reason']}"
        withheld = self.intervals["withheld"]["behaviors"]
        rare = [name for name, reasons in withheld.items() if any(reason["n"] < MIN_GROUPS for reason in reasons.values())]
        return f"{count}; {position} 95 % intervals" + (
            f"; not where fewer than {MIN_GROUPS} have a value: {', '.join(rare)}" if rare else ""
        )

    @cached_property
    def coverage(self) -> float:
        """Share of the frames observed by the truth that the prediction observed too."""
        observed = shared = 0
        for pair in self.pairs:
            truth = pair.truth.observed.of_any()
            observed += iv.total(truth)
            shared += iv.overlap(truth, pair.pred.observed.of_any())
        return shared / observed if observed else float("nan")

    @cached_property
    def notes(self) -> list[Note]:
        """What a reader of the scores must know."""
        notes = []
        pooled = [pair for pair in self.pairs if pair.pool_subjects and (pair.truth.subjects or pair.pred.subjects)]
        if pooled:
            notes.append(Note(f"subjects were pooled in {len(pooled)} of {len(self.pairs)} recordings"))
        if self.coverage < 1:
            notes.append(Note(f"the prediction covers {self.coverage:.1%} of the observed frames; the rest counts as without behavior"))
        points = [b.name for b in self.ethogram if b.point]
        if points:
            notes.append(Note(f"point events count in bout scores only: {', '.join(points)}"))
        if not all(pair.exclusive for pair in self.pairs):
            notes.append(Note("behaviors overlap, so scores of all behaviors together are undefined"))
        return notes

    @cached_property
    def occurrence(self) -> Occurrence | None:
        """How often each behavior was annotated and predicted; None if the stored statistics of the suite do not contain it."""
        if self.pairs:
            return Occurrence.count(self.ethogram, (p.truth for p in self.pairs), (p.pred for p in self.pairs))
        from ethobench.metrics import bouts, budgets, frames
        from ethobench.metrics.suites import bebe, mabe2025

        measures = {m.metric.statistics: m for m in self.suite.measures}
        if budgets.sums in measures and bouts.counts in measures:  # durations from the one, point events from the other
            seconds, counts = (self.statistics(measures[function]).sum(axis=0) for function in (budgets.sums, bouts.counts))
            return self._occurrence_from((seconds[:, 1], counts[:, 0]), (seconds[:, 2], counts[:, 1]))
        for function in (frames.counts, bebe.counts, mabe2025.counts):
            if function in measures:  # true positives, false positives, false negatives; frames rank behaviors as seconds do
                table = self.statistics(measures[function]).sum(axis=0)
                true, predicted = table[:, 0] + table[:, 2], table[:, 0] + table[:, 1]
                return self._occurrence_from((true, true), (predicted, predicted))
        return None

    def _occurrence_from(self, annotated: tuple[Array, Array], predicted: tuple[Array, Array]) -> Occurrence:
        def amounts(seconds: Array, counts: Array) -> dict[str, Amount]:
            rows = zip(self.ethogram.names, seconds, counts, strict=True)
            return {name: Amount(float(duration), int(count)) for name, duration, count in rows if count > 0}

        return Occurrence(self.ethogram, amounts(*annotated), amounts(*predicted))

    @cached_property
    def absent(self) -> list[str]:
        """Behaviors that occur neither in the truth nor in the prediction of any recording."""
        never = () if self.occurrence is None else self.occurrence.never_annotated
        return [name for name in never if self.grouping.scored[self.ethogram.code(name)] and not self.ethogram[name].point]

    def occurrence_lines(self, occurrence: Occurrence | None = None) -> list[str]:
        """Return one line that names the behaviors never annotated, and one for those only predicted, if there are any.

        Parameters
        ----------
        occurrence : Occurrence, optional
            Counts that include other annotators or predictions shown beside these scores.
        """
        occurrence = occurrence or self.occurrence
        if occurrence is None:
            return []
        counted = any(name not in self.undefined_behaviors for name in occurrence.never_annotated if name in self.behaviors)
        return occurrence.lines(f"the means of suite {self.suite.name} include them" if counted else "")

    @property
    def undefined_behaviors(self) -> list[str]:
        """Behaviors that tables omit: they never occur, and none of the headline scores is defined for them."""
        never = () if self.occurrence is None else self.occurrence.never_annotated
        headline = {name: [self.behaviors.get(name, {}).get(m, np.nan) for m in self.suite.headline] for name in never}
        return [name for name, values in headline.items() if np.isnan(values).all()]

    def confusion(self) -> dict[str, Any] | None:
        """Return frames by true (row) and predicted (column) behavior, in total and by individual; None if behaviors overlap.

        Without a named background the last label, an empty one, stands for frames without any behavior.
        """
        if not self.pairs or not all(pair.exclusive for pair in self.pairs):
            return None
        labels = [*self.ethogram.names, *([""] if self.ethogram.background is None else [])]
        matrices = np.tensordot(self.grouping.membership, np.stack([pair.confusion for pair in self.pairs]), axes=1)
        by_individual = {name: matrices[i].tolist() for i, name in enumerate(self.individuals)}
        return {"labels": labels, "matrix": matrices.sum(axis=0).tolist(), "individuals": by_individual}

    def worst_confusions(self, limit: int = 3, min_share: float = 0.05) -> list[dict[str, Any]]:
        """Return which behaviors are most often predicted as which others; an empty list if behaviors overlap.

        Parameters
        ----------
        limit : int
            Maximum number of confusions.
        min_share : float
            Omit those of a smaller share.

        Returns
        -------
        list of dict
            ``behavior``, ``predicted`` (empty names: no behavior), ``share`` of the frames of the behavior, and ``frames``; largest first.

        Examples
        --------
        >>> from ethobench import Annotation, score
        >>> truth = Annotation.from_frames([0, 0, 0, 0, 1, 1], ["groom", "rear"], rate=1)
        >>> pred = Annotation.from_frames([0, 0, 0, 1, 1, 1], ["groom", "rear"], rate=1)
        >>> score(pred, truth).worst_confusions()
        [{'behavior': 'groom', 'predicted': 'rear', 'share': 0.25, 'frames': 1}]
        """
        matrix = self.pooled_statistics("frames.accuracy")
        if matrix is None or np.isnan(matrix).any():
            return []
        labels = [*self.ethogram.names, *([""] if self.ethogram.background is None else [])]
        totals = matrix.sum(axis=1)
        rows = [
            {"behavior": labels[i], "predicted": labels[j], "share": float(matrix[i, j] / totals[i]), "frames": int(matrix[i, j])}
            for i, j in zip(*np.nonzero(matrix), strict=True)
            if i != j
        ]
        frequent = [row for row in rows if row["share"] >= min_share]
        return sorted(frequent, key=lambda row: (-row["share"], -row["frames"]))[:limit]

    def per(self, unit: str) -> dict[str, dict[str, Any]]:
        """Return the scores of each recording or each individual.

        Parameters
        ----------
        unit : {"recording", "individual"}
            Or the unit of the suite, such as ``"lab"``, which takes the place of individuals.

        Returns
        -------
        dict
            Names to ``{"overall": {...}, "behaviors": {...}}``.
        """
        subsets = self._subsets(unit)
        if len(subsets) == 1:
            return {name: {"overall": self.overall, "behaviors": self.behaviors} for name in subsets}
        rows = np.array(list(subsets.values()))
        result: dict[str, dict[str, Any]] = {name: {"overall": {}, "behaviors": {b: {} for b in self.behaviors}} for name in subsets}
        for measure in self.suite.measures:
            overall, behaviors = self.evaluate_subsets(measure, rows)
            for k, scores in enumerate(result.values()):
                scores["overall"][measure.name] = float(overall[k])
                for b, values in scores["behaviors"].items() if behaviors.shape[1] and measure.behaviors else ():
                    values[measure.name] = float(behaviors[k, self.ethogram.code(b)])
        return result

    def overall_per(self, unit: str) -> dict[str, Array]:
        """Return the overall scores by measure, each an array with one value for each recording or individual."""
        subsets = self._subsets(unit)
        if len(subsets) == 1:
            return {name: np.array([value]) for name, value in self.overall.items()}
        rows = np.array(list(subsets.values()))
        return {measure.name: self.evaluate_subsets(measure, rows)[0] for measure in self.suite.measures}

    def _subsets(self, unit: str) -> dict[str, Array]:
        """Return which recordings (1, else 0) belong to each recording or individual."""
        units = dict.fromkeys(("recording", "individual", self.suite.unit))
        if unit not in units:
            raise NotFoundError(f"`unit` must be {join_names(map(repr, units), 'or')}, got {unit!r}")
        rows = np.eye(len(self.recordings)) if unit == "recording" else self.grouping.membership
        return dict(zip(self.recordings if unit == "recording" else self.individuals, rows, strict=True))

    def table(self) -> pd.DataFrame:
        """Return one tidy table: overall, by behavior, and by recording.

        Columns are suite, metric, behavior, recording, value, low, high. An empty behavior or recording stands for all of them; low and
        high are missing where the interval is withheld (see `intervals`). A suite with another unit than individuals has a further column
        with its name, such as ``lab``, and rows for each of them.
        """
        import pandas as pd

        no_interval = (float("nan"), float("nan"))
        rows: list[tuple[Any, ...]] = []
        for name, value in self.overall.items():
            rows.append((self.suite.name, name, "", "", value, *(self.intervals["overall"][name] or no_interval)))
        for behavior, values in self.behaviors.items():
            ends = self.intervals["behaviors"][behavior]
            rows += [(self.suite.name, name, behavior, "", value, *(ends[name] or no_interval)) for name, value in values.items()]
        for recording, scores in self.per("recording").items():
            for behavior, values in {"": scores["overall"], **scores["behaviors"]}.items():
                rows += [(self.suite.name, name, behavior, recording, value, *no_interval) for name, value in values.items()]
        table = pd.DataFrame(rows, columns=list(COLUMNS))
        return table if self.suite.unit == "individual" else self._with_units(table)

    def _with_units(self, table: pd.DataFrame) -> pd.DataFrame:
        """Add a column with the unit of each recording, and rows with the scores of each unit."""
        import pandas as pd

        units = dict(zip(self.recordings, self.individuals_by_recording, strict=True))
        rows = [
            (self.suite.name, name, behavior, "", value, float("nan"), float("nan"), unit)
            for unit, scores in self.per(self.suite.unit).items()
            for behavior, values in {"": scores["overall"], **scores["behaviors"]}.items()
            for name, value in values.items()
        ]
        named = table.assign(**{self.suite.unit: [units.get(name, "") for name in table["recording"]]})
        return pd.concat([named, pd.DataFrame(rows, columns=list(named.columns))], ignore_index=True)

    def headline_table(self, measures: Sequence[str] | None = None) -> pd.DataFrame:
        """Return scores as text, one row for all behaviors and one for each, with intervals in brackets.

        Parameters
        ----------
        measures : sequence of str, optional
            Names of measures, one column each; by default the headline measures of the suite.

        Raises
        ------
        NotFoundError
            If the suite has no such measure.
        """
        import pandas as pd

        measures = list(self.suite.headline if measures is None else measures)
        if unknown := [name for name in measures if name not in self.overall]:
            available = ", ".join(self.overall)
            raise NotFoundError(f"suite {self.suite.name!r} has no measure {', '.join(map(repr, unknown))}. Available: {available}")
        rows = {"all": self._cells(measures, self.overall, self.intervals["overall"])}
        for name, values in self.behaviors.items():
            if name not in self.undefined_behaviors:
                rows[name] = self._cells(measures, values, self.intervals["behaviors"][name])
        return pd.DataFrame.from_dict(rows, orient="index", columns=measures).rename_axis(index="behavior")

    def _cells(
        self, measures: Sequence[str], values: Mapping[str, float], intervals: Mapping[str, tuple[float, float] | None]
    ) -> list[str]:
        return [format_value(values.get(name), intervals.get(name)) for name in measures]

    def to_latex(self, measures: Sequence[str] | None = None) -> str:
        """Return a table in LaTeX, for the package booktabs: one row for all behaviors and one for each, intervals in brackets.

        Parameters
        ----------
        measures : sequence of str, optional
            Names of measures, one column each; by default as many as fit on a page.
        """
        table = self.headline_table(measures or self.suite.compact or None).rename(columns=measure_label)
        return table.reset_index().to_latex(index=False, escape=True)

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as plain values for JSON; undefined ones are None.

        Returns
        -------
        dict
            ``suite``; ``overall`` and ``behaviors`` as the attributes; ``intervals``; ``recordings`` and ``individuals`` (``labs`` in suite
            ``mabe2025``) as `per` returns them; ``confusion``; ``coverage``; ``absent``; ``notes``, a list of text.
        """
        plain: dict[str, Any] = _plain(
            {
                "suite": self.suite.name,
                "overall": self.overall,
                "behaviors": self.behaviors,
                "intervals": self.intervals,
                "recordings": self.per("recording"),
                f"{self.suite.unit}s": self.per("individual"),
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
            Names of measures; all by default.

        Returns
        -------
        dict
            By measure: ``difference`` (this one minus the other), ``low`` and ``high`` of its 95 % interval over individuals (paired),
            and ``better``, the probability that this one is higher in the population (`probability_higher`; never quite 0 or 1).
            ``n`` is the number of individuals in whom both scores are defined. With fewer than five of them, or if the difference is the
            same in all, ``low``, ``high`` and ``better`` are None, and ``reason`` states why.
        """
        if (self.suite.name, self.recordings, self.individuals) != (other.suite.name, other.recordings, other.individuals):
            raise MismatchError("only scores of the same suite, recordings and individuals can be compared")
        return {m.name: self._compare(other, m) for m in self.suite.measures if measures is None or m.name in measures}

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
        if reason := too_few(n, self.unit):
            return {**row, "reason": reason}
        resampled = (self.resampled(measure) - other.resampled(measure)).column(0)
        low, high = confidence_interval(difference, resampled, n, measure.difference_bounds)
        if np.isnan(low):
            return {**row, "reason": f"no spread: the same difference in all {self.unit}"}
        return {**row, "low": float(low), "high": float(high), "better": probability_higher(difference, resampled, n), "reason": None}


def format_value(value: float | None, interval: tuple[float, float] | None = None) -> str:
    """Return a score as text with three decimals, and its interval in brackets.

    >>> format_value(0.73333, (0.5, 0.9)), format_value(float("nan"))
    ('0.733 [0.50, 0.90]', '-')
    """
    if value is None or np.isnan(value):
        return "-"
    return f"{value:.3f}" if interval is None else f"{value:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def _plain(value: Any) -> Any:
    """Return a value with text keys, lists for tuples, and None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
