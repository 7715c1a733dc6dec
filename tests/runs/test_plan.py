"""Jobs and settings: text for display, fields for tables, and a key of everything that changes the result."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ethobench.runs import Job, Result, Setting
from ethobench.runs.plan import plan_at_once

TEXTS = {
    "full": Setting(),
    "full, no gyroscope": Setting(gyroscope=False),
    "split by recording": Setting("split by recording"),
    "12.5% of the training data": Setting("", train_share=0.125),
    "baseline, 80% of the training data": Setting("baseline", train_share=0.8),
    "annotator-id_1, zero-shot": Setting("", annotator="annotator-id_1", transfer="zero-shot"),
    "groom, fine-tuned, undecoded": Setting("", behavior="groom", transfer="fine-tuned", undecoded=True),
    "groom, 4 recordings, from scratch": Setting("", behavior="groom", n_recordings=4, transfer="from scratch"),
    "short, gemini, 3 shots, published reading": Setting("short", system="gemini", shots=3, reading="published reading"),
    "full, kind majority, seed 7": Setting(variation=(("kind", "majority"), ("seed", "7"))),
}


def make_job(**fields) -> Job:
    return Job("b", "d", "1", ("a",), ("z",), "rf", **fields)


@pytest.mark.parametrize(("text", "setting"), TEXTS.items())
def test_settings_are_rendered_for_display_and_kept_as_fields(text, setting):
    assert str(setting) == text
    values = json.loads(json.dumps(setting.to_dict()))
    assert Setting.from_dict(values) == setting
    job = make_job(setting=setting)
    assert json.loads(json.dumps(job.to_dict()))["setting"] == values
    assert Job.from_dict(job.to_dict()) == job


def test_unknown_fields_are_refused():
    with pytest.raises(TypeError, match="colour"):
        Job.from_dict({**make_job().to_dict(), "colour": "red"})
    with pytest.raises(TypeError, match="colour"):
        Setting.from_dict({"name": "full", "colour": "red"})


def test_settings_are_part_of_the_key_and_the_source_is_not():
    job = make_job()
    assert replace(job, setting=Setting("reduced")).key != job.key
    assert replace(job, source="/elsewhere").key == job.key
    assert len(job.key) == 24


def test_a_plan_in_one_stage():
    plan = plan_at_once([make_job()])
    assert next(plan) == [make_job()]
    with pytest.raises(StopIteration):
        plan.send([Result(make_job())])


def test_values_of_failed_jobs_are_undefined():
    result = Result(make_job(), {"ethobench": {"f1": 0.5}})
    assert (result.value("ethobench", "f1"), result.value("banos", "f1"), result.headline) == (0.5, None, 0.5)
    assert Result(make_job(), error="failed").headline is None
