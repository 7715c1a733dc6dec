"""Answers of many kinds, compared with annotations written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ethobench import Annotation, Behavior, Ethogram
from ethobench.core.errors import EthobenchError
from ethobench.mllm import parse_answer
from ethobench.mllm.answers import parse_answer_as_published
from ethobench.mllm.repair_log import REPAIR_KINDS

ETHOGRAM = Ethogram(["attack", "mount", "other"], background="other")
DURATION, RATE = 60.0, 10.0


def row(start, stop, behavior, **more) -> dict:
    return {"start_time": start, "end_time": stop, "behavior": behavior, **more}


def bouts(annotation: Annotation) -> list[tuple[float, float, str]]:
    columns = zip(annotation.start, annotation.stop, annotation.behavior, strict=True)
    return [(a / annotation.rate, b / annotation.rate, annotation.ethogram[int(code)].name) for a, b, code in columns]


def read(text, **options):
    text = text if isinstance(text, str) else json.dumps(text)
    return parse_answer(text, options.pop("ethogram", ETHOGRAM), options.pop("duration", DURATION), options.pop("rate", RATE), **options)


GOOD = {"segments": [row("00:00", "00:10", "attack", segment_number=1), row("00:10", "01:00", "other", segment_number=2)]}
EXPECTED = [(0.0, 10.0, "attack"), (10.0, 60.0, "other")]
TEXT = json.dumps(GOOD)

CASES = {
    "expected form": (TEXT, {}, EXPECTED),
    "bare list": (json.dumps(GOOD["segments"]), {}, EXPECTED),
    "seconds": ([row(0, 10, "attack"), row(10.0, 60, "other")], {}, EXPECTED),
    "hours": ([row("00:00:00", "00:00:10", "attack"), row("00:00:10", "00:01:00", "other")], {}, EXPECTED),
    "fence": (f"```json\n{TEXT}\n```", {"fence": 1}, EXPECTED),
    "open fence": (f"```\n{TEXT}", {"fence": 1}, EXPECTED),
    "fence and prose": (f"Here it is:\n```json\n{TEXT}\n```\nI hope it helps.", {"fence": 1, "prose": 1}, EXPECTED),
    "prose": (f"The video [1] shows {{two}} mice. {TEXT} That is all.", {"prose": 1}, EXPECTED),
    "cut in a segment": (TEXT[:-12], {"truncated": 1}, EXPECTED[:1]),
    "cut in a number": ('[{"start_time": 0, "end_time": 10, "behavior": "attack"}, {"start_time": 13.2', {"truncated": 1}, EXPECTED[:1]),
    "cut after a segment": (TEXT[: TEXT.index("}") + 2], {"truncated": 1}, EXPECTED[:1]),
    "cut in a fence": (f"```json\n{TEXT[:-12]}", {"fence": 1, "truncated": 1}, EXPECTED[:1]),
    "single quotes": (str(GOOD), {"syntax": 1}, EXPECTED),
    "trailing comma": (TEXT.replace("}]", "},]"), {"syntax": 1}, EXPECTED),
    "no comma": (TEXT.replace("}, {", "} {"), {"syntax": 1}, EXPECTED),
    "comment": (TEXT.replace("}, {", "}, // next\n{"), {"syntax": 1}, EXPECTED),
    "curly quotes": (TEXT.replace('"attack"', "“attack”"), {"syntax": 1}, EXPECTED),
    "unquoted": ("[{start_time: 00:00, end_time: 00:10, behavior: attack}]", {"syntax": 1}, EXPECTED[:1]),
    "lines of objects": ("\n".join(json.dumps(s) for s in GOOD["segments"]), {"shape": 1}, EXPECTED),
    "one object": (GOOD["segments"][0], {"shape": 1}, EXPECTED[:1]),
    "other list name": ({"annotations": GOOD["segments"]}, {"shape": 1}, EXPECTED),
    "nested": ({"video": {"result": {"segments": GOOD["segments"]}}}, {"shape": 1}, EXPECTED),
    "numbered": ({"segments": {"1": GOOD["segments"][0], "2": GOOD["segments"][1]}}, {"shape": 1}, EXPECTED),
    "triples": ([["00:00", "00:10", "attack"], [10, 60, "other"]], {"shape": 1}, EXPECTED),
    "columns": ({"start_time": [0, 10], "end_time": [10, 60], "behavior": ["attack", "other"]}, {"shape": 1}, EXPECTED),
    "by behavior": ({"attack": [["00:00", "00:10"]], "other": [{"start": 10, "end": 60}]}, {"shape": 1, "key": 2}, EXPECTED),
    "JSON in a string": (json.dumps(TEXT), {"shape": 1}, EXPECTED),
    "draft and answer": (f"Draft: {json.dumps(GOOD['segments'][:1])} Final: {TEXT}", {"prose": 1, "several": 1}, EXPECTED),
    "a word among segments": ([*GOOD["segments"], "and so on"], {"shape": 1}, EXPECTED),
    "end_long_time": (TEXT.replace("end_time", "end_long_time"), {"key": 2}, EXPECTED),
    "other keys": ([{"start": 0, "stop": 10, "label": "attack"}, {"from": 10, "to": 60, "behaviour": "other"}], {"key": 6}, EXPECTED),
    "duration": ([{"start_time": 0, "duration": 10, "behavior": "attack"}, row(10, 60, "other")], {"key": 1}, EXPECTED),
    "duplicate keys": ('[{"start_time": 5, "start_time": 0, "end_time": 10, "behavior": "attack"}]', {"duplicate_key": 1}, EXPECTED[:1]),
    "no end": ([{"start_time": 0, "behavior": "attack"}, row(10, 60, "other")], {"missing": 1}, EXPECTED),
    "no start": ([row(0, 10, "attack"), {"end_time": 60, "behavior": "other"}], {"missing": 1}, EXPECTED),
    "no behavior": ([row(0, 10, "attack"), {"start_time": 10, "end_time": 60}], {"incomplete": 1}, EXPECTED[:1]),
    "no times": ([row(0, 10, "attack"), {"behavior": "other", "start_time": None}], {"incomplete": 1}, EXPECTED[:1]),
    "numbers as text": ([row("0", "10.0", "attack")], {"number": 2}, EXPECTED[:1]),
    "spoken times": ([row("0s", "10 sec", "attack"), row("10 seconds", "1 min", "other")], {"time": 4}, EXPECTED),
    "sixty seconds": ([row("00:00", "00:10", "attack"), row("00:10", "00:60", "other")], {"time": 1}, EXPECTED),
    "frames behind": ([row("00:00:00:00", "00:00:10:12", "attack")], {"time": 2}, EXPECTED[:1]),
    "fractions behind": ([row("00:00:00", "00:10:00", "attack"), row("00:10:00", "00:59:50", "other")], {"time": 1}, None),
    "wide digits": ([row("００：００", "００：１０", "attack")], {}, EXPECTED[:1]),
    "no time at all": ([row(0, 10, "attack"), row("soon", "later", "other")], {"unreadable": 1}, EXPECTED[:1]),
    "not a number": ('[{"start_time": NaN, "end_time": Infinity, "behavior": "mount"}, ' + TEXT[14:-1], {"unreadable": 1}, EXPECTED),
    "case": (TEXT.replace("attack", " ATTACK"), {"label": 1}, EXPECTED),
    "near miss": (TEXT.replace("attack", "atack"), {"label": 1}, EXPECTED),
    "longer word": (TEXT.replace("attack", "attacking"), {"label": 1}, EXPECTED),
    "invisible characters": (TEXT.replace("attack", "at\u200btack\u00ad"), {"label": 1}, EXPECTED),
    "wide letters": (TEXT.replace("attack", "ａttack"), {"label": 1}, EXPECTED),
    "letters of another script": (TEXT.replace("attack", "аttack"), {"label": 1}, EXPECTED),
    "label in a list": ([row(0, 10, ["attack"])], {"label": 1}, EXPECTED[:1]),
    "unknown label": ([row(0, 10, "attack"), row(10, 60, "sleeping")], {"unknown_label": 1}, EXPECTED[:1]),
    "before the start": ([row(-5, 10, "attack"), row(10, 60, "other")], {"negative": 1}, EXPECTED),
    "past the end": ([row(0, 10, "attack"), row(10, 500, "other")], {"beyond": 1}, EXPECTED),
    "a second past the end": ([row(0, 10, "attack"), row(10, 61, "other")], {}, EXPECTED),
    "after the end": ([row(0, 10, "attack"), row(10, 60, "other"), row(60, 90, "mount")], {"beyond": 1}, EXPECTED),
    "backwards": ([row(0, 10, "attack"), row(30, 20, "mount")], {"reversed": 1}, EXPECTED[:1]),
    "no length": ([row(0, 10, "attack"), row(20, 20, "mount")], {"empty": 1}, EXPECTED[:1]),
    "twice": ([*GOOD["segments"], GOOD["segments"][0]], {"duplicate": 1}, EXPECTED),
    "unordered": ([row(10, 60, "other"), row(0, 10, "attack")], {"unordered": 1}, EXPECTED),
    "overlap": ([row(0, 10, "attack"), row(5, 60, "other")], {"overlap": 1}, EXPECTED),
    "inside": ([row(20, 30, "mount"), row(0, 60, "other")], {"overlap": 1, "unordered": 1}, None),
    "nothing happens": ('{"segments": []}', {}, []),
    "an empty list": ("[]", {}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_answers_are_parsed_and_repairs_counted(name):
    text, repairs, expected = CASES[name]
    answer = read(text)
    assert not answer.failed, answer.reason
    assert dict(answer.repairs) == repairs
    assert {note.code for note in answer.notes} == {*repairs} <= {*REPAIR_KINDS}
    if expected is not None:
        assert bouts(answer.annotation) == expected
    if "truncated" in repairs:
        assert answer.annotation.observed.of_any().stop.tolist() == [100]
    else:
        assert answer.annotation.observed.is_complete(600)


def test_the_segment_listed_first_is_cut_out_of_the_others():
    answer = read([row(20, 30, "mount"), row(0, 60, "other"), row(50, 70, "attack")])
    assert bouts(answer.annotation) == [(0.0, 20.0, "other"), (20.0, 30.0, "mount"), (30.0, 60.0, "other")]
    assert answer.repairs == {"beyond": 1, "overlap": 2, "unordered": 1}
    overlapping = read([row(20, 30, "mount"), row(0, 60, "other")], exclusive=False)
    assert bouts(overlapping.annotation) == [(0.0, 60.0, "other"), (20.0, 30.0, "mount")]
    assert overlapping.annotation.order.tolist() == [1, 0]


def test_three_numbers_are_hours_unless_only_fractions_fit():
    fractions = read([row("00:12:00", "00:30:50", "attack")])
    assert bouts(fractions.annotation) == [(12.0, 30.5, "attack")]
    hours = read([row("00:00:12", "00:00:30", "attack")])
    assert bouts(hours.annotation) == [(12.0, 30.0, "attack")]


FAILURES = {
    "empty": ("", "empty"),
    "blank": (" \n\t ", "empty"),
    "refusal": ("I'm sorry, but I can't help with that.", "no JSON"),
    "HTML": ("<html><body><script>alert(1)</script></body></html>", "no JSON"),
    "null": ("null", "no segments"),
    "a number": ("42", "no segments"),
    "another object": ('{"answer": "yes", "reason": {"why": []}}', "no segments"),
    "no label fits": ([row(0, 10, "flying"), row(10, 20, "singing")], "none of the 2 segments"),
    "cut at once": ('{"segments": [{"start_time": "00:0', "before its first complete"),
    "too long": ("x" * 12_000_001, "12,000,001 characters"),
    "nested": ("[" * 100_000 + "]" * 100_000, "no JSON"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_unreadable_answers_fail_with_a_reason(name):
    text, reason = FAILURES[name]
    answer = read(text)
    assert answer.failed
    assert reason in answer.reason
    assert len(answer.annotation) == 0
    assert len(answer.annotation.observed.of_any().start) == 0
    assert answer.annotation.n_frames == 600


def test_the_time_after_a_reported_cut_is_unobserved():
    answer = read(TEXT.replace("01:00", "00:40"), truncated=True)
    assert answer.repairs == {"truncated": 1}
    assert answer.annotation.observed.of_any().stop.tolist() == [400]


def test_negated_labels_are_never_confused():
    ethogram = Ethogram(["scratching", "not scratching"], "not scratching")
    answer = read(
        [row(0, 5, "Not_scratching"), row(5, 6, "no scratching"), row(6, 9, "scratch"), row(9, 12, "nor scratching")], ethogram=ethogram
    )
    assert [name for *_, name in bouts(answer.annotation)][:3] == ["not scratching", "not scratching", "scratching"]


def test_background_words_and_aliases():
    answer = read([row(0, 5, "none"), row(5, 9, "fight")], aliases={"fight": "attack"})
    assert bouts(answer.annotation) == [(0.0, 5.0, "other"), (5.0, 9.0, "attack")]
    without_background = read([row(0, 5, "none"), row(5, 9, "run")], ethogram=Ethogram(["run"]))
    assert bouts(without_background.annotation) == [(5.0, 9.0, "run")]
    assert without_background.repairs == {}


def test_point_events_have_no_duration():
    answer = read([row(5, 5, "bite"), row(9, 12, "bite")], ethogram=Ethogram([Behavior("bite", point=True), Behavior("run")]))
    assert bouts(answer.annotation) == [(5.0, 5.0, "bite"), (9.0, 9.0, "bite")]


def test_invalid_parameters():
    with pytest.raises(EthobenchError, match="`text` must be a string"):
        parse_answer(b"[]", ETHOGRAM)  # type: ignore[arg-type]
    with pytest.raises(EthobenchError, match="`duration` must be > 0"):
        parse_answer("[]", ETHOGRAM, duration=0)


def test_hostile_text_is_only_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile = ["../../etc/passwd", "__import__('os').system('touch hacked')", "{{7*7}}", "<img src=x onerror=alert(1)>", "\ud800", "a\x00b"]
    answer = read([row(0, 10, "attack"), *(row(10 + i, 11 + i, text) for i, text in enumerate(hostile))])
    assert answer.repairs == {"unknown_label": len(hostile)}
    assert bouts(answer.annotation) == EXPECTED[:1]
    assert not list(tmp_path.iterdir())
    assert all(str(note).isprintable() for note in answer.notes)


def test_every_repair_kind_is_tested_and_documented():
    tested = {kind for _, repairs, _ in CASES.values() for kind in repairs}
    assert tested == {*REPAIR_KINDS}
    guide = (Path(__file__).parents[2] / "docs" / "mllm.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in guide for kind in REPAIR_KINDS)


def test_the_published_rule():
    def published(value):
        return parse_answer_as_published(value if isinstance(value, str) else json.dumps(value), ETHOGRAM, DURATION, RATE)

    assert bouts(published(f"```json\n{TEXT}\n```").annotation) == EXPECTED
    assert bouts(published([row("1:02:03", "70:00", "Sleep")]).annotation) == [(62.0, 4200.0, "Sleep")]
    assert bouts(published([{"end_time": 7, "behavior": "attack"}]).annotation) == [(0.0, 7.0, "attack")]
    overlapping = published([row(0, 60, "other"), row(5, 9, "attack")]).annotation
    assert bouts(overlapping) == [(0.0, 60.0, "other"), (5.0, 9.0, "attack")]
    for broken in (f"Here: {TEXT}", TEXT[:-5], "", '{"answer": 1}', [1, 2], [row("a:b", 1, "x")], [row(0, 1e9, "x")], "[" * 10_000):
        answer = published(broken)
        assert answer.failed
        assert answer.reason.startswith("excluded by the published rule")
