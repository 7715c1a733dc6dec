"""Outcomes and repairs for many kinds of replies and errors, as a table; with local servers in place of the providers.

``python -m tests.mllm.outcomes`` draws a video of three minutes and prints the table for both providers.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ethobench import Recording
from ethobench.formats.text import format_clock
from ethobench.mllm.annotate import AnnotationOutcome, build_requests, create_provider, read_replies
from ethobench.mllm.cache import ReplyCache
from ethobench.mllm.prompts import annotation_segments
from ethobench.mllm.providers import Access
from ethobench.mllm.request import RequestSettings
from ethobench.mllm.retry import RetryPolicy
from ethobench.mllm.runner import RequestRunner
from ethobench.mllm.task import load_task
from tests.mllm.drawing import draw_video, social_recordings
from tests.mllm.stubs import Act, Block, BreakOff, Fail, GeminiStub, HalfJson, Hang, OpenAIStub, Say

STUBS = {"gemini": GeminiStub, "openai": OpenAIStub}
MODELS = {"gemini": "gemini-2.5-flash", "openai": "gpt-4o"}
TIMEOUT = 1.0


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    case: str
    outcome: AnnotationOutcome
    sent: int
    sent_again: int


def true_segments(recording: Recording) -> list[dict[str, object]]:
    """Return the reference annotation as segments of a correct answer, in whole seconds."""
    rows, at = [], 0
    for _, stop, name in annotation_segments(recording.annotation(), recording.annotation().ethogram):
        end = int(stop + 0.5)
        if end > at:
            rows.append({"segment_number": len(rows) + 1, "start_time": format_clock(at), "end_time": format_clock(end), "behavior": name})
            at = end
    return rows


def cases(segments: list[dict[str, object]]) -> dict[str, list[Act]]:
    """Return the acts of the server by case; after them it replies well."""
    text = json.dumps({"segments": segments})
    first, second, *rest = segments

    def changed(**fields: object) -> str:
        return json.dumps({"segments": [first, {**second, **fields}, *rest]})

    without = {key: value for key, value in second.items() if key != "end_time"}
    return {
        "well-formed": [Say(text)],
        "bare list": [Say(json.dumps(segments))],
        "fence": [Say(f"```json\n{text}\n```")],
        "prose around JSON": [Say(f"Here is the annotation. {text} I hope this helps!")],
        "stops in a segment": [Say(text[: int(len(text) * 0.6)], cut=True)],
        "wrong key": [Say(text.replace("end_time", "end_long_time"))],
        "wrong case": [Say(text.replace('"other"', '"Other"'))],
        "near-miss label": [Say(text.replace('"other"', '"othr"'))],
        "unknown label": [Say(changed(behavior="sleeping"))],
        "missing field": [Say(json.dumps({"segments": [first, without, *rest]}))],
        "past the end": [Say(json.dumps({"segments": [*segments[:-1], {**segments[-1], "end_time": "09:00"}]}))],
        "overlapping": [Say(changed(start_time="00:00"))],
        "unordered": [Say(json.dumps({"segments": [*rest, first, second]}))],
        "zero-length": [Say(changed(end_time=second["start_time"]))],
        "ends before it begins": [Say(changed(end_time="00:00"))],
        "numbers as text": [Say(re.sub(r'"(\d\d):(\d\d)"', lambda m: f'"{60 * int(m[1]) + int(m[2])}"', text))],
        "single quotes": [Say(str({"segments": segments}))],
        "empty answer": [Say("")],
        "refusal": [Say("I'm sorry, I can't help with videos of animals.")],
        "HTML": [Say("<html><body>502 Bad Gateway</body></html>")],
        "429, then an answer": [Fail(429, {"retry-after": "0.2"}), Say(text)],
        "500, 503, then an answer": [Fail(500), Fail(503), Say(text)],
        "hangs, then an answer": [Hang(3 * TIMEOUT), Say(text)],
        "hangs always": [Hang(3 * TIMEOUT)] * 9,
        "body breaks off, then an answer": [BreakOff(), Say(text)],
        "half a JSON body, then an answer": [HalfJson(), Say(text)],
        "answer withheld": [Block()],
        "question blocked": [Block(prompt=True)],
        "wrong key for the API": [Fail(401, message="API key not valid")],
    }


def run_case(
    provider_name: str, recording: Recording, acts: list[Act], folder: Path, settings: RequestSettings
) -> tuple[AnnotationOutcome, int, int, object]:
    """Send the requests twice. Return the first outcome, the number of requests each time, and the annotation."""
    with STUBS[provider_name](*acts) as stub:
        provider = create_provider(provider_name, MODELS[provider_name], Access(base_url=stub.url, timeout=TIMEOUT, poll=0.02))
        requests = build_requests(recording, load_task("calms21"), provider, settings)
        sent, outcomes, annotation = [], [], None
        for _ in range(2):
            runner = RequestRunner(provider, ReplyCache(folder), retry_policy=RetryPolicy(attempts=3, initial_delay=0.05))
            before = len(stub.questions)
            annotation, outcome = read_replies(requests, list(runner.send_all(requests.requests)))
            sent.append(len(stub.questions) - before)
            outcomes.append(outcome)
        return outcomes[0], sent[0], sent[1], annotation


def table(provider_name: str, recording: Recording, folder: Path, settings: RequestSettings, only: tuple[str, ...] = ()) -> list[Row]:
    """Run all cases."""
    rows = []
    for number, (case, acts) in enumerate(cases(true_segments(recording)).items()):
        if not only or case in only:
            outcome, sent, resent, _ = run_case(provider_name, recording, acts, folder / f"{provider_name}{number}", settings)
            rows.append(Row(case, outcome, sent, resent))
    return rows


def markdown(provider_name: str, rows: list[Row]) -> str:
    lines = [
        "| provider | reply of the server | outcome | repairs | reason | requests | repeated |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        repairs = ", ".join(f"{kind} {count}" for kind, count in row.outcome.repairs.items())
        reason = "; ".join(row.outcome.reasons)[:90]
        lines.append(f"| {provider_name} | {row.case} | {row.outcome.state} | {repairs} | {reason} | {row.sent} | {row.sent_again} |")
    return "\n".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.update(ETHOBENCH_CACHE=str(folder / "cache"), GEMINI_API_KEY="not-a-real-key", OPENAI_API_KEY="not-a-real-key")
        recording = social_recordings()[0]
        recording = recording.copy(id="mice", video=draw_video(recording, folder / "mice.mp4"))
        for provider_name in STUBS:
            sys.stdout.write(markdown(provider_name, table(provider_name, recording, folder, RequestSettings())) + "\n\n")


if __name__ == "__main__":
    main()
