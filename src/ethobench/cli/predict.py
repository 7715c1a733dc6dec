"""`ethobench predict`: annotate recordings with a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli.options import AllowNetworkOption, ExternalOption, ReadOption, announce_network, parse_external, parse_options
from ethobench.cli.output import echo, echo_json, print_note, print_notes, secho
from ethobench.cli.workers import (
    MACHINE,
    AccountOption,
    ClusterOption,
    ClusterOptions,
    CoresOption,
    MemoryOption,
    NodesOption,
    QueueOption,
    SchedulerOption,
    ShowScriptOption,
    WalltimeOption,
)

if TYPE_CHECKING:
    from ethobench.runs.batch_prediction import BatchPrediction, PredictionSummary

RECORDINGS_PER_WORKER = 4
"""Number of recordings for which starting another process is worthwhile."""
MAX_FAILURES = 20
"""Number of failures that are listed."""


def run(
    model: Annotated[Path, typer.Argument(help="Folder of a trained model, from `ethobench train`.", metavar="MODEL_DIR")],
    inputs: Annotated[list[str], typer.Argument(help="Files with signals or poses, folders of files, or datasets.", metavar="INPUT")],
    out: Annotated[Path, typer.Option(help="Folder for the annotations, one file per recording.")],
    to: Annotated[str, typer.Option(help="Format of the annotations; list: ethobench formats.")] = "tidy",
    rate: Annotated[float | None, typer.Option(help="Frames per second, for files that do not state it.", metavar="HZ")] = None,
    option: ReadOption = None,
    style: Annotated[
        str, typer.Option(help="Annotator whose style to predict, for a model trained with --param condition=annotator.", metavar="NAME")
    ] = "",
    min_confidence: Annotated[
        float | None,
        typer.Option(help="Abstain where the most probable behavior has a lower probability (model auto).", min=0, max=0.999, metavar="P"),
    ] = None,
    in_sample: Annotated[
        bool,
        typer.Option("--in-sample", help="For training recordings, write in-sample predictions instead of out-of-fold ones."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
    allow_network: AllowNetworkOption = False,
    param: ExternalOption = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Number of processes; by default one per core and four recordings.", min=1, rich_help_panel=MACHINE),
    ] = None,
    scheduler: SchedulerOption = None,
    cluster: ClusterOption = None,
    nodes: NodesOption = 1,
    cores: CoresOption = 1,
    memory: MemoryOption = "8GB",
    walltime: WalltimeOption = "12:00:00",
    queue: QueueOption = "",
    account: AccountOption = "",
    show_script: ShowScriptOption = False,
) -> None:
    """Annotate recordings with a trained model.

    Run the same command again to resume: finished files are kept. A recording that cannot be read or predicted does not stop the others;
    failures are listed at the end.

    For recordings that the model was trained on, the out-of-fold predictions of its cross-validation are written, if it has any:
    they come from models that were not trained on the recording, so their scores are not too optimistic.

    Example: [bold]ethobench predict models/first new/*.csv --rate 30 --out annotations[/bold]

    Thousands of recordings: [bold]ethobench predict models/first new/ --out annotations --cluster slurm --nodes 10 --cores 8[/bold]
    """
    from ethobench.cli.progress import show_prediction_progress
    from ethobench.models.audit import LOG
    from ethobench.runs.batch_prediction import BatchPrediction, preload_for_prediction
    from ethobench.runs.executors import CERTIFICATES
    from ethobench.runs.prediction_store import PredictionOptions

    cluster_options = ClusterOptions(scheduler, cluster, nodes, cores, memory, walltime, queue, account, show_script)
    certificates = out / LOG / CERTIFICATES
    if show_script:
        cluster_options.print_script(certificates)
        return
    options = PredictionOptions(
        to, rate, style, min_confidence, in_sample, parse_external(param), parse_options(option), overwrite, allow_network
    )
    uses_cluster = bool(scheduler or cluster)
    if not uses_cluster and (workers or _expected_workers(inputs)) > 1:
        preload_for_prediction(model)
    batch = BatchPrediction(model, inputs, out, options)
    print_notes(batch.input_files.notes)
    announce_network(str(model), batch.model, len(batch.jobs))
    workers = workers or _useful_workers(len(batch.jobs))
    uses_pool = batch.jobs and (workers > 1 or uses_cluster)
    pool = cluster_options.pool(min(workers, len(batch.jobs)), certificates) if uses_pool else None
    try:
        with show_prediction_progress(quiet=as_json) as report:
            summary = batch.run(pool, report)
    except KeyboardInterrupt:
        finished = sum(batch.store.has(job.key) for job in batch.jobs)
        message = f"stopped: {finished} of {batch.total} recordings are predicted; run the same command again to continue"
        secho(message, err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    if as_json:
        echo_json(summary.to_dict())
    _print_notes(batch, summary, str(model))
    _print_summary(summary, show_counts=not as_json)


def _useful_workers(n_recordings: int) -> int:
    """Return the number of processes that are worthwhile for a number of recordings."""
    from ethobench.core.processes import usable_cores

    return min(usable_cores(), -(-n_recordings // RECORDINGS_PER_WORKER))


def _expected_workers(inputs: list[str]) -> int:
    """Estimate the number of processes before the inputs are read: a file is one recording, a folder as many as it has files."""
    return _useful_workers(sum(sum(1 for _ in Path(path).iterdir()) if Path(path).is_dir() else 1 for path in inputs))


def _print_notes(batch: BatchPrediction, summary: PredictionSummary, model: str) -> None:
    """Print notes from reading, predicting and writing, and warnings about training recordings."""
    from ethobench.cli.output import NoteCollector
    from ethobench.models.held_out import describe_origins

    notes = NoteCollector()
    for entry in summary.predicted:
        notes.add(entry.notes, summary.out / entry.file)
    notes.print()
    for message in describe_origins(model, {entry.recording: entry.origin for entry in summary.annotations}):
        secho(f"warning: {message}", err=True, fg=typer.colors.YELLOW)
    changed = batch.options.style or batch.options.min_confidence is not None
    if changed and batch.model.out_of_fold and any(entry.origin.match.is_training_recording for entry in summary.annotations):
        print_note("with --style or --min-confidence, in-sample predictions are written instead of out-of-fold ones")


def _print_summary(summary: PredictionSummary, *, show_counts: bool) -> None:
    reused = f", {len(summary.reused)} finished before" if summary.reused else ""
    if show_counts:
        echo(f"{len(summary.predicted)} recordings predicted{reused}, {len(summary.failures)} failed; annotations: {summary.out}")
    if not summary.failures:
        return
    for failure in summary.failures[:MAX_FAILURES]:
        secho(f"failed: {failure.input}: {failure.error}", err=True, fg=typer.colors.RED)
    if (more := len(summary.failures) - MAX_FAILURES) > 0:
        secho(f"failed: and {more} more (--json lists all)", err=True, fg=typer.colors.RED)
    raise typer.Exit(1)
