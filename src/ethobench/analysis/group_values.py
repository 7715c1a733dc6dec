"""Values of individuals for comparisons of groups: one for each individual, group, behavior and measure.

The individual is the unit of analysis. Its recordings in one group are pooled, so that shares and rates are weighted by the observed time
and durations by the number of bouts. Bout counts and total times are means per recording. Subjects of one recording are averaged.
Individuals that share an animal (``a;b`` and ``b;c``, two pairs with one animal in common) are one unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ethobench.analysis.budgets import budgets
from ethobench.analysis.movement import movement
from ethobench.analysis.units import Annotated, as_recordings, list_units, metadata_columns, recording_columns
from ethobench.analysis.zones import ZoneOptions
from ethobench.core import Annotation, Observed, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, NotFoundError, ParameterError
from ethobench.core.intervals import Intervals
from ethobench.core.messages import Message, Option
from ethobench.core.observed import Track
from ethobench.core.wording import join_names
from ethobench.datasets.zones import Zone, pixels_per_cm
from ethobench.metrics.budgets import observed_bouts

Array = NDArray[np.float64]
Labels: TypeAlias = str | Annotated

OF_TIME = ("share", "total_s", "mean_duration_s", "median_duration_s")
COUNTS = ("n_bouts", "rate_per_min", "rate_per_hour", "latency_s", "inter_bout_s")
BUDGET_MEASURES = (*OF_TIME, *COUNTS)
MOVEMENT_MEASURES = ("distance", "mean_speed", "immobile_share", "nearest_animal")
MEASURES = (*BUDGET_MEASURES, *MOVEMENT_MEASURES)
DEFAULT_MEASURES = ("share", "rate_per_min", "mean_duration_s")
PER_RECORDING = ("total_s", "n_bouts", "distance")
NEED_BOUTS = ("mean_duration_s", "median_duration_s", "latency_s", "inter_bout_s")
"""Undefined in units that never show the behavior."""
CELLS = ("bin", "zone")
"""Columns that divide a recording; as groups they are repeated measures."""
MOVEMENT = "movement"
"""Stands for the behavior in rows of movement."""


@dataclass(frozen=True)
class ValueOptions:
    """Which values are compared.

    Attributes
    ----------
    groups : str
        Column that names the group.
    measures : tuple of str
    behaviors : tuple of str
        Empty: all but the background.
    by, covariates : tuple of str
        Columns of strata, and of covariates.
    pair : str
        Column that names what is compared within; empty: the individual, if individuals recur.
    bin, zones, zone_options
        See `budgets`.
    """

    groups: str
    measures: tuple[str, ...] = DEFAULT_MEASURES
    behaviors: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    pair: str = ""
    bin: Any = None
    zones: bool | str | Path | Sequence[Zone] | None = None
    zone_options: ZoneOptions | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.measures if name not in MEASURES]
        if unknown or not self.measures:
            raise ParameterError(f"no measure {', '.join(map(repr, unknown))}; available: {', '.join(MEASURES)}")
        for name in {self.groups, *self.by} & {*CELLS}:
            option = "bin" if name == "bin" else "zones"
            if getattr(self, option) in (None, False):
                raise ParameterError(Message(f"groups by {name!r} need ", Option(option)))
        if self.bin is not None and "bin" not in (self.groups, *self.by):
            raise ParameterError(
                Message(
                    "compare groups within each time bin with ",
                    Option("by", "bin"),
                    ", or time bins with each other with ",
                    Option("groups", "bin"),
                )
            )
        if self.zones not in (None, False) and "zone" not in (self.groups, *self.by):
            raise ParameterError(
                Message("zones are compared within each zone (", Option("by", "zone"), ") or with each other (groups zone)")
            )

    @property
    def columns(self) -> list[str]:
        """Columns of recordings by which values are pooled, other than the individual."""
        return [name for name in dict.fromkeys((self.groups, *self.by, *([self.pair] if self.pair else []))) if name not in CELLS]


@dataclass(frozen=True)
class Cell:
    """Values of one behavior and measure, in one stratum.

    Attributes
    ----------
    behavior, measure : str
    stratum : dict
        Values of the columns of strata.
    units : list of str
    is_member : array of bool (n_units, n_groups)
    values : array (n_units, n_groups)
        From human labels; NaN where there are none, or the value is undefined.
    model, model_labeled : array (n_units, n_groups), optional
        From model labels, in all recordings, and in the frames with human labels.
    """

    behavior: str
    measure: str
    stratum: dict[str, Any]
    units: list[str]
    is_member: NDArray[np.bool_]
    values: Array
    model: Array | None = None
    model_labeled: Array | None = None

    @property
    def agrees_where_defined(self) -> bool:
        """Whether people and the model have a value in the same labeled units; durations and latencies need a bout of each source."""
        if self.model_labeled is None or self.measure not in NEED_BOUTS:
            return True
        return bool(np.array_equal(np.isnan(self.values), np.isnan(self.model_labeled)))

    def has_both(self, first: int, second: int) -> NDArray[np.bool_]:
        """Return which units have values in both of two groups, or in neither, from each source of labels (n_units,)."""
        keep = np.ones(len(self.units), dtype=bool)
        for table in (self.values, self.model, self.model_labeled):
            if table is not None:
                keep &= np.isnan(table[:, first]) == np.isnan(table[:, second])
        return keep

    def select(self, rows: Any, columns: Any = slice(None)) -> Cell:
        """Return a copy with some of the units and groups."""
        tables = [None if t is None else t[rows][:, columns] for t in (self.model, self.model_labeled)]
        units = list(np.array(self.units, dtype=object)[rows])
        return Cell(
            self.behavior, self.measure, self.stratum, units, self.is_member[rows][:, columns], self.values[rows][:, columns], *tables
        )


@dataclass
class GroupValues:
    """Values of all units.

    Attributes
    ----------
    groups : list of str
    cells : list of Cell
    covariates : DataFrame
        By unit; numbers.
    recordings : dict of str to int
        Number of recordings of each unit.
    metadata : DataFrame
        Columns of recordings, for each recording.
    never : list of str
        Behaviors that no annotation has.
    notes : list of str
    labeled : dict of str to set of str
        Units with human labels in each group, if there are model labels.
    """

    groups: list[str]
    cells: list[Cell]
    covariates: pd.DataFrame
    recordings: dict[str, int]
    metadata: pd.DataFrame
    never: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labeled: dict[str, set[str]] = field(default_factory=dict)

    def is_labeled(self, cell: Cell) -> NDArray[np.bool_]:
        """Return which units of a cell have human labels in each group (n_units, n_groups), with or without bouts of the behavior."""
        return (
            np.array([[unit in self.labeled.get(group, ()) for group in self.groups] for unit in cell.units], dtype=bool) & cell.is_member
        )


def collect_values(data: Annotated, options: ValueOptions, *, annotator: str | None = None) -> GroupValues:
    """Return the values of individuals from the annotations of one annotator."""
    recordings, notes = joined_units(as_recordings(data))
    metadata = _checked_metadata(recordings, options)
    annotated = [r for r in recordings if r.annotations] if _uses_budgets(options) else recordings
    if not annotated:
        raise EthobenchError("no recording has an annotation, so there is nothing to compare")
    names = dict.fromkeys(name for r in annotated for name in r.annotations)
    if annotator is None and len(names) > 1 and _uses_budgets(options):
        raise EthobenchError(Message(f"the recordings have several annotators ({', '.join(names)}); choose one with ", Option("annotator")))
    table, never = _value_table(annotated, options, annotator)
    groups = _group_names(table, options)
    cells = [_cell(rows, key, groups, options) for key, rows in _parts(table, options)]
    used = metadata[metadata["recording"].isin({r.id for r in annotated})]
    notes += [*_length_notes(table, options), *_latency_notes(annotated, options, annotator), *_undefined_notes(cells, options)]
    return GroupValues(groups, cells, _covariates(used, options), _recording_counts(used), used, never, notes)


def collect_with_model(data: Annotated, options: ValueOptions, labels: Labels | None, model_labels: Labels) -> GroupValues:
    """Return the values of individuals from human labels of some recordings and model labels of all.

    Parameters
    ----------
    data : Dataset or recordings
        With the columns of groups and individuals.
    options : ValueOptions
    labels, model_labels : str, mapping, Dataset or recordings
        An annotator of `data`, or annotations by recording. Default of `labels`: the annotator of `data` other than the model.
    """
    recordings, notes = joined_units(as_recordings(data))
    metadata = _checked_metadata(recordings, options)
    model = _select_labels(recordings, model_labels, "model_labels")
    human = _select_labels(recordings, labels, "labels", other_than=model_labels if isinstance(model_labels, str) else None)
    if not human:
        raise EthobenchError("no recording has human labels, so the errors of the model cannot be corrected")
    with_model = [r for r in recordings if r.id in model]
    without = [name for name in human if name not in model]
    if without:
        notes.append(f"{len(without)} recordings with human labels have no model labels and are not used, such as {without[0]!r}")
    labeled = [r for r in with_model if r.id in human]
    if not labeled:
        raise EthobenchError("no recording has both human and model labels; label some of the recordings with model labels by hand")
    available = list(dict.fromkeys(name for a in human.values() for name in a.ethogram.names))
    unknown = [name for name in options.behaviors if name not in available]
    if unknown:
        raise NotFoundError(f"no behavior {', '.join(map(repr, unknown))}; available: {', '.join(available)}")
    notes += _behavior_notes(human, model)
    notes += _latency_notes([r.copy(annotations={"labels": human[r.id]}) for r in labeled], options, None)
    restricted = {r.id: _in_observed_frames(model[r.id], human[r.id]) for r in labeled}
    tables = [
        _value_table([r.copy(annotations={"labels": chosen[r.id]}) for r in subset], options, None, keep_all=True)
        for subset, chosen in ((labeled, human), (with_model, model), (labeled, restricted))
    ]
    groups = _group_names(tables[1][0], options)
    parts = [dict(_parts(table, options)) for table, _ in tables]
    never = [name for name in tables[0][1] if name in tables[1][1]]
    cells = [
        _cell(parts[1].get(key, rows), key, groups, options, (rows, parts[1].get(key), parts[2].get(key)))
        for key, rows in parts[0].items()
        if key[-1] not in never
    ]
    used = metadata[metadata["recording"].isin({r.id for r in with_model})].assign(
        is_labeled=lambda table: table["recording"].isin({r.id for r in labeled})
    )
    counts = _recording_counts(used)
    labeled_units = _labeled_units(used[used["is_labeled"]], groups, options)
    return GroupValues(groups, cells, _covariates(used, options), counts, used, never, notes, labeled_units)


def _labeled_units(metadata: pd.DataFrame, groups: Sequence[str], options: ValueOptions) -> dict[str, set[str]]:
    """Return the units of recordings in each group; time bins and zones are groups of all units."""
    units = metadata[options.pair or "individual"].astype(str)
    if options.groups in CELLS:
        return {group: {*units} for group in groups}
    return {group: {*units[metadata[options.groups].astype(str) == group]} for group in groups}


def joined_units(recordings: Iterable[Recording]) -> tuple[list[Recording], list[str]]:
    """Return recordings in which individuals that share an animal are one individual, and notes about it.

    >>> pairs = [Recording("1", "a;b"), Recording("2", "b;c"), Recording("3", "d")]
    >>> [recording.individual for recording in joined_units(pairs)[0]]
    ['a;b;c', 'a;b;c', 'd']
    """
    recordings = list(recordings)
    members: list[set[str]] = []
    for animals in {r.animals for r in recordings}:
        overlapping = [unit for unit in members if unit & animals]
        members = [unit for unit in members if not unit & animals] + [set(animals).union(*overlapping)]
    name_of = {animal: ";".join(sorted(unit)) for unit in members for animal in unit}
    sizes = {";".join(sorted(unit)): len({r.individual for r in recordings if r.animals & unit}) for unit in members}
    joined = [name for name, size in sizes.items() if size > 1]
    notes = [f"individuals that share animals are one unit: {', '.join(joined[:3])}"] if joined else []
    names = [name_of[next(iter(r.animals))] for r in recordings]
    return [r.copy(individual=n if n in joined else r.individual) for r, n in zip(recordings, names, strict=True)], notes


def _recording_counts(metadata: pd.DataFrame) -> dict[str, int]:
    return {str(name): int(count) for name, count in metadata.groupby("individual").size().items()}


def _uses_budgets(options: ValueOptions) -> bool:
    return any(name in BUDGET_MEASURES for name in options.measures)


def _checked_metadata(recordings: Sequence[Recording], options: ValueOptions) -> pd.DataFrame:
    """Return the columns of recordings; raise an error if a column that is needed is missing or empty."""
    names = metadata_columns(recordings)
    table = pd.DataFrame([recording_columns(r, names) for r in recordings])
    for name in (*options.columns, *options.covariates):
        if name not in table:
            raise NotFoundError(f"no column {name!r}; columns of the study: {', '.join(names) or 'none'}")
        empty = table[name].map(lambda value: value is None or str(value).strip() in ("", "nan"))
        if empty.any():
            first = table.loc[empty, "recording"].iloc[0]
            raise EthobenchError(f"{int(empty.sum())} of {len(table)} recordings have no {name!r}, such as {first!r}")
    return table


def _value_table(
    recordings: Sequence[Recording], options: ValueOptions, annotator: str | None, *, keep_all: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for each individual, group, stratum and behavior, and the behaviors that never occur, without rows by default."""
    by = ["individual", *options.columns]
    keys = [*by, *(name for name in CELLS if name in (options.groups, *options.by)), "behavior"]
    tables: list[pd.DataFrame] = []
    never: list[str] = []
    if _uses_budgets(options):
        table = budgets(recordings, by=by, bin=options.bin, zones=options.zones, annotator=annotator, zone_options=options.zone_options)
        table["rate_per_hour"] = 60 * table["rate_per_min"]
        ethograms = [a.ethogram for r in recordings for a in r.annotations.values()]
        background = {e.background_name for e in ethograms}
        points = {b.name for e in ethograms for b in e if b.point}
        table.loc[table["behavior"].isin(points), list(OF_TIME)] = np.nan
        available = list(dict.fromkeys(table["behavior"]))
        unknown = [name for name in options.behaviors if name not in available]
        if unknown and not keep_all:
            raise NotFoundError(f"no behavior {', '.join(map(repr, unknown))}; available: {', '.join(available)}")
        chosen = options.behaviors or [name for name in available if name not in background]
        occurring = {*table.loc[table["n_bouts"] > 0, "behavior"]}
        never = [name for name in chosen if name not in occurring]
        tables.append(table[table["behavior"].isin([name for name in chosen if keep_all or name in occurring])])
    if any(name in MOVEMENT_MEASURES for name in options.measures):
        _refuse_different_units(recordings)
        tables.append(movement(recordings, by=by, bin=options.bin).assign(behavior=MOVEMENT))
    measures = list(options.measures)
    table = pd.concat([rows.reindex(columns=[*keys, "n_recordings", "observed_s", *measures]) for rows in tables], ignore_index=True)
    for name in set(PER_RECORDING) & set(measures):
        table[name] = table[name] / table["n_recordings"]
    table[[*measures, "observed_s"]] = table[[*measures, "observed_s"]].astype(float)
    values = table.groupby(keys, sort=False, dropna=False)[["n_recordings", "observed_s", *measures]].mean().reset_index()
    return values, never


def _refuse_different_units(recordings: Sequence[Recording]) -> None:
    """Raise an error if lengths of some recordings are in cm and of others in pixels."""
    tracked = [r for r in recordings if r.has_signals]
    unscaled = [r.id for r in tracked if pixels_per_cm(r) is None]
    if unscaled and len(unscaled) < len(tracked):
        raise EthobenchError(
            f"{len(unscaled)} of {len(tracked)} recordings have no scale (pixels_per_cm), such as {unscaled[0]!r}: lengths in pixels and "
            "in cm cannot be compared"
        )


def _group_label(value: Any, column: str) -> str:
    return f"bin {int(value) + 1}" if column == "bin" else str(value)


def _group_names(table: pd.DataFrame, options: ValueOptions) -> list[str]:
    values = table[options.groups].drop_duplicates()
    return [_group_label(value, options.groups) for value in (values.sort_values() if options.groups == "bin" else values)]


def _parts(table: pd.DataFrame, options: ValueOptions) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Return the rows of each measure, stratum and behavior."""
    parts = []
    strata = list(options.by)
    for measure in options.measures:
        for key, rows in table.groupby([*strata, "behavior"], sort=False, dropna=False):
            is_movement = key[-1] == MOVEMENT and measure in MOVEMENT_MEASURES
            if (is_movement or (measure in BUDGET_MEASURES and key[-1] != MOVEMENT)) and rows[measure].notna().any():
                parts.append(((measure, *key), rows.assign(value=rows[measure])))
    return parts


def _cell(
    members: pd.DataFrame,
    key: tuple[Any, ...],
    groups: Sequence[str],
    options: ValueOptions,
    sources: tuple[pd.DataFrame | None, pd.DataFrame | None, pd.DataFrame | None] | None = None,
) -> Cell:
    """Return the values of a behavior and measure of `members`, or of three sources, by unit and group.

    The sources are human labels, model labels, and model labels in the frames with human labels.
    """
    unit_column = options.pair or "individual"
    units = list(dict.fromkeys(members[unit_column].astype(str)))

    def pivot(table: pd.DataFrame | None) -> Array:
        if table is None or not len(table):
            return np.full((len(units), len(groups)), np.nan)
        labels = table[options.groups].map(lambda value: _group_label(value, options.groups))
        wide = table.assign(unit=table[unit_column].astype(str), group=labels).pivot_table("value", "unit", "group", dropna=False)
        return np.asarray(wide.reindex(index=units, columns=list(groups)).to_numpy(dtype=float))

    is_member = ~np.isnan(pivot(members.assign(value=1.0)))
    stratum = {name: _group_label(value, name) for name, value in zip(options.by, key[1:-1], strict=True)}
    base = (str(key[-1]), str(key[0]), stratum, units, is_member)
    return Cell(*base, pivot(members)) if sources is None else Cell(*base, *map(pivot, sources))


def _covariates(metadata: pd.DataFrame, options: ValueOptions) -> pd.DataFrame:
    """Return covariates of units as numbers: means of numbers over recordings, indicators of other values."""
    columns: dict[str, pd.Series[float]] = {}
    for name in options.covariates:
        numbers = pd.to_numeric(metadata[name], errors="coerce")
        if numbers.notna().all():
            columns[name] = numbers.astype(float).groupby(metadata["individual"]).mean()
            continue
        values_per_unit = metadata.groupby("individual")[name].nunique()
        if (values_per_unit > 1).any():
            raise EthobenchError(
                f"the covariate {name!r} differs between recordings of individual {values_per_unit.idxmax()!r}, and is not a number"
            )
        first = metadata.groupby("individual")[name].first().astype(str)
        for level in sorted(first.unique())[1:]:
            columns[f"{name} {level}"] = (first == level).astype(float)
    return pd.DataFrame(columns)


def _length_notes(table: pd.DataFrame, options: ValueOptions) -> list[str]:
    """Return a note if counts or totals are compared of recordings with different observed times."""
    counts = [name for name in ("n_bouts", "total_s") if name in options.measures]
    observed = table["observed_s"] / table["n_recordings"]
    if counts and observed.max() > 1.1 * observed.min():
        return [
            f"recordings are observed for {observed.min():,.0f} to {observed.max():,.0f} s, so {join_names(counts)} depend on "
            "their lengths; share and rate_per_min do not"
        ]
    return []


def _undefined_notes(cells: Sequence[Cell], options: ValueOptions) -> list[str]:
    """Return a note for each measure that no individual has."""
    reasons = {"immobile_share": ", which needs a scale (pixels_per_cm)", "nearest_animal": ", which needs several animals in a recording"}
    undefined = [name for name in options.measures if name not in {cell.measure for cell in cells}]
    return [f"no individual has a value of {name}{reasons.get(name, '')}" for name in undefined]


def _latency_notes(recordings: Sequence[Recording], options: ValueOptions, annotator: str | None) -> list[str]:
    """Return a note if latencies are compared, and frames before a first bout are unobserved."""
    if "latency_s" not in options.measures:
        return []
    late = []
    for unit in list_units(recordings, annotator):
        names = [name for name in options.behaviors or unit.annotation.ethogram.names if name in unit.annotation.ethogram]
        for behavior in names:
            spans, observed = observed_bouts(unit.annotation, behavior, unit.subject)
            if behavior != unit.annotation.ethogram.background_name and len(spans.start):
                first = int(spans.start[0])
                if iv.overlap(iv.full(first), observed) < first:
                    late.append(unit.recording.id)
    affected = list(dict.fromkeys(late))
    return [
        f"{len(affected)} recordings have unobserved time before the first bout of a behavior, such as {affected[0]!r}: it counts towards "
        "the latency, and earlier bouts may have been missed"
        for _ in affected[:1]
    ]


def _select_labels(
    recordings: Sequence[Recording], labels: Labels | None, name: str, other_than: str | None = None
) -> dict[str, Annotation]:
    """Return annotations by recording: of an annotator of the recordings, or from elsewhere."""
    available = list(dict.fromkeys(annotator for r in recordings for annotator in r.annotations))
    if labels is None:
        people = [annotator for annotator in available if annotator != other_than]
        if len(people) > 1:
            raise EthobenchError(Message(f"the recordings have several annotators ({', '.join(people)}); choose one with ", Option(name)))
        return {r.id: r.annotations[people[0]] for r in recordings if people and people[0] in r.annotations}
    if isinstance(labels, str):
        if labels not in available:
            raise NotFoundError(f"no annotator {labels!r}; available: {', '.join(available) or 'none'}")
        return {r.id: r.annotations[labels] for r in recordings if labels in r.annotations}
    selected = {r.id: r.annotation() for r in as_recordings(labels) if r.annotations}
    unknown = [recording for recording in selected if recording not in {r.id for r in recordings}]
    if len(unknown) == len(selected):
        raise EthobenchError(Message("none of the recordings of ", Option(name), f" is in the study, such as {next(iter(selected), '')!r}"))
    return {recording: annotation for recording, annotation in selected.items() if recording not in unknown}


def _behavior_notes(human: Mapping[str, Annotation], model: Mapping[str, Annotation]) -> list[str]:
    people, machine = ({name for a in labels.values() for name in a.ethogram.names} for labels in (human, model))
    if not people & machine:
        raise EthobenchError(
            f"human and model labels have no behavior in common: {', '.join(sorted(people))}; {', '.join(sorted(machine))}; "
            "rename them to the same names"
        )
    background = {a.ethogram.background_name for a in human.values()}
    shown, predicted = ({a.ethogram.names[code] for a in labels.values() for code in np.unique(a.behavior)} for labels in (human, model))
    missing, unpredicted = sorted(people - machine - background), sorted((shown & machine) - predicted - background)
    return [
        *([f"no model labels of {', '.join(missing)}: human labels alone"] if missing else []),
        *([f"the model never predicts {', '.join(unpredicted)}: human labels alone"] if unpredicted else []),
    ]


def _in_observed_frames(model: Annotation, human: Annotation) -> Annotation:
    """Return model labels in the frames that have human labels, so that both describe the same behavior."""
    ratio = model.rate / human.rate

    def rescale(frames: Intervals) -> Intervals:
        edges = [np.clip(np.round(edge * ratio).astype(np.int64), 0, model.n_frames) for edge in (frames.start, frames.stop)]
        return iv.union(Intervals(edges[0], edges[1]))

    limit = human.observed.apply(rescale)
    tracks = {
        track: iv.intersection(
            model.observed.of(track.behavior, track.subject, track.target)
            if track.behavior is not None
            else model.observed.tracks.get(track, model.observed.frames),
            limit.of(track.behavior, track.subject, track.target) if track.behavior is not None else limit.tracks.get(track, limit.frames),
        )
        for track in {*model.observed.tracks, *(Track(t.behavior) for t in limit.tracks if t.behavior is not None)}
    }
    return model.with_observed(Observed(iv.intersection(model.observed.frames, limit.frames), tracks))


def recording_table(recordings: Sequence[Recording], options: ValueOptions, annotator: str | None) -> pd.DataFrame:
    """Return the values of recordings, not pooled: ``recording``, ``individual``, ``group``, strata, ``behavior`` and the measures."""
    columns = [name for name in (options.groups, *options.by) if name in CELLS]
    tables = []
    if _uses_budgets(options):
        annotated = [r for r in recordings if r.annotations]
        table = budgets(annotated, bin=options.bin, zones=options.zones, annotator=annotator, zone_options=options.zone_options)
        tables.append(table.assign(rate_per_hour=60 * table["rate_per_min"]))
    if any(name in MOVEMENT_MEASURES for name in options.measures):
        tables.append(movement(recordings, bin=options.bin).assign(behavior=MOVEMENT))
    keys = list(dict.fromkeys(["recording", "individual", *options.columns, *columns, "behavior"]))
    table = pd.concat([rows.reindex(columns=[*keys, *options.measures]) for rows in tables], ignore_index=True)
    for name in columns:
        table[name] = table[name].map(lambda value, name=name: _group_label(value, name))
    table["group"] = table[options.groups].astype(str)
    table[list(options.measures)] = table[list(options.measures)].astype(float)
    keys = list(dict.fromkeys([*keys, "group"]))
    return table.groupby(keys, sort=False, dropna=False)[list(options.measures)].mean().reset_index()
