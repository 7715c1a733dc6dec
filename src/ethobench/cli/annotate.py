"""`ethobench annotate`: a multimodal language model annotates videos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli._output import echo, make_console, secho

if TYPE_CHECKING:
    from ethobench.core import Annotation
    from ethobench.mllm.annotate import AnnotationOutcome, RecordingRequests
    from ethobench.mllm.output import OutputFolder
    from ethobench.mllm.providers import Provider
    from ethobench.mllm.runner import RequestRunner

WHOM, VIDEO, QUESTION, LIMITS = "Whom to ask", "How the video is shown", "How it is asked", "Limits"


def run(
    videos: Annotated[list[Path], typer.Argument(help="Video files.", metavar="VIDEO...")],
    task: Annotated[str, typer.Option(help="calms21, freezing, grooming, mouse_ventral1, mouse_ventral2, scratch_aid, or a .toml file.")],
    provider: Annotated[str, typer.Option(help="gemini, openai (or any server like it), replay or chance.", rich_help_panel=WHOM)],
    out: Annotated[Path, typer.Option(help="Folder for annotations and answers; started again, only what is missing is asked.")],
    model: Annotated[str, typer.Option(help="As the provider calls it: gemini-2.5-pro, qwen-vl-max, ...", rich_help_panel=WHOM)] = "",
    base_url: Annotated[str, typer.Option(help="Another server's address.", metavar="URL", rich_help_panel=WHOM)] = "",
    key_variable: Annotated[
        str, typer.Option(help="Environment variable that holds the key, if not the usual one.", metavar="NAME", rich_help_panel=WHOM)
    ] = "",
    answers: Annotated[Path | None, typer.Option(help="For replay: folder or .jsonl file of answers.", rich_help_panel=WHOM)] = None,
    show_prompt: Annotated[bool, typer.Option("--show-prompt", help="Print what would be asked, and stop.")] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print tokens, dollars and minutes, and stop.")] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Stop before more than this is spent.", metavar="DOLLARS", min=0, rich_help_panel=LIMITS)
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Ask in one batch: cheaper, slower.", rich_help_panel=LIMITS)] = False,
    minutes: Annotated[float | None, typer.Option(help="Only so much of the beginning.", min=0.01, rich_help_panel=VIDEO)] = None,
    window: Annotated[float, typer.Option(help="Ask about windows of so many seconds; 0: all at once.", min=0, rich_help_panel=VIDEO)] = 0,
    overlap: Annotated[float, typer.Option(help="Seconds that windows share.", min=0, rich_help_panel=VIDEO)] = 10,
    fps: Annotated[float | None, typer.Option(help="Pictures for each second.", min=0.01, rich_help_panel=VIDEO)] = None,
    height: Annotated[int | None, typer.Option(help="Make pictures as small as this.", min=16, rich_help_panel=VIDEO)] = None,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Write the time into the pictures.", rich_help_panel=VIDEO)] = False,
    form: Annotated[
        str, typer.Option(help="video, frames (single pictures) or link; the provider's choice unless told.", rich_help_panel=VIDEO)
    ] = "auto",
    address: Annotated[
        str, typer.Option(help="For link: where the provider finds the videos, as gs://bucket/folder.", rich_help_panel=VIDEO)
    ] = "",
    send: Annotated[str, typer.Option(help="Videos inline or by upload; by their size unless told.", rich_help_panel=VIDEO)] = "auto",
    times: Annotated[str, typer.Option(help="MM:SS, HH:MM:SS or seconds.", rich_help_panel=QUESTION)] = "MM:SS",
    structured: Annotated[
        str, typer.Option(help="Hand over the answer's schema, just ask for a JSON object, or none.", rich_help_panel=QUESTION)
    ] = "schema",
    examples: Annotated[
        str | None, typer.Option(help="Dataset to take worked examples from.", metavar="DATASET", rich_help_panel=QUESTION)
    ] = None,
    shots: Annotated[int, typer.Option(help="How many examples (clips: of each behavior).", min=1, rich_help_panel=QUESTION)] = 1,
    example_kind: Annotated[
        str, typer.Option(help="stretches (video and annotation), clips (of single behaviors) or text.", rich_help_panel=QUESTION)
    ] = "stretches",
    example_seconds: Annotated[float, typer.Option(help="How long an example may be.", min=1, rich_help_panel=QUESTION)] = 60,
    annotator: Annotated[str | None, typer.Option(help="Whose examples, where there are several.", rich_help_panel=QUESTION)] = None,
    given: Annotated[
        Path | None,
        typer.Option(help="Folder of annotations of the videos' beginnings, by name: shown, and kept.", rich_help_panel=QUESTION),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed asks for another answer.", rich_help_panel=QUESTION)] = 0,
    max_output_tokens: Annotated[int | None, typer.Option(help="Longest answer.", min=16, rich_help_panel=LIMITS)] = None,
    max_concurrent: Annotated[int, typer.Option(help="Questions under way at the same time.", min=1, rich_help_panel=LIMITS)] = 4,
    max_per_minute: Annotated[float | None, typer.Option(help="Most questions in a minute.", min=0.01, rich_help_panel=LIMITS)] = None,
    attempts: Annotated[int, typer.Option(help="How often a question is tried.", min=1, rich_help_panel=LIMITS)] = 6,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.", min=0.1, rich_help_panel=LIMITS)] = 600,
    poll: Annotated[float, typer.Option(help="Seconds between looks at a batch or upload.", min=0.01, rich_help_panel=LIMITS)] = 10,
    again: Annotated[
        bool, typer.Option("--again", help="Ask again where the known answer was cut off or withheld.", rich_help_panel=LIMITS)
    ] = False,
    prices: Annotated[Path | None, typer.Option(help="Your own table of prices (TOML).", rich_help_panel=LIMITS)] = None,
    cache: Annotated[Path | None, typer.Option(help="Where answers are kept for all runs; in the user's cache folder unless told.")] = None,
    to: Annotated[str, typer.Option(help="Format of the annotations.")] = "tidy",
) -> None:
    """Have a language model annotate videos; answers are kept, mended where needed, and never paid for twice.

    Keys come from the environment alone: GEMINI_API_KEY, OPENAI_API_KEY, DASHSCOPE_API_KEY.

    For example:

    [bold]ethobench annotate cage1.mp4 --task grooming --provider gemini --model gemini-2.5-pro --out labels --estimate[/bold]

    [bold]ethobench annotate *.mp4 --task mine.toml --provider openai --base-url http://localhost:8000/v1 --model qwen --out labels[/bold]
    """
    from ethobench.mllm.annotate import create_provider
    from ethobench.mllm.cost import PriceTable
    from ethobench.mllm.output import OutputFolder
    from ethobench.mllm.providers import Access
    from ethobench.mllm.request import RequestSettings
    from ethobench.mllm.task import load_task

    access = Access(base_url, key_variable, timeout, poll, send, answers)
    provider = create_provider(provider, model, access, PriceTable(prices))
    how = RequestSettings(
        window=window,
        overlap=overlap if window else 0.0,
        fps=fps,
        height=height,
        timestamps=timestamps,
        times=times,
        form=form,
        address=address,
        structured=structured,
        max_output_tokens=max_output_tokens,
    )
    what = load_task(task)
    options: dict[str, Any] = {"seconds": 60 * minutes if minutes else None, "draw": seed}
    if examples:
        options["examples"] = _examples(examples, annotator, provider, how, kind=example_kind, shots=shots, seconds=example_seconds)
    assignments = _assignments(videos, what, provider, how, given, options)
    if show_prompt:
        for assignment in assignments:
            for request in assignment.requests:
                echo(f"=== {request.recording}, {request.window[0]:g} s to {request.window[1]:g} s, key {request.key}\n{request.show()}\n")
        return
    runner = _asker(provider, cache, max_cost, max_concurrent, max_per_minute, attempts, again)
    if estimate:
        _tell_estimate(assignments, runner, batch=batch, max_concurrent=max_concurrent)
        return
    _work(assignments, runner, OutputFolder(out, to, model or provider), batch=batch, poll=poll)


def _examples(dataset: str, annotator: str | None, provider: Provider, settings: Any, **chosen: Any) -> tuple[Any, ...]:
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
            raise EthobenchError(f"{dataset}: recording {recording.id!r} has no video to show; use --example-kind text")
        return make_clip(recording.video, start, stop, float("inf"), provider, settings)

    return select_examples(data.recordings, truths, clip, **chosen)


def _assignments(
    videos: Sequence[Path], task: Any, provider: Provider, settings: Any, given: Path | None, options: dict[str, Any]
) -> list[RecordingRequests]:
    from ethobench.core import Recording
    from ethobench.core.errors import EthobenchError
    from ethobench.core.video import probe
    from ethobench.mllm.annotate import assign

    stems = [video.stem for video in videos]
    twice = sorted({stem for stem in stems if stems.count(stem) > 1})
    if twice:
        raise EthobenchError(f"results are called by the videos' names, but these stand twice: {', '.join(twice)}")
    found = []
    for video in videos:
        info = probe(video)
        known = _given(given, video, info.rate, task) if given else None
        found.append(assign(Recording(video.stem, rate=info.rate, video=video), task, provider, settings, given=known, **options))
    return found


def _given(folder: Path, video: Path, rate: float, task: Any) -> Annotation | None:
    """Read what a person annotated of a video's beginning: it reaches to the end of the last bout."""
    from ethobench.core.errors import EthobenchError
    from ethobench.formats import read_at_rate

    files = sorted(path for path in folder.glob(f"{video.stem}.*") if path != video and path.is_file())
    if not files:
        return None
    recordings = [r for r in read_at_rate(files[0], rate) if r.annotations]
    if len(recordings) != 1:
        raise EthobenchError(f"{files[0]}: one annotation of {video.name} is expected here, not {len(recordings)}")
    return recordings[0].annotation().with_ethogram(task.ethogram)


def _asker(
    provider: Provider, cache: Path | None, max_cost: float | None, max_concurrent: int, max_per_minute: float | None, attempts: int, again: bool
) -> RequestRunner:
    from ethobench.cli._output import print_note
    from ethobench.mllm.cache import AnswerCache
    from ethobench.mllm.cost import Budget
    from ethobench.mllm.retry import RetryPolicy
    from ethobench.mllm.runner import RequestRunner

    return RequestRunner(
        provider,
        AnswerCache(cache),
        retry_policy=RetryPolicy(attempts=attempts),
        budget=Budget(max_cost),
        max_concurrent=max_concurrent,
        max_per_minute=max_per_minute,
        again=again,
        log=print_note,
    )


def _tell_estimate(assignments: Sequence[RecordingRequests], runner: RequestRunner, *, batch: bool, max_concurrent: int) -> None:
    from ethobench.mllm.annotate import unique_requests
    from ethobench.mllm.cost import estimate

    requests = unique_requests(assignments)
    new = [request for request in requests if runner.cached_reply(request) is None]
    spec = runner.provider.spec
    told = estimate(new, spec, batch=batch)
    echo(f"{len(assignments)} videos, {len(requests)} questions, {len(requests) - len(new)} of them answered before")
    echo(f"tokens: about {told.input_tokens:,} in, {told.output_tokens:,} out")
    if runner.provider.is_free:
        echo("dollars: none, nothing is sent")
    elif told.dollars is None or told.most is None:
        echo(f"dollars: no price is known for {spec.name}; give one with --prices")
    else:
        echo(f"dollars: about {told.dollars:.2f}, at most {told.most:.2f} (prices of {spec.date}, {spec.source})")
    echo("minutes: a batch may take up to a day" if batch else f"minutes: about {told.minutes / min(max_concurrent, max(1, len(new))):.1f}")


def _work(assignments: Sequence[RecordingRequests], runner: RequestRunner, folder: OutputFolder, *, batch: bool, poll: float) -> None:
    from ethobench.cli._output import print_note
    from ethobench.mllm.annotate import FAILED, read_replies, send_requests
    from ethobench.mllm.runner import BatchRunner
    from ethobench.models.network_use import NetworkUse

    missing = [assignment for assignment in assignments if not folder.is_done(assignment)]
    if len(missing) < len(assignments):
        echo(f"{len(assignments) - len(missing)} of {len(assignments)} videos were annotated before, and are left as they are")
    if missing and runner.provider.uses_network:
        use = NetworkUse(runner.provider.name, runner.provider.model, runner.provider.host, runner.provider.key_variables)
        secho(f"network: annotate sends {use.describe(len(missing))}", err=True, fg=typer.colors.YELLOW)
    send_all = BatchRunner(runner, poll=poll, log=print_note).send_all if batch else runner.send_all
    outcomes: list[AnnotationOutcome] = []
    try:
        with _shown(len(missing)) as show:
            for assignment, asked in send_requests(missing, send_all):
                annotation, outcome = read_replies(assignment, asked)
                notes = folder.write(assignment, asked, annotation, outcome)
                outcomes.append(outcome)
                show(outcome.told())
                for note in notes:
                    print_note(f"{assignment.recording}: {note}")
    except KeyboardInterrupt:
        secho("stopped; the same command goes on from here", err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    finally:
        if outcomes:
            folder.write_table()
    failed = [outcome for outcome in outcomes if outcome.state == FAILED]
    echo(f"{len(outcomes) - len(failed)} videos annotated into {folder.root}, ${runner.budget.spent:.4f} spent")
    if failed:
        secho(f"error: {len(failed)} of {len(missing)} videos have no annotation; see {folder.root / 'outcomes.csv'}", err=True, fg="red")
        raise typer.Exit(1)


@contextmanager
def _shown(total: int) -> Iterator[Any]:
    """Yield what is told of each video: a bar on a terminal, plain lines elsewhere."""
    console = make_console()
    if not console.is_terminal:
        done = [0]

        def line(text: str) -> None:
            done[0] += 1
            echo(f"[{done[0]}/{total}] {text}")

        yield line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    with Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("asking", total=total)

        def advance(text: str) -> None:
            progress.console.print(text, markup=False)
            progress.advance(bar)

        yield advance
