"""Seeded mutations of answers: for any text, the parser returns a valid annotation or a reason.

Run for any number of inputs: ``python -m tests.mllm.fuzz 100000``.
"""

from __future__ import annotations

import json
import random
import sys
import time

from ethobench import Ethogram
from ethobench.mllm import Answer, parse_answer
from ethobench.mllm.repair_log import REPAIR_KINDS

ETHOGRAM = Ethogram(["attack", "mount", "not attack", "other"], background="other")
SEEDS = [
    '{"segments": [{"segment_number": 1, "start_time": "00:00", "end_time": "00:07", "behavior": "attack"}, '
    '{"segment_number": 2, "start_time": "00:07", "end_time": "01:00", "behavior": "other"}]}',
    '[{"start_time": 0.5, "end_time": 13.25, "behavior": "mount"}, {"start_time": 13.25, "end_time": 59, "behavior": "not attack"}]',
    'Sure!\n```json\n[{"start": "1s", "end_long_time": "00:00:09", "label": "Atack"}]\n```\nAnything else?',
    '{"attack": [["00:01", "00:05"]], "mount": [[7, 9]]}',
    '{"start_time": [0, 5], "end_time": [5, 9], "behavior": ["attack", "mount"]}',
    "[{'start_time': '00:01', 'end_time': '00:02', 'behavior': 'attack'},]",
    '"{\\"segments\\": []}"',
    "I cannot annotate this video.",
]
PIECES = ["{", "}", "[", "]", '"', "'", ":", ",", "\\", "\n", "```", "null", "NaN", "-Infinity", "1e999", "9" * 40, "00:99", "-", "\x00"]
PIECES += [
    "\u202e",
    "\ud800",
    "\ufeff",
    "“",
    "&quot;",
    '"start_time"',
    '"end_time": ',
    '"behavior": "attack"',
    "true",
    "[[[[[[",
    "}}}}",
    "😀",
    "",
]


def mutated(number: int) -> str:
    """Return a mutated text; the same number gives the same text."""
    generator = random.Random(number)  # noqa: S311
    text = generator.choice(SEEDS)
    for _ in range(generator.randint(0, 6)):
        start = generator.randint(0, len(text))
        stop = min(len(text), start + generator.choice([0, 0, 1, 3, 20, 200]))
        kind = generator.random()
        if kind < 0.5:
            text = text[:start] + generator.choice(PIECES) * generator.choice([1, 1, 1, 2, 30]) + text[stop:]
        elif kind < 0.7:
            text = text[:start]
        elif kind < 0.85:
            text = text[:stop] + text[start:]
        else:
            text = text[:start] + generator.choice(SEEDS) + text[stop:]
    return text


def check(text: str, duration: float = 60.0, rate: float = 10.0) -> Answer:
    """Parse a text and check that the result is valid."""
    answer = parse_answer(text, ETHOGRAM, duration, rate)
    a = answer.annotation
    assert a.n_frames == round(duration * rate)
    assert a.ethogram == ETHOGRAM
    assert a.is_exclusive
    assert ((a.start >= 0) & (a.start < a.stop) & (a.stop <= a.n_frames)).all()
    assert {*answer.repairs} <= {*REPAIR_KINDS}
    assert all(count > 0 for count in answer.repairs.values())
    assert answer.failed == bool(answer.reason)
    assert not (answer.failed and len(a))
    assert answer.failed == (len(a.observed.of_any().start) == 0)
    json.dumps(dict(answer.repairs))
    assert all(str(note).isprintable() for note in answer.notes)
    return answer


def main(count: int) -> None:
    start = time.process_time()
    failed = repaired = longest = 0
    for number in range(count):
        before = time.process_time()
        answer = check(mutated(number))
        longest = max(longest, time.process_time() - before)
        failed += answer.failed
        repaired += bool(answer.repairs) and not answer.failed
    seconds = time.process_time() - start
    counts = f"{failed} refused with a reason, {repaired} repaired, {count - failed - repaired} well-formed"
    sys.stdout.write(f"{count} inputs in {seconds:.1f} s of CPU (longest {1000 * longest:.1f} ms): {counts}; no crash\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
