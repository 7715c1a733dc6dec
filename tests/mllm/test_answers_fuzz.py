"""The parser of answers with arbitrary text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Ethogram
from ethobench.mllm import parse_answer
from tests.mllm.fuzz import ETHOGRAM, PIECES, SEEDS, check, mutated

NAMES = ETHOGRAM.names
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8) | st.sampled_from(["attack", "00:10", "mount"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["segments", "start_time", "end_time", "behavior", "end", "x", "attack"]), inner, max_size=4)
    ),
    max_leaves=30,
)


@given(st.text(max_size=200) | st.lists(st.sampled_from([*PIECES, *SEEDS]), max_size=12).map("".join))
def test_any_text(text):
    check(text)


@given(JSON)
def test_any_json(value):
    check(json.dumps(value))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.data())
def test_well_formed_answers_are_parsed_exactly_in_every_time_format(lengths, data):
    times = [0]
    for length in lengths:
        times.append(times[-1] + length)
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=len(lengths), max_size=len(lengths)))
    style = data.draw(st.sampled_from([float, lambda s: f"{s // 60:02d}:{s % 60:02d}", lambda s: f"00:{s // 60:02d}:{s % 60:02d}"]))
    rows = [{"start_time": style(a), "end_time": style(b), "behavior": n} for a, b, n in zip(times, times[1:], names, strict=False)]
    answer = parse_answer(json.dumps({"segments": rows}), ETHOGRAM, float(times[-1]), 1.0)
    assert (answer.failed, dict(answer.repairs)) == (False, {})
    assert answer.annotation.start.tolist() == times[:-1]
    assert answer.annotation.stop.tolist() == times[1:]
    assert [NAMES[code] for code in answer.annotation.behavior] == names
    cut = data.draw(st.integers(1, len(json.dumps(rows)) - 1))
    truncated = parse_answer(json.dumps(rows)[:cut], ETHOGRAM, float(times[-1]), 1.0)
    assert truncated.failed == (len(truncated.annotation) == 0)
    count = len(truncated.annotation)
    assert truncated.annotation.stop.tolist() == times[1 : count + 1]  # no segment is invented, no complete one lost
    assert count == json.dumps(rows)[:cut].count("}")


@given(st.lists(st.tuples(st.integers(-5, 65), st.integers(-5, 65), st.sampled_from(NAMES)), max_size=12))
def test_the_segment_listed_first_keeps_the_time(segments):
    """Compared second by second, as in the published evaluation."""
    rows = [{"start_time": a, "end_time": b, "behavior": name} for a, b, name in segments]
    answer = parse_answer(json.dumps(rows), ETHOGRAM, 60.0, 1.0)
    codes = answer.annotation.to_frames()
    for second in range(60):
        first = next((name for a, b, name in segments if a <= second < b), None)
        labels = [NAMES[k] for k in codes[second].nonzero()[0]]
        if answer.failed:
            assert first is None
        else:
            assert labels == [first if first is not None else "other"]


@pytest.mark.slow
def test_many_mutations():
    for number in range(10_000):
        check(mutated(number))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000_000,
        '{"a":' * 2_000_000,
        "{" * 10_000_000,
        '"' * 10_000_000,
        "```" * 3_000_000,
        "{'a\\" * 2_500_000,
        "[{]" * 3_000_000,
        "[[],[]," * 1_500_000,
        '{"x": [' + "{}," * 3_000_000,
        '{"behavior": "' + "a" * 10_000_000,
        json.dumps([{"start_time": "9" * 1000, "end_time": 10**400, "behavior": "x" * 10**5}] * 50),
        "<p>" * 3_000_000,
    ],
    ids=lambda text: f"{text[:8]}...{len(text)}",
)
def test_ten_megabytes_without_an_answer_are_refused(text):
    assert check(text).failed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["steps", "nested", "labels", "repeats"])
def test_a_hundred_thousand_segments(kind):
    n = 100_000
    segments = {
        "steps": [(k / 100, (k + 1) / 100, "attack" if k % 2 else "mount") for k in range(n)],
        "nested": [(k / 1000, 1000 - k / 1000, "attack" if k % 2 else "mount") for k in range(n)],
        "labels": [(k / 100, (k + 1) / 100, f"behavior {k}") for k in range(n)],
        "repeats": [(1, 2, "attack")] * n,
    }[kind]
    text = json.dumps({"segments": [{"start_time": a, "end_time": b, "behavior": name} for a, b, name in segments]})
    answer = parse_answer(text, Ethogram(["attack", "mount"]), duration=1000, rate=100)
    assert len(answer.annotation) == {"steps": n, "nested": 1, "labels": 0, "repeats": 1}[kind]
    assert answer.failed == (kind == "labels")
