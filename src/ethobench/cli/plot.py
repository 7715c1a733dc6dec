"""`ethobench plot`: figures for papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, EntryOption, MatchOption, RenameOption
from ethobench.cli.output import print_notes
from ethobench.core.errors import EthobenchError, NotFoundError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ethobench.core import Recording
    from ethobench.figures.plots.tables import Table

ANNOTATED = ("ethogram", "raster", "budget", "transitions", "durations")
FULL = "full"
KINDS = (*ANNOTATED, "confusion", "agreement", "learning_curve", "occupancy", "trajectory", "group_comparison", "reliability")
OPTIONS = {
    "recording": ("ethogram", "occupancy", "trajectory"),
    "behavior": ("ethogram", "raster", "durations", "trajectory", "reliability", "group_comparison"),
    "by": ("budget",),
    "groups": ("group_comparison",),
    "measure": ("agreement", "learning_curve", "group_comparison"),
    "model": ("confusion", "reliability", "learning_curve"),
    "dataset": ("confusion", "reliability", "learning_curve"),
    "keypoint": ("occupancy", "trajectory"),
    "individual": ("occupancy", "trajectory"),
}
"""Kinds of figures that an option belongs to; others refuse it."""


def run(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(KINDS)}.", metavar="KIND")],
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="A study, a dataset or files. For confusion: PRED TRUTH, or the store of a run. For reliability and "
            "learning_curve: the store of a run.",
            metavar="PATH",
        ),
    ],
    out: Annotated[Path, typer.Option(help="SVG, PDF or PNG file to write.", metavar="FILE")],
    width: Annotated[float, typer.Option(help="Width in millimeters: 89, 120 or 183 in most journals.", metavar="MM")] = 89,
    height: Annotated[float | None, typer.Option(help="Height in millimeters. Default: as the content needs.", metavar="MM")] = None,
    recording: Annotated[str | None, typer.Option(help="Which recording. Default: the first.", metavar="NAME")] = None,
    behavior: Annotated[
        list[str] | None, typer.Option(help="Only this behavior; may be repeated. trajectory: color it.", metavar="NAME")
    ] = None,
    by: Annotated[str, typer.Option(help="What a bar of a budget stands for: recording, individual or all.")] = "recording",
    groups: Annotated[
        str | None, typer.Option(help="Column of the study that names the group, such as treatment.", metavar="COLUMN")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            help="agreement: kappa, f1 or agreement. learning_curve: such as f1. group_comparison: such as rate_per_min.", metavar="NAME"
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Only this model of a store.", metavar="NAME")] = None,
    dataset: Annotated[str | None, typer.Option(help="Only this dataset of a store.", metavar="NAME")] = None,
    individual: Annotated[str | None, typer.Option(help="Which animal of the poses. Default: the first.", metavar="NAME")] = None,
    keypoint: Annotated[str | None, typer.Option(help="Which body point. Default: the centroid.", metavar="NAME")] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the numbers of the figure to this file.", metavar="FILE.csv")] = None,
    annotator: AnnotatorsOption = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    rename: RenameOption = None,
    match: MatchOption = None,
    entry: EntryOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """Draw a figure for a paper, at the exact size of a column, with embedded fonts and colors that color-blind readers can tell apart.

    Example: [bold]ethobench plot budget my_study/ --by individual --out budget.pdf[/bold]

    Example: [bold]ethobench plot confusion predictions/ my_study/ --out confusion.pdf --width 120[/bold]

    Example: [bold]ethobench plot group_comparison my_study/ --groups treatment --out groups.svg[/bold]
    """
    from ethobench.cli.options import parse_renames
    from ethobench.cli.output import echo
    from ethobench.core.files import check_new_path
    from ethobench.figures.plots import save
    from ethobench.figures.plots.style import FORMATS, figure_of

    if kind not in KINDS:
        raise typer.BadParameter(f"{kind!r} is none of {', '.join(KINDS)}", param_hint="KIND")
    if out.suffix.lower().removeprefix(".") not in FORMATS:
        raise typer.BadParameter(f"{out.name!r} must end with {', '.join(f'.{name}' for name in FORMATS)}", param_hint="--out")
    _refuse_unused(context, kind)
    for path in (out, csv):
        if path is not None:
            check_new_path(path, overwrite=overwrite)
    reading: dict[str, Any] = {"rate": rate, "rename": parse_renames(rename), "match": match, "entry": entry}
    request = Request(kind, paths, reading, annotator or [], recording, behavior, by, groups, measure, model, dataset, individual, keypoint)
    drawn = request.draw(width, height)
    if csv is not None:
        _write_csv(csv, request.table, overwrite=overwrite)
    save(drawn, out, overwrite=overwrite)
    millimeters = figure_of(drawn).get_size_inches() * 25.4
    echo(f"{out}: {millimeters[0]:.0f} x {millimeters[1]:.0f} mm")


@dataclass
class Request:
    """A figure that was asked for on the command line, and the table of its numbers once it is drawn."""

    kind: str
    paths: list[Path]
    reading: dict[str, Any]
    annotators: list[str]
    recording: str | None
    behaviors: list[str] | None
    by: str
    groups: str | None
    measure: str | None
    model: str | None
    dataset: str | None
    individual: str | None
    keypoint: str | None
    table: Table = field(default_factory=list)

    def draw(self, width: float, height: float | None) -> Axes:
        """Read the files and draw the figure."""
        makers: Mapping[str, Callable[[], Any]] = {
            "confusion": self._scored,
            "reliability": self._scored,
            "agreement": self._agreement,
            "learning_curve": self._learning_curve,
            "occupancy": self._space,
            "trajectory": self._space,
            "group_comparison": self._groups,
        }
        read: Callable[[], tuple[Any, dict[str, Any]]] = makers.get(self.kind, self._annotated)
        source, options = read()
        return _fitted(self.kind, source, options, width, height)

    @property
    def _annotator(self) -> str | None:
        return ",".join(self.annotators) or None

    def _recordings(self, **options: Any) -> list[Recording]:
        from ethobench.datasets.collate import collate_files

        collation = collate_files(self.paths, annotators=self.annotators or None, **self.reading, **options)
        print_notes(collation.notes)
        print_notes(note for recording in collation.recordings for note in recording.notes)
        if not collation.recordings:
            raise EthobenchError(f"{', '.join(map(str, self.paths))}: no recording")
        return list(collation.recordings)

    def _chosen(self, recordings: list[Recording]) -> Recording:
        names = [recording.id for recording in recordings]
        if self.recording is not None and self.recording not in names:
            raise NotFoundError(f"no recording {self.recording!r}; available: {', '.join(names[:20])}")
        if self.recording is None and len(names) > 1:
            from ethobench.cli.output import print_note

            print_note(f"{len(names)} recordings; drawing the first, {names[0]} (choose one with --recording)")
        return recordings[names.index(self.recording) if self.recording is not None else 0]

    def _annotated(self) -> tuple[Any, dict[str, Any]]:
        from ethobench.figures.plots import tables

        recordings = [recording for recording in self._recordings(annotations_only=True) if recording.annotations]
        if not recordings:
            raise EthobenchError(f"{', '.join(map(str, self.paths))}: no annotation")
        source: Any = self._chosen(recordings) if self.kind == "ethogram" else recordings
        if self.kind == "raster" and len(recordings) == 1:
            source = recordings[0]
        options: dict[str, Any] = {"annotator": self._annotator}
        if self.kind == "budget":
            options["by"] = self.by
            self.table = tables.budget_table(source, **options)
        elif self.kind == "transitions":
            self.table = tables.transition_table(source, **options)
        elif self.kind == "durations":
            options["behaviors"] = self.behaviors
            self.table = tables.duration_table(source, **options)
        else:
            self.table = tables.bout_table(source, **options)
            options |= {"behaviors": self.behaviors, "colors": _colors(recordings)}
        return source, options

    def _scored(self) -> tuple[Any, dict[str, Any]]:
        from ethobench.figures.plots import tables
        from ethobench.metrics import score
        from ethobench.metrics.scoring import read_score_files

        if len(self.paths) == 1:
            scores = self._stored_scores()
        elif self.kind == "confusion" and len(self.paths) == 2:
            files = read_score_files(*self.paths, annotator=self._annotator, **self.reading)
            print_notes(files.notes)
            scores = score(files.predictions, files.dataset, annotator=self._annotator, resamples=0)
        else:
            problem = f"{self.kind} needs one path, the store of a run with probabilities; got {len(self.paths)} paths"
            if self.kind == "confusion":
                problem = f"confusion needs PRED TRUTH, or the store of a run; got {len(self.paths)} paths"
            raise typer.BadParameter(problem, param_hint="PATH")
        self.table = tables.confusion_table(scores) if self.kind == "confusion" else tables.reliability_table(scores)
        return scores, {} if self.kind == "confusion" else {"behaviors": self.behaviors}

    def _stored_scores(self) -> Any:
        """Return the scores of one model on one dataset of a store, trained on all data if the store has several settings."""
        from ethobench.benchmarks.results import final_jobs
        from ethobench.metrics import Scores

        states: dict[tuple[str, str, str], list[Any]] = {}
        for _, job, stored in final_jobs(self._store()):
            if self.model in (None, job.model) and self.dataset in (None, job.dataset):
                suite = "ethobench" if "ethobench" in stored["suites"] else job.suites[0]
                states.setdefault((job.model, job.dataset, str(job.setting)), []).append(stored["suites"][suite]["state"])
        full = {key: stored_states for key, stored_states in states.items() if key[2] == FULL} or states
        if len(full) != 1:
            matches = "; ".join(f"--model {model} --dataset {dataset}" for model, dataset, _ in full) or "none fits"
            raise EthobenchError(f"{self.paths[0]}: choose one model and dataset: {matches}")
        return Scores.from_states(next(iter(full.values())), resamples=0)

    def _store(self) -> Any:
        from ethobench.cli.options import open_store

        if len(self.paths) != 1:
            raise typer.BadParameter(f"{self.kind} needs one path, the store of a run; got {len(self.paths)}", param_hint="PATH")
        return open_store(self.paths[0])

    def _agreement(self) -> tuple[Any, dict[str, Any]]:
        from ethobench.figures.plots import tables
        from ethobench.metrics import agreement

        recordings = [r for r in self._recordings(same_recording=True, annotations_only=True) if len(r.annotations) > 1]
        if not recordings:
            raise EthobenchError("no recording has two annotators, so there is no agreement to draw")
        annotations = {recording.id: dict(recording.annotations) for recording in recordings}
        result = agreement(annotations, individuals={recording.id: recording.individual for recording in recordings})
        measure = self.measure or "kappa"
        self.table = tables.agreement_table(result, measure)
        return result, {"measure": measure}

    def _learning_curve(self) -> tuple[Any, dict[str, Any]]:
        from ethobench.benchmarks.results import final_jobs, results_table
        from ethobench.figures.plots.tables import learning_curve_table, training_sizes

        store = self._store()
        measure = self.measure or "f1"
        rows = learning_curve_table(results_table(store), training_sizes(job for _, job, _ in final_jobs(store)), measure)
        self.table = [row for row in rows if self.model in (None, row["model"]) and self.dataset in (None, row["dataset"])]
        if len({row["dataset"] for row in self.table}) > 1:
            matches = ", ".join(dict.fromkeys(row["dataset"] for row in self.table))
            raise EthobenchError(f"the store has several datasets; choose one with --dataset: {matches}")
        return self.table, {"ylabel": measure}

    def _space(self) -> tuple[Any, dict[str, Any]]:
        from ethobench.figures.plots import tables

        recordings = [recording for recording in self._recordings() if recording.has_signals]
        if not recordings:
            raise EthobenchError(f"{', '.join(map(str, self.paths))}: no poses, so there is no path to draw")
        chosen = self._chosen(recordings)
        selection: dict[str, Any] = {"individual": self.individual, "keypoint": self.keypoint}
        path = tables.position_table(chosen, **selection)
        self.table = [{"frame": k, "x": x, "y": y} for k, (x, y) in enumerate(zip(path["x"].tolist(), path["y"].tolist(), strict=True))]
        if chosen.metadata.get("zones"):
            selection["zones"] = _zone_outlines(chosen)
        if self.kind == "trajectory":
            return chosen, {**selection, "behaviors": self.behaviors, "annotator": self._annotator, "colors": _colors(recordings)}
        return chosen, selection

    def _groups(self) -> tuple[Any, dict[str, Any]]:
        from ethobench.analysis.groups import compare_groups

        if not self.groups:
            raise typer.BadParameter("name the column of the study that has the groups, such as treatment", param_hint="--groups")
        recordings = [recording for recording in self._recordings(annotations_only=True) if recording.annotations]
        measure = self.measure or "share"
        result = compare_groups(recordings, self.groups, measures=measure, behaviors=self.behaviors, annotator=self._annotator)
        self.table = [
            {"individual": unit, "group": name, "behavior": row["behavior"], "measure": measure, "value": value}
            for row in result["rows"]
            for name, group in row["groups"].items()
            for unit, value in group["values"].items()
        ]
        return result, {"measure": measure}


def _colors(recordings: Sequence[Recording]) -> dict[str, Any]:
    """Return the colors of behaviors in all recordings, so that figures of one of them have the same."""
    from ethobench.figures.colors import behavior_colors

    return behavior_colors([a for recording in recordings for a in recording.annotations.values()], "light")


def _zone_outlines(recording: Recording) -> dict[str, Any]:
    """Return the corners (n_corners, 2) of the zones of a study in a recording, in pixels."""
    import numpy as np

    from ethobench.datasets.zones import pixels_per_cm, zones_of

    scale = pixels_per_cm(recording)
    return {zone.name: np.asarray(zone.geometry(zone.scale(scale)).exterior.coords) for zone in zones_of(recording)}


def _fitted(kind: str, source: Any, options: Mapping[str, Any], width: float, height: float | None) -> Axes:
    """Draw at the width that was asked for, and at the height that the figure has by default."""
    from ethobench import plot
    from ethobench.figures.plots.style import figure_of

    draw = getattr(plot, kind)
    if height is None:
        default = figure_of(draw(source, **options)).get_size_inches() * 25.4
        is_map = kind in ("occupancy", "trajectory", "reliability")
        height = float(default[1]) * (width / float(default[0]) if is_map else 1.0)
    return draw(source, plot.figure(width, height).add_subplot(), **options)  # type: ignore[no-any-return]


def _refuse_unused(context: typer.Context, kind: str) -> None:
    """Refuse options that the figure would ignore."""
    for name, kinds in OPTIONS.items():
        source = context.get_parameter_source(name)
        if kind not in kinds and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"has no meaning for {kind}; it belongs to {', '.join(kinds)}", param_hint=f"--{name}")


def _write_csv(path: Path, table: Table, *, overwrite: bool) -> None:
    from ethobench.core.files import atomic_path
    from ethobench.formats.tables import write_table

    columns = list(table[0]) if table else []
    with atomic_path(path, overwrite=overwrite) as temporary:
        write_table(temporary, columns, [["" if row[name] is None else str(row[name]) for name in columns] for row in table])
