"""X"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethobench.core import Annotation, Recording
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.formats.parse_cache import cache_folder, content_hash
from ethobench.mllm.answers import Answer, parse_answer, parse_answer_as_published
from ethobench.mllm.cache import CHECKSUM, reply_checksum
from ethobench.mllm.cost import PriceTable
from ethobench.mllm.prompts import Example, build_prompt
from ethobench.mllm.providers import Access, Provider, providers
from ethobench.mllm.repair_log import RepairLog
from ethobench.mllm.request import BLOCKED, LENGTH, Clip, Request, RequestSettings
from ethobench.mllm.runner import RequestResult
from ethobench.mllm.task import Task, answer_schema
from ethobench.mllm.windows import merge_windows, windows

WELL_FORMED, REPAIRED, PARTIAL, FAILED = "well-formed", "repaired", "partial", "failed"


class AnswerWarning(UserWarning):
    """An answer had to be mended, or could not be read."""


@dataclass(frozen=True)
class AnnotationOutcome:
    """What became of a recording's questions.

    Attributes
    ----------
    recording : str
    state : {"well-formed", "repaired", "partial", "failed"}
        ``partial``: some windows have no answer, and are not observed.
    repairs : mapping of str to int
        By kind.
    reasons : tuple of str
        Why windows failed.
    questions, cached : int
        RequestResult in all, and answered by the cache.
    input_tokens, output_tokens : int
    dollars : float, optional
        Spent now; None where it is not known.
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
        """Return the outcome in words."""
        repairs = ", ".join(f"{kind} {count}" for kind, count in self.repairs.items())
        more = "; ".join(part for part in (repairs, *self.reasons[:2]) if part)
        return f"{self.recording}: {self.state}{f' ({more})' if more else ''}"


def outcomes_from_fit_report(account: Mapping[str, Any]) -> list[AnnotationOutcome]:
    """Return the outcomes that a model's account tells of."""
    return [AnnotationOutcome(**{**fields, "reasons": tuple(fields["reasons"])}) for fields in account.get("outcomes", [])]


def count_repairs(outcomes: Iterable[AnnotationOutcome]) -> dict[str, int]:
    """Add the repairs of many recordings up by kind."""
    total: dict[str, int] = {}
    for outcome in outcomes:
        for kind, count in outcome.repairs.items():
            total[kind] = total.get(kind, 0) + count
    return dict(sorted(total.items()))


RULES = ("repair", "published")
USUAL_RATE = 30.0


@dataclass(frozen=True)
class RecordingRequests:
    """A recording and the questions that have to be asked about it, one for each window.

    Attributes
    ----------
    recording : str
    task : Task
    rate : float
    n_frames : int
        Of the annotation that is to be made.
    requests : tuple of Request
    given : Annotation, optional
        What a person has annotated of the beginning.
    """

    recording: str
    task: Task
    rate: float
    n_frames: int
    requests: tuple[Request, ...]
    given: Annotation | None = None


def create_provider(name: str, model: str = "", access: Access | None = None, prices: PriceTable | None = None) -> Provider:
    """Make a provider for a model, with what is known of its price and limits."""
    return providers[name](model, access or Access(), (prices or PriceTable()).lookup(name, model))


def make_clip(video: Path, start: float, stop: float, length: float, provider: Provider, settings: RequestSettings) -> Clip:
    """Make the clip of a stretch, in the form in which the provider is to see it."""
    form = provider.input_types[0] if settings.input_type == "auto" else settings.input_type
    if form not in provider.input_types:
        raise EthobenchError(f"{provider.name} takes videos as {' or '.join(provider.input_types)}, not as {form}")
    address = f"{settings.video_url.rstrip('/')}/{video.name}" if form == "link" else ""
    digest = content_hash(video, cache_folder() / "arrays") if provider.needs_video else str(video)
    whole = start <= 0 and stop >= length - 1e-3
    if form == "link" and not whole:
        raise EthobenchError(f"{video.name}: a video at an address is sent whole; cut it first, or leave out the limit")
    return Clip(video, digest, start, stop, whole, form, settings.fps, settings.height, settings.timestamps, address)


def build_requests(
    recording: Recording,
    task: Task,
    provider: Provider,
    settings: RequestSettings,
    *,
    examples: Sequence[Example] = (),
    given: Annotation | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> RecordingRequests:
    """Put the questions about a recording.

    Parameters
    ----------
    recording : Recording
        With a video, unless the provider looks at none; its length and rate are the annotation's where known.
    task : Task
    provider : Provider
    settings : RequestSettings
    examples : sequence of Example
    given : Annotation, optional
        What a person has annotated of the beginning; kept as it is, and shown to the model.
    seconds : float, optional
        Only so much of the beginning.
    draw : int
        Numbers independent answers to the same question.
    """
    length, duration, rate = _length(recording, task, provider, seconds)
    video = recording.video if recording.video is not None and provider.needs_video else Path(recording.id)
    schema = answer_schema(task, settings.time_format) if settings.structured_output == "schema" else None
    hints = {"behaviors": list(task.ethogram.names), "bouts": [(b - a, name) for e in examples for a, b, name in e.segments]}
    limit = min(settings.max_output_tokens or provider.spec.output_tokens, provider.spec.output_tokens)
    requests = []
    for start, stop in windows(duration, settings.window, settings.overlap):
        _check_limits(recording.id, stop - start, provider)
        clip = make_clip(video, start, stop, length, provider, settings)
        system, parts = build_prompt(task, clip, time_format=settings.time_format, examples=examples, initial=_initial_in_window(given, start, stop))
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
                max_output_tokens=limit,
                seed=draw,
                recording=recording.id,
                window=(start, stop),
                hints=hints,
            )
        )
    return RecordingRequests(recording.id, task, rate, max(1, int(duration * rate + 0.5)), tuple(requests), given)


def read_replies(assignment: RecordingRequests, asked: Sequence[RequestResult], *, rule: str = "repair") -> tuple[Annotation, AnnotationOutcome]:
    """Bring the answers about a recording together.

    Parameters
    ----------
    assignment : RecordingRequests
    asked : sequence of RequestResult
        One for each of the assignment's requests, in any order.
    rule : {"repair", "published"}
        Mend what can be mended; or read as Rodent-Bench's own code does.

    Returns
    -------
    annotation : Annotation
        Windows without a usable answer are not observed.
    outcome : AnnotationOutcome
    """
    if rule not in RULES:
        raise EthobenchError(f"answers are read by the rule {' or '.join(RULES)}, not {rule!r}")
    by_key = {one.request.key: one for one in asked}
    log, reasons, parts = RepairLog(), [], []
    ethogram = assignment.task.ethogram
    for request in assignment.requests:
        answer = _read(by_key[request.key], assignment, rule)
        log.count_all(answer.repairs)
        if answer.failed:
            reasons.append(answer.reason)
        ethogram = ethogram.join(answer.annotation.ethogram)
        parts.append((request.window, None if answer.failed else answer.annotation))
    if len(parts) == 1 and parts[0][1] is not None:
        annotation = parts[0][1]
    else:
        recoded = [(window, None if part is None else part.with_ethogram(ethogram)) for window, part in parts]
        annotation = merge_windows(recoded, ethogram, assignment.rate, assignment.n_frames)
    if assignment.given is not None:
        annotation = _keep_initial(assignment.given, annotation)
    replies = [one.reply for one in by_key.values() if one.reply is not None]
    spent = [one.dollars for one in by_key.values()]
    failed = len(reasons)
    state = FAILED if failed == len(parts) else PARTIAL if failed else REPAIRED if log.counts else WELL_FORMED
    outcome = AnnotationOutcome(
        assignment.recording,
        state,
        log.by_kind(),
        tuple(reasons),
        len(parts),
        sum(one.is_cached for one in by_key.values()),
        sum(reply.input_tokens or 0 for reply in replies),
        sum(reply.output_tokens or 0 for reply in replies),
        None if None in spent else sum(d for d in spent if d is not None),
    )
    return annotation, outcome


def replies_to_json(assignment: RecordingRequests, asked: Sequence[RequestResult]) -> str:
    """Return the raw answers about a recording as JSON, in the form that `replay` reads."""
    by_key = {one.request.key: one for one in asked}
    rows = []
    for request in assignment.requests:
        one = by_key[request.key]
        reply = None if one.reply is None else {**vars(one.reply), "raw": {}}
        row = {"key": request.key, "window": list(request.window), "reply": reply, "error": one.error}
        rows.append({**row, CHECKSUM: reply_checksum(row)})
    return json.dumps({"ethobench": "answers", "recording": assignment.recording, "answers": rows}, indent=1)


def _read(one: RequestResult, assignment: RecordingRequests, rule: str) -> Answer:
    start, stop = one.request.window
    task, reply = assignment.task, one.reply
    if reply is None or reply.finish == BLOCKED:
        failed = parse_answer("", task.ethogram, stop - start, assignment.rate)
        return Answer(failed.annotation, failed=True, reason=one.error or f"blocked: {reply.detail if reply else ''}")
    if rule == "published":
        return parse_answer_as_published(reply.text, task.ethogram, stop - start, assignment.rate)
    return parse_answer(
        reply.text,
        task.ethogram,
        stop - start,
        assignment.rate,
        aliases=task.aliases,
        exclusive=task.exclusive,
        truncated=reply.finish == LENGTH,
    )


def _length(recording: Recording, task: Task, provider: Provider, seconds: float | None) -> tuple[float, float, float]:
    """Return the seconds of the video file, those to annotate, and the rate."""
    known = None if recording.n_frames is None or recording.rate is None else recording.n_frames / recording.rate
    if provider.needs_video:
        from ethobench.core.video import probe

        if recording.video is None:
            raise MismatchError(f"recording {recording.id!r} has no video, and {provider.name} looks at one")
        info = probe(recording.video)
        length, rate = info.duration, recording.rate or info.rate
    elif known is None and recording.video is not None:
        from ethobench.core.video import probe

        info = probe(recording.video)
        length, rate = info.duration, recording.rate or info.rate
    elif known is None:
        raise MismatchError(f"recording {recording.id!r} tells neither its length nor its rate, and has no video")
    else:
        length, rate = known, recording.rate or task.rate or USUAL_RATE
    wanted = min(part for part in (length if known is None else known, seconds) if part is not None)
    return length, min(length, wanted) if provider.needs_video else wanted, rate


def _check_limits(name: str, seconds: float, provider: Provider) -> None:
    most = provider.spec.seconds
    if provider.needs_video and most is not None and seconds > most:
        hint = "use --window, or --minutes for the beginning alone"
        raise EthobenchError(f"{name}: {seconds:.0f} s at once, and {provider.spec.name} takes {most:g} s; {hint}")


def _initial_in_window(given: Annotation | None, start: float, stop: float) -> Annotation | None:
    """Return the part of what is given that falls into a window; None if there is none."""
    if given is None:
        return None
    first, last = int(start * given.rate + 0.5), min(given.n_frames, int(stop * given.rate + 0.5))
    if first >= last:
        return None
    part = given.crop(first, last)
    return part if len(part.observed.of_any().start) else None


def _keep_initial(given: Annotation, found: Annotation) -> Annotation:
    """Keep what a person annotated of the beginning, and what was found of the rest."""
    known = given.resample(found.rate) if given.rate != found.rate else given
    seen = known.observed.of_any()
    until = min(found.n_frames, known.n_frames, int(seen.stop.max()) if len(seen.stop) else 0)
    head = known.without_subjects().with_ethogram(found.ethogram).crop(0, until)
    edges = [0.0, until / found.rate, found.n_frames / found.rate]
    tail = found.crop(until, found.n_frames)
    return merge_windows([((edges[0], edges[1]), head), ((edges[1], edges[2]), tail)], found.ethogram, found.rate, found.n_frames)


AskAll = Callable[[Sequence[Request]], Iterable[RequestResult]]


def send_requests(assignments: Sequence[RecordingRequests], send_all: AskAll) -> Iterator[tuple[RecordingRequests, list[RequestResult]]]:
    """Ask all questions, the same one once, and yield recordings with what came of theirs.

    Parameters
    ----------
    assignments : sequence of RecordingRequests
    send_all : callable
        `RequestRunner.send_all` or `BatchRunner.send_all`.
    """
    questions = unique_requests(assignments)
    answers: dict[str, RequestResult] = {}
    waiting = list(assignments)
    for asked in send_all(questions):
        answers[asked.request.key] = asked
        for assignment in [a for a in waiting if all(request.key in answers for request in a.requests)]:
            waiting.remove(assignment)
            yield assignment, [answers[request.key] for request in assignment.requests]


def unique_requests(assignments: Iterable[RecordingRequests]) -> list[Request]:
    """Return the questions of all assignments, each once."""
    return list({request.key: request for assignment in assignments for request in assignment.requests}.values())
