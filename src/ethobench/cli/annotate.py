"""`ethobench annotate`: annotate videos with a multimodal language model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.output import echo, make_console, print_note, secho

if TYPE_CHECKING:
    from ethobench.core import Annotation
    from ethobench.mllm.annotate import AnnotationOutcome, RecordingRequests
    from ethobench.mllm.output import OutputFolder
    from ethobench.mllm.prompts import Example
    from ethobench.mllm.providers import Provider
    from ethobench.mllm.request import RequestSettings
    from ethobench.mllm.runner import RequestRunner
    from ethobench.mllm.task import Task

PROVIDER, VIDEO, PROMPT, LIMITS = "Provider", "Video", "Prompt", "Limits"


def run(
    videos: Annotated[list[Path], typer.Argument(help="Video files.", metavar="VIDEO")],
    task: Annotated[str, typer.Option(help="calms21, freezing, grooming, mouse_ventral1, mouse_ventral2, scratch_aid, or a .toml file.")],
    provider: Annotated[str, typer.Option(help="gemini, openai (or a compatible server), replay or chance.", rich_help_panel=PROVIDER)],
    out: Annotated[Path, typer.Option(help="Folder for annotations and answers. An interrupted run continues where it stopped.")],
    model: Annotated[
        str, typer.Option(help="The provider's name of the model: gemini-2.5-pro, qwen-vl-max, ...", rich_help_panel=PROVIDER)
    ] = "",
    base_url: Annotated[str, typer.Option(help="URL of another server.", metavar="URL", rich_help_panel=PROVIDER)] = "",
    key_variable: Annotated[
        str, typer.Option(help="Environment variable with the API key, if not the default.", metavar="NAME", rich_help_panel=PROVIDER)
    ] = "",
    answers: Annotated[Path | None, typer.Option(help="For replay: folder or .jsonl file of answers.", rich_help_panel=PROVIDER)] = None,
    show_prompt: Annotated[bool, typer.Option("--show-prompt", help="Print the prompts and stop.")] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print the estimated tokens, cost and time, and stop.")] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Maximum cost in US dollars.", metavar="DOLLARS", min=0, rich_help_panel=LIMITS)
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="Send all requests as one batch: cheaper, slower.", rich_help_panel=LIMITS)
    ] = False,
    minutes: Annotated[float | None, typer.Option(help="Annotate only the first N minutes.", min=0.01, rich_help_panel=VIDEO)] = None,
    window: Annotated[float, typer.Option(help="Split videos into windows of N seconds; 0: no windows.", min=0, rich_help_panel=VIDEO)] = 0,
    overlap: Annotated[float, typer.Option(help="Overlap of windows in seconds.", min=0, rich_help_panel=VIDEO)] = 10,
    fps: Annotated[float | None, typer.Option(help="Frames per second.", min=0.01, rich_help_panel=VIDEO)] = None,
    height: Annotated[int | None, typer.Option(help="Maximum height of the frames in pixels.", min=16, rich_help_panel=VIDEO)] = None,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Draw the time into the frames.", rich_help_panel=VIDEO)] = False,
    input_type: Annotated[str, typer.Option(help="video, frames or link; auto: the provider's default.", rich_help_panel=VIDEO)] = "auto",
    video_url: Annotated[
        str, typer.Option(help="For link: URL of the folder with the videos, such as gs://bucket/folder.", rich_help_panel=VIDEO)
    ] = "",
    transfer: Annotated[
        str, typer.Option(help="Send videos inline or by upload; auto: depending on their size.", rich_help_panel=VIDEO)
    ] = "auto",
    time_format: Annotated[str, typer.Option(help="Times in the answer: MM:SS, HH:MM:SS or seconds.", rich_help_panel=PROMPT)] = "MM:SS",
    structured_output: Annotated[
        str, typer.Option(help="Request the answer with a JSON schema, as any JSON object, or none.", rich_help_panel=PROMPT)
    ] = "schema",
    examples: Annotated[str | None, typer.Option(help="Dataset for worked examples.", metavar="DATASET", rich_help_panel=PROMPT)] = None,
    shots: Annotated[int, typer.Option(help="Number of examples (clips: per behavior).", min=1, rich_help_panel=PROMPT)] = 1,
    example_kind: Annotated[
        str, typer.Option(help="excerpts (video and annotation), clips (of single behaviors) or text.", rich_help_panel=PROMPT)
    ] = "excerpts",
    example_seconds: Annotated[float, typer.Option(help="Maximum duration of an example.", min=1, rich_help_panel=PROMPT)] = 60,
    annotator: Annotated[str | None, typer.Option(help="Annotator of the examples, if there are several.", rich_help_panel=PROMPT)] = None,
    initial: Annotated[
        Path | None,
        typer.Option(
            help="Folder with annotations of the first part of each video, named like it. They are added to the prompt and to the result.",
            rich_help_panel=PROMPT,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed; another seed gives an independent answer.", rich_help_panel=PROMPT)] = 0,
    max_output_tokens: Annotated[int | None, typer.Option(help="Maximum length of an answer.", min=16, rich_help_panel=LIMITS)] = None,
    max_concurrent: Annotated[int, typer.Option(help="Maximum number of concurrent requests.", min=1, rich_help_panel=LIMITS)] = 4,
    max_per_minute: Annotated[
        float | None, typer.Option(help="Maximum number of requests per minute.", min=0.01, rich_help_panel=LIMITS)
    ] = None,
    attempts: Annotated[int, typer.Option(help="Maximum number of attempts per request.", min=1, rich_help_panel=LIMITS)] = 6,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a reply.", min=0.1, rich_help_panel=LIMITS)] = 600,
    poll: Annotated[float, typer.Option(help="Seconds between checks of a batch or upload.", min=0.01, rich_help_panel=LIMITS)] = 10,
    retry_incomplete: Annotated[
        bool,
        typer.Option("--retry-incomplete", help="Repeat requests if the cached answer is truncated or withheld.", rich_help_panel=LIMITS),
    ] = False,
    prices: Annotated[Path | None, typer.Option(help="Your own price table (TOML).", rich_help_panel=LIMITS)] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for the cache of answers; default: the user's cache folder.")] = None,
    to: Annotated[str, typer.Option(help="Format of the annotations.")] = "tidy",
) -> None:
    """Annotate videos with a multimodal language model. Answers are cached, so no request is paid for twice.

    API keys are read from the environment only: GEMINI_API_KEY, OPENAI_API_KEY, DASHSCOPE_API_KEY.

    Example: [bold]ethobench annotate cage1.mp4 --task grooming --provider gemini --model gemini-2.5-pro --out labels --estimate[/bold]

    Example: [bold]ethobench annotate *.mp4 --task mine.toml --provider openai --base-url http://localhost:8000/v1 --model qwen
    --out labels[/bold]
    """
    from ethobench.mllm.annotate import create_provider
    from ethobench.mllm.cache import ReplyCache
    from ethobench.mllm.cost import Budget, PriceTable
    from ethobench.mllm.output import OutputFolder
    from ethobench.mllm.providers import Access
    from ethobench.mllm.request import RequestSettings
    from ethobench.mllm.retry import RetryPolicy
    from ethobench.mllm.runner import RequestRunner
    from ethobench.mllm.task import load_task

    access = Access(base_url, key_variable, timeout, poll, transfer, answers)
    service = create_provider(provider, model, access, PriceTable(prices))
    settings = RequestSettings(
        window=window,
        overlap=overlap if window else 0.0,
        fps=fps,
        height=height,
        timestamps=timestamps,
        time_format=time_format,
        input_type=input_type,
        video_url=video_url,
        structured_output=structured_output,
        max_output_tokens=max_output_tokens,
    )
    options: dict[str, Any] = {"seconds": 60 * minutes if minutes else None, "seed": seed}
    loaded_task = load_task(task)
    if examples:
        selection = {"kind": example_kind, "shots": shots, "seconds": example_seconds}
        options["examples"] = _load_examples(examples, annotator, service, settings, **selection)
    recordings = _build_requests(videos, loaded_task, service, settings, initial, options)
    if show_prompt:
        _print_prompts(recordings)
        return
    runner = RequestRunner(
        service,
        ReplyCache(cache),
        retry_policy=RetryPolicy(attempts=attempts),
        budget=Budget(max_cost),
        max_concurrent=max_concurrent,
        max_per_minute=max_per_minute,
        retry_incomplete=retry_incomplete,
        log=print_note,
    )
    if estimate:
        _print_estimate(recordings, runner, batch=batch)
        return
    _annotate(recordings, runner, OutputFolder(out, to, model or provider), batch=batch, poll=poll)


def _load_examples(
    dataset: str, annotator: str | None, provider: Provider, settings: RequestSettings, **selection: Any
) -> tuple[Example, ...]:
    from ethobench.core import Recording
    from ethobench.core.errors import EthobenchError
    from ethobench.datasets import load_dataset
    from ethobench.mllm.annotate import make_clip
    from ethobench.mllm.prompts import select_examples
    from ethobench.mllm.request import Clip

    data = load_dataset(dataset)
    truths = {r.id: r.annotation(annotator).with_ethogram(data.ethogram) for r in data}

    def clip(recording: Recording, start: float, stop: float) -> Clip:
        if recording.video is None:
            raise EthobenchError(f"{dataset}: recording {recording.id!r} has no video; use --example-kind text")
        return make_clip(recording.video, start, stop, float("inf"), provider, settings)

    return select_examples(data.recordings, truths, clip, **selection)


def _build_requests(
    videos: Sequence[Path], task: Task, provider: Provider, settings: RequestSettings, initial: Path | None, options: dict[str, Any]
) -> list[RecordingRequests]:
    from ethobench.core import Recording
    from ethobench.core.errors import EthobenchError
    from ethobench.core.video import probe
    from ethobench.mllm.annotate import build_requests

    stems = [video.stem for video in videos]
    duplicates = sorted({stem for stem in stems if stems.count(stem) > 1})
    if duplicates:
        raise EthobenchError(f"duplicate video names: {', '.join(duplicates)}; rename the files, since results are named after them")
    recordings = []
    for video in videos:
        info = probe(video)
        recording = Recording(video.stem, rate=info.rate, video=video)
        annotation = _read_initial(initial, video, info.rate, task) if initial else None
        recordings.append(build_requests(recording, task, provider, settings, initial=annotation, **options))
    return recordings


def _read_initial(folder: Path, video: Path, rate: float, task: Task) -> Annotation | None:
    """Read the annotation of a video's beginning, which ends with its last bout; None if there is no file for the video."""
    from ethobench.core.errors import EthobenchError
    from ethobench.formats import read_at_rate

    files = sorted(path for path in folder.glob(f"{video.stem}.*") if path != video and path.is_file())
    if not files:
        return None
    recordings = [r for r in read_at_rate(files[0], rate) if r.annotations]
    if len(recordings) != 1:
        raise EthobenchError(f"{files[0]}: expected one annotation of {video.name}, got {len(recordings)}")
    return recordings[0].annotation().with_ethogram(task.ethogram)


def _print_prompts(recordings: Sequence[RecordingRequests]) -> None:
    for recording in recordings:
        for request in recording.requests:
            start, stop = request.window
            echo(f"=== {request.recording}, {start:g} s to {stop:g} s, key {request.key}\n{request.describe()}\n")


def _print_estimate(recordings: Sequence[RecordingRequests], runner: RequestRunner, *, batch: bool) -> None:
    from ethobench.mllm.annotate import unique_requests
    from ethobench.mllm.cost import estimate_cost

    requests = unique_requests(recordings)
    new = [request for request in requests if runner.cached_reply(request) is None]
    spec = runner.provider.spec
    estimate = estimate_cost(new, spec, batch=batch)
    echo(f"{len(recordings)} videos, {len(requests)} requests, {len(requests) - len(new)} of them in the cache")
    echo(f"tokens: about {estimate.input_tokens:,} input, {estimate.output_tokens:,} output")
    if runner.provider.is_free:
        echo("cost: none, nothing is sent")
    elif estimate.dollars is None or estimate.max_dollars is None:
        echo(f"cost: unknown, there is no price for {spec.name}; add one with --prices")
    else:
        echo(f"cost: about ${estimate.dollars:.2f}, at most ${estimate.max_dollars:.2f} (prices of {spec.date}, {spec.source})")
    minutes = estimate.minutes / min(runner.max_concurrent, max(1, len(new)))
    echo("time: a batch may take up to a day" if batch else f"time: about {minutes:.1f} minutes")


def _annotate(recordings: Sequence[RecordingRequests], runner: RequestRunner, folder: OutputFolder, *, batch: bool, poll: float) -> None:
    from ethobench.mllm.annotate import FAILED, read_replies, send_requests
    from ethobench.mllm.runner import BatchRunner
    from ethobench.models.network_use import NetworkUse

    pending = [recording for recording in recordings if not folder.is_done(recording)]
    if len(pending) < len(recordings):
        echo(f"{len(recordings) - len(pending)} of {len(recordings)} videos are already annotated and are skipped")
    if pending and runner.provider.uses_network:
        use = NetworkUse(runner.provider.name, runner.provider.model, runner.provider.host, runner.provider.key_variables)
        secho(f"network: annotate sends {use.describe(len(pending))}", err=True, fg=typer.colors.YELLOW)
    send_all = BatchRunner(runner, poll=poll, log=print_note).send_all if batch else runner.send_all
    outcomes: list[AnnotationOutcome] = []
    try:
        with _progress(len(pending)) as show:
            for recording, results in send_requests(pending, send_all):
                annotation, outcome = read_replies(recording, results)
                notes = folder.write(recording, results, annotation, outcome)
                outcomes.append(outcome)
                show(outcome.summary())
                for note in notes:
                    print_note(f"{recording.recording}: {note}")
    except KeyboardInterrupt:
        secho("interrupted; run the same command again to continue", err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    finally:
        if outcomes:
            folder.write_table()
    failed = [outcome for outcome in outcomes if outcome.state == FAILED]
    echo(f"{len(outcomes) - len(failed)} videos annotated in {folder.root}, cost ${runner.budget.spent:.4f}")
    if failed:
        secho(f"error: {len(failed)} of {len(pending)} videos have no annotation; see {folder.root / 'outcomes.csv'}", err=True, fg="red")
        raise typer.Exit(1)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints a line per video: above a progress bar on a terminal, numbered elsewhere."""
    console = make_console()
    if not console.is_terminal:
        count = 0

        def print_line(text: str) -> None:
            nonlocal count
            count += 1
            echo(f"[{count}/{total}] {text}")

        yield print_line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    with Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("annotating", total=total)

        def advance(text: str) -> None:
            progress.console.print(text, markup=False)
            progress.advance(bar)

        yield advance
