"""Tasks, answer schemas and prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from ethobench import Annotation, Behavior, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.datasets.rodentbench import SETS, SHORT_SECONDS
from ethobench.mllm.prompts import Example, build_prompt
from ethobench.mllm.request import Clip
from ethobench.mllm.task import TIME_FORMATS, answer_model, answer_schema, format_time, load_task, task_from_ethogram, task_names

jsonschema = pytest.importorskip("jsonschema")
CLIP = Clip(Path("videos/cage1.mp4"), "digest", 0.0, 125.0)


@pytest.mark.parametrize("name", task_names())
def test_tasks_match_the_datasets(name):
    task, source = load_task(name), SETS[name]
    assert task.ethogram.names == source.labels
    assert task.ethogram.background_name == source.background
    assert task.rate == source.rate
    assert task.short_seconds == SHORT_SECONDS
    assert all(len(behavior.definition) > 30 for behavior in task.ethogram)
    assert {*task.aliases.values()} <= {*task.ethogram.names}
    assert not {*task.aliases} & {*task.ethogram.names}
    assert {"videos", "long_minutes", "short_minutes"} == {*task.published}


def test_every_dataset_has_a_task():
    assert task_names() == sorted(SETS)


def test_a_task_from_a_file_or_an_ethogram(tmp_path):
    path = tmp_path / "rats.toml"
    path.write_text('animals = "a rat"\nexclusive = false\n[[behavior]]\nname = "rear"\ndefinition = "stands up"\n', encoding="utf-8")
    task = load_task(path)
    assert (task.name, task.animals, task.exclusive, task.ethogram["rear"].definition) == ("rats", "a rat", False, "stands up")
    from_ethogram = task_from_ethogram(Ethogram([Behavior("rear", "stands up")]), animals="a rat", exclusive=False)
    assert build_prompt(from_ethogram, CLIP) == build_prompt(task, CLIP)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "not valid TOML"),
        ("title = 'x'", "behavior: field required"),
        ("behavior = []", "behavior"),
        ("[[behavior]]\nname = ''", "behavior.0.name"),
        ("colour = 1\n[[behavior]]\nname = 'a'", "colour: extra inputs"),
        ("background = 'b'\n[[behavior]]\nname = 'a'", "no behavior 'b'"),
        ("[[behavior]]\nname = 'a'\n[[behavior]]\nname = 'a'", "duplicate behaviors"),
    ],
)
def test_invalid_tasks_raise_one_line(tmp_path, text, message):
    path = tmp_path / "task.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message) as error:
        load_task(path)
    assert "\n" not in str(error.value)


def test_unknown_tasks_raise(tmp_path):
    with pytest.raises(NotFoundError, match="available: calms21, freezing"):
        load_task("nope")
    with pytest.raises(FormatError, match="no such file"):
        load_task(tmp_path / "nope.toml")
    with pytest.raises(EthobenchError, match="has no behaviors"):
        task_from_ethogram(Ethogram([]))


@pytest.mark.parametrize("time_format", TIME_FORMATS)
def test_schema_and_model_agree(time_format):
    task = load_task("calms21")
    good = {"segment_number": 1, "start_time": format_time(0, time_format), "end_time": format_time(125, time_format), "behavior": "attack"}
    schema, model = answer_schema(task, time_format), answer_model(task, time_format)
    assert "$ref" not in json.dumps(schema)
    wrong = [{**good, "behavior": "sleep"}, {**good, "start_time": "soon"}, {**good, "extra": 1}, {k: good[k] for k in list(good)[:3]}]
    jsonschema.validate({"segments": [good]}, schema)
    model.model_validate({"segments": [good]})
    for segment in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"segments": [segment]}, schema)
        with pytest.raises(ValidationError):
            model.model_validate({"segments": [segment]})


def test_time_formats():
    assert [format_time(3725.4, style) for style in TIME_FORMATS] == ["62:05", "01:02:05", 3725.4]
    with pytest.raises(EthobenchError, match="`time_format` must be one of"):
        answer_schema(load_task("grooming"), "frames")


def test_a_prompt_is_complete_and_deterministic():
    task = load_task("grooming")
    system, parts = build_prompt(task, CLIP)
    assert (system, parts) == build_prompt(load_task("grooming"), CLIP)
    text = "\n".join(block.describe() for block in parts)
    for phrase in (
        "one mouse in an open field, seen from above",
        "- grooming: ",
        "- other: ",
        "02:05",
        "without gaps",
        "JSON alone",
        "segment_number",
    ):
        assert phrase in text
    assert text.endswith("[video: 00:00 to 02:05 of cage1.mp4]")
    sample = text[text.index("{") : text.rindex("}") + 1]
    answer_model(task).model_validate_json(sample)


def test_prompts_describe_the_video_input():
    task = load_task("grooming")
    plain, marked, frames = (
        build_prompt(task, clip)[1][0].describe()
        for clip in (CLIP, Clip(CLIP.video, "d", 0, 9, timestamps=True), Clip(CLIP.video, "d", 0, 9, input_type="frames"))
    )
    assert "upper left corner" in marked
    assert "upper left corner" not in plain
    assert "single pictures" in frames
    overlapping = task_from_ethogram(task.ethogram, exclusive=False)
    assert "may overlap" in build_prompt(overlapping, CLIP)[1][0].describe()


def test_prompts_with_worked_examples_and_an_initial_annotation():
    task = load_task("grooming")
    example = Example(((0.0, 4.0, "grooming"), (4.0, 9.0, "other")), 9.0, Clip(Path("e.mp4"), "e", 10.0, 19.0))
    alone = Example(((0.0, 3.0, "grooming"),), 3.0, behavior="grooming")
    initial = Annotation.from_bouts([0], [50], ["grooming"], task.ethogram, 10, 1250, observed=[True] * 80 + [False] * 1170)
    _, parts = build_prompt(task, CLIP, examples=[example, alone], initial=initial)
    texts = [block.describe() for block in parts]
    assert texts[1] == "Example 1 of 2. The video that follows is annotated in full, until 00:09."
    assert texts[2] == "[video: 00:10 to 00:19 of e.mp4]"
    assert json.loads(texts[3].partition("\n")[2])["segments"][1] == {
        "segment_number": 2,
        "start_time": "00:04",
        "end_time": "00:09",
        "behavior": "other",
    }
    assert texts[4] == "Example 2 of 2. Another video shows grooming."
    assert "until 00:08" in texts[6]
    assert '"end_time": "00:08", "behavior": "other"' in texts[6]
    assert "Annotate only this one" in texts[-2]
