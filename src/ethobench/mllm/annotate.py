"""Annotation of recordings with a model: recording to requests, replies to annotation and outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethobench.core import Annotation, Recording
from ethobench.core.errors import EthobenchError, MismatchError, ParameterError
from ethobench.core.messages import Message, Option
from ethobench.core.wording import join_names
from ethobench.formats.parse_cache import cache_folder, content_hash
from ethobench.mllm.answers import Answer, parse_answer, parse_answer_as_published
from ethobench.mllm.cost import PriceTable
from ethobench.mllm.prompts import Example, build_prompt
from ethobench.mllm.providers import Access, Provider, providers
from ethobench.mllm.repair_log import RepairLog
from ethobench.mllm.request import BLOCKED, LENGTH, Clip, Request, RequestSettings
from ethobench.mllm.runner import RequestResult
from ethobench.mllm.task import Task, answer_schema
from ethobench.mllm.windows import merge_windows, split_into_windows

RULES = ("repair", "published")
DEFAULT_RATE = 30.0
WELL_FORMED, REPAIRED, PARTIAL, FAILED = "well-formed", "repaired", "partial", "failed"

SendAll = Callable[[Sequence[Request]], Iterable[RequestResult]]


class AnswerWarning(UserWarning):
    """An answer was repaired, or could not be read."""


@dataclass(frozen=True)
class RecordingRequests:
    """The requests that annotate a recording, one per window.

    Attributes
    ----------
    recording : str
        Id of the recording.
    task : Task
    rate : float
        Frame rate of the annotation in Hz.
    n_frames : int
        Length of the annotation.
    requests : tuple of Request
    initial : Annotation, optional
        A person's annotation of the beginning.
    """

    recording: str
    task: Task
    rate: float
    n_frames: int
    requests: tuple[Request, ...]
    initial: Annotation | None = None


@dataclass(frozen=True)
class AnnotationOutcome:
    """Outcome of the requests of one recording.

    Attributes
    ----------
    recording : str
    state : {"well-formed", "repaired", "partial", "failed"}
        "partial": some windows have no usable answer and are unobserved.
    repairs : mapping of str to int
        Number of repairs by kind.
    reasons : tuple of str
        Why windows failed.
    questions, cached : int
        Number of requests, and of those answered from the cache.
    input_tokens, output_tokens : int
    dollars : float, optional
        Cost in US dollars of the requests that were sent; None if unknown.
    """

    recording: str
    state: str
    repairs: Mapping[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    questions: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0

    def summary(self) -> str:
        """Return the outcome as one line."""
        repairs = ", ".join(f"{kind} {count}" for kind, count in self.repairs.items())
        details = "; ".join(text for text in (repairs, *self.reasons[:2]) if text)
        return f"{self.recording}: {self.state}{f' ({details})' if details else ''}"


def outcomes_from_fit_report(fit_report: Mapping[str, Any]) -> list[AnnotationOutcome]:
    """Return the outcomes in the fit report of an `Mllm` model."""
    return [AnnotationOutcome(**{**fields, "reasons": tuple(fields["reasons"])}) for fields in fit_report.get("outcomes", [])]


def count_repairs(outcomes: Iterable[AnnotationOutcome]) -> dict[str, int]:
    """Return the total number of repairs by kind."""
    totals: dict[str, int] = {}
    for outcome in outcomes:
        for kind, count in outcome.repairs.items():
            totals[kind] = totals.get(kind, 0) + count
    return dict(sorted(totals.items()))


def create_provider(name: str, model: str = "", access: Access | None = None, prices: PriceTable | None = None) -> Provider:
    """Create a provider for a model, with the prices and limits of that model."""
    return providers[name](model, access or Access(), (prices or PriceTable()).lookup(name, model))


def make_clip(video: Path, start: float, stop: float, duration: float, provider: Provider, settings: RequestSettings) -> Clip:
    """Make the clip of a section of a video, with the input type that the provider supports.

    Parameters
    ----------
    video : Path
    start, stop : float
        Section in seconds.
    duration : float
        Duration of the video in seconds.
    provider : Provider
    settings : RequestSettings
    """
    input_type = provider.input_types[0] if settings.input_type == "auto" else settings.input_type
    if input_type not in provider.input_types:
        raise EthobenchError(f"{provider.name} supports input_type {join_names(provider.input_types, 'or')}, not {input_type}")
    url = f"{settings.video_url.rstrip('/')}/{video.name}" if input_type == "link" else ""
    digest = content_hash(video, cache_folder() / "arrays") if provider.needs_video else str(video)
    is_full_video = start <= 0 and stop >= duration - 1e-3
    if input_type == "link" and not is_full_video:
        raise EthobenchError(f"{video.name}: a linked video cannot be cut; cut it first, or annotate all of it")
    return Clip(video, digest, start, stop, is_full_video, input_type, settings.fps, settings.height, settings.timestamps, url)


def build_requests(
    recording: Recording,
    task: Task,
    provider: Provider,
    settings: RequestSettings,
    *,
    examples: Sequence[Example] = (),
    initial: Annotation | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> RecordingRequests:
    """Build the requests that annotate a recording.

    Parameters
    ----------
    recording : Recording
        With a video, unless the provider uses none. Its length and rate, if known, are those of the annotation.
    task : Task
    provider : Provider
    settings : RequestSettings
    examples : sequence of Example
        Worked examples.
    initial : Annotation, optional
        A person's annotation of the beginning. It is part of the prompt, and kept in the result.
    seconds : float, optional
        Annotate only the first `seconds` seconds.
    seed : int
        Requests with different seeds get independent answers.
    """
    video_seconds, duration, rate = _durations(recording, task, provider, seconds)
    video = recording.video if recording.video is not None and provider.needs_video else Path(recording.id)
    schema = answer_schema(task, settings.time_format) if settings.structured_output == "schema" else None
    example_bouts = [(stop - start, name) for example in examples for start, stop, name in example.segments]
    hints = {"behaviors": list(task.ethogram.names), "bouts": example_bouts}
    max_tokens = provider.spec.output_tokens
    requests = []
    for start, stop in split_into_windows(duration, settings.window, settings.overlap):
        _check_duration(recording.id, stop - start, provider)
        clip = make_clip(video, start, stop, video_seconds, provider, settings)
        system, parts = build_prompt(
            task, clip, time_format=settings.time_format, examples=examples, initial=_crop_to_window(initial, start, stop)
        )
        requests.append(
            Request(
                provider=provider.identity,
                model=provider.model,
                system=system,
                parts=parts,
                schema=schema,
                structured_output=settings.structured_output,
                temperature=settings.temperature,
                top_p=settings.top_p,
                max_output_tokens=min(settings.max_output_tokens or max_tokens, max_tokens),
                seed=seed,
                recording=recording.id,
                window=(start, stop),
                hints=hints,
            )
        )
    return RecordingRequests(recording.id, task, rate, max(1, int(duration * rate + 0.5)), tuple(requests), initial)


def send_requests(recordings: Sequence[RecordingRequests], send_all: SendAll) -> Iterator[tuple[RecordingRequests, list[RequestResult]]]:
    """Send the requests of many recordings, and yield each recording with its results as soon as it is complete.

    Equal requests are sent once.

    Parameters
    ----------
    recordings : sequence of RecordingRequests
    send_all : callable
        `RequestRunner.send_all` or `BatchRunner.send_all`.
    """
    results: dict[str, RequestResult] = {}
    pending = list(recordings)
    for result in send_all(unique_requests(recordings)):
        results[result.request.key] = result
        for recording in [r for r in pending if all(request.key in results for request in r.requests)]:
            pending.remove(recording)
            yield recording, [results[request.key] for request in recording.requests]


def unique_requests(recordings: Iterable[RecordingRequests]) -> list[Request]:
    """Return the requests of all recordings without duplicates."""
    return list({request.key: request for recording in recordings for request in recording.requests}.values())


def read_replies(
    recording: RecordingRequests, results: Sequence[RequestResult], *, rule: str = "repair"
) -> tuple[Annotation, AnnotationOutcome]:
    """Parse the replies for a recording and merge its windows.

    Parameters
    ----------
    recording : RecordingRequests
    results : sequence of RequestResult
        One per request of the recording, in any order.
    rule : {"repair", "published"}
        Parse with `parse_answer` or with `parse_answer_as_published`.

    Returns
    -------
    annotation : Annotation
        Windows without a usable answer are unobserved.
    outcome : AnnotationOutcome
    """
    if rule not in RULES:
        raise ParameterError(f"`rule` must be one of {', '.join(RULES)}, got {rule!r}")
    by_key = {result.request.key: result for result in results}
    log, reasons = RepairLog(), []
    windows: list[tuple[tuple[float, float], Annotation | None]] = []
    ethogram = recording.task.ethogram
    for request in recording.requests:
        answer = _parse_result(by_key[request.key], recording, rule)
        log.add_counts(answer.repairs)
        if answer.failed:
            reasons.append(answer.reason)
        ethogram = ethogram.join(answer.annotation.ethogram)
        windows.append((request.window, None if answer.failed else answer.annotation))
    if len(windows) == 1 and windows[0][1] is not None:
        annotation = windows[0][1]
    else:
        recoded = [(window, None if answer is None else answer.with_ethogram(ethogram)) for window, answer in windows]
        annotation = merge_windows(recoded, ethogram, recording.rate, recording.n_frames)
    if recording.initial is not None:
        annotation = _prepend_initial(recording.initial, annotation)
    state = FAILED if len(reasons) == len(windows) else PARTIAL if reasons else REPAIRED if log.counts else WELL_FORMED
    replies = [result.reply for result in by_key.values() if result.reply is not None]
    costs = [result.dollars for result in by_key.values()]
    outcome = AnnotationOutcome(
        recording.recording,
        state,
        log.by_kind(),
        tuple(reasons),
        len(windows),
        sum(result.is_cached for result in by_key.values()),
        sum(reply.input_tokens or 0 for reply in replies),
        sum(reply.output_tokens or 0 for reply in replies),
        None if None in costs else sum(cost for cost in costs if cost is not None),
    )
    return annotation, outcome


def _parse_result(result: RequestResult, recording: RecordingRequests, rule: str) -> Answer:
    start, stop = result.request.window
    task, reply = recording.task, result.reply
    if reply is None or reply.finish == BLOCKED:
        empty = parse_answer("", task.ethogram, stop - start, recording.rate)
        return Answer(empty.annotation, failed=True, reason=result.error or f"blocked: {reply.detail if reply else ''}")
    if rule == "published":
        return parse_answer_as_published(reply.text, task.ethogram, stop - start, recording.rate)
    return parse_answer(
        reply.text,
        task.ethogram,
        stop - start,
        recording.rate,
        aliases=task.aliases,
        exclusive=task.exclusive,
        truncated=reply.finish == LENGTH,
    )


def _durations(recording: Recording, task: Task, provider: Provider, max_seconds: float | None) -> tuple[float, float, float]:
    """Return the duration of the video and that of the annotation, in seconds, and the frame rate."""
    annotated = None if recording.n_frames is None or recording.rate is None else recording.n_frames / recording.rate
    if provider.needs_video and recording.video is None:
        raise MismatchError(f"recording {recording.id!r} has no video, which provider {provider.name!r} needs")
    if recording.video is not None and (provider.needs_video or annotated is None):
        from ethobench.core.video import probe

        info = probe(recording.video)
        video_seconds, rate = info.duration, recording.rate or info.rate
    elif annotated is None:
        raise MismatchError(f"recording {recording.id!r} has no video, and its length or rate is unknown")
    else:
        video_seconds, rate = annotated, recording.rate or task.rate or DEFAULT_RATE
    duration = video_seconds if annotated is None else annotated
    if max_seconds is not None:
        duration = min(duration, max_seconds)
    return video_seconds, min(video_seconds, duration) if provider.needs_video else duration, rate


def _check_duration(recording: str, seconds: float, provider: Provider) -> None:
    limit = provider.spec.seconds
    if provider.needs_video and limit is not None and seconds > limit:
        problem = f"{recording}: {seconds:.0f} s of video exceed the limit of {provider.spec.name}, {limit:g} s; "
        raise EthobenchError(
            Message(problem, "use ", Option("window"), ", or ", Option("seconds", flag="--minutes"), " to annotate only the beginning")
        )


def _crop_to_window(initial: Annotation | None, start: float, stop: float) -> Annotation | None:
    """Return the initial annotation within a window; None if nothing is observed there."""
    if initial is None:
        return None
    first, last = int(start * initial.rate + 0.5), min(initial.n_frames, int(stop * initial.rate + 0.5))
    if first >= last:
        return None
    cropped = initial.crop(first, last)
    return cropped if len(cropped.observed.of_any().start) else None


def _prepend_initial(initial: Annotation, predicted: Annotation) -> Annotation:
    """Replace the beginning of the predicted annotation by the initial one."""
    initial = initial.resample(predicted.rate) if initial.rate != predicted.rate else initial
    observed = initial.observed.of_any()
    end = min(predicted.n_frames, initial.n_frames, int(observed.stop.max()) if len(observed.stop) else 0)
    head = initial.without_subjects().with_ethogram(predicted.ethogram).crop(0, end)
    tail = predicted.crop(end, predicted.n_frames)
    cut, duration = end / predicted.rate, predicted.n_frames / predicted.rate
    return merge_windows([((0.0, cut), head), ((cut, duration), tail)], predicted.ethogram, predicted.rate, predicted.n_frames)
