"""A language model as a `Model`: `fit` keeps examples, `predict` asks, runs need no special case."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ethobench import Annotation, Dataset, Ethogram, Recording, load_dataset, load_model
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.mllm.annotate import AnswerWarning, build_requests, create_provider, outcomes_from_fit_report, read_replies
from ethobench.mllm.model import Mllm, annotation_to_prediction
from ethobench.mllm.prompts import annotation_segments, select_examples
from ethobench.mllm.providers import Access, ProviderError
from ethobench.mllm.request import RequestSettings
from ethobench.mllm.runner import RequestRunner
from ethobench.mllm.task import load_task
from ethobench.models import models
from tests.mllm.drawing import draw_video, social_recordings
from tests.mllm.stubs import Block, Fail, GeminiStub, Say

pytestmark = pytest.mark.slow

OTHER = '{"segments": [{"start_time": "00:00", "end_time": "00:20", "behavior": "other"}]}'


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Dataset:
    """Three short recordings with videos and truth."""
    folder = tmp_path_factory.mktemp("pairs")
    made = [r.copy(video=draw_video(r, folder / f"{r.id}.mp4")) for r in social_recordings(3, seconds=20)]
    return Dataset(tuple(made), made[0].annotation().ethogram, name="mine")


def asking(stub, **params) -> Mllm:
    return Mllm(**{"provider": "gemini", "model": "gemini-2.5-flash", "base_url": stub.url, **params})


def test_it_is_a_model_like_any_other():
    assert models["mllm"] is Mllm
    data = load_dataset("synthetic/pose", individuals=3, seconds=30)
    model = Mllm(seed=3).fit(data)
    prediction = model.predict(data.recordings[0])
    assert prediction.ethogram == data.ethogram
    assert prediction.n_frames == data.recordings[0].n_frames
    assert prediction.probabilities.sum(axis=1) == pytest.approx(np.ones(prediction.n_frames))
    assert Mllm(seed=3).fit(data).predict(data.recordings[0]).annotation == prediction.annotation
    assert Mllm(seed=4).fit(data).predict(data.recordings[0]).annotation != prediction.annotation


def test_it_comes_back_from_a_folder(tmp_path):
    data = load_dataset("synthetic/tag", individuals=2, seconds=30)
    model = Mllm(seed=1).fit(data)
    model.save(tmp_path / "saved")
    again = load_model(tmp_path / "saved")
    assert again.predict(data.recordings[0]).annotation == model.predict(data.recordings[0]).annotation
    assert sorted(p.name for p in (tmp_path / "saved").iterdir()) == ["CARD.md", "examples.json", "model.json", "training.json"]


def test_zero_shot_needs_no_recordings_and_chance_does(pairs):
    with GeminiStub(always=Say(OTHER)) as stub:
        model = asking(stub).fit(pairs.select(recordings=[]))
        prediction = model.predict(pairs.recordings[0])
    assert prediction.annotation.to_codes().tolist() == [3] * 200
    with pytest.raises(EthobenchError, match="no recordings"):
        Mllm().fit(pairs.select(recordings=[]))
    with pytest.raises(EthobenchError, match="no recordings"):
        asking(stub, shots=1).fit(pairs.select(recordings=[]))


@pytest.mark.parametrize(("kind", "clips", "texts"), [("excerpts", 2, 2), ("clips", 8, 8), ("text", 0, 2)])
def test_examples_are_shown(kind, clips, texts, pairs):
    with GeminiStub(always=Say(OTHER)) as stub:
        model = asking(stub, shots=2, examples=kind, example_seconds=5.0).fit(pairs.select(recordings=["animal01", "animal02"]))
        model.predict(pairs["animal03"])
    parts = stub.questions[0]["contents"][0]["parts"]
    shown = min(clips, len(model.worked_examples)) if kind == "clips" else clips
    assert sum("inlineData" in part for part in parts) == shown + 1
    assert sum(part.get("text", "").startswith("Example ") for part in parts) == len(model.worked_examples)
    assert len(model.worked_examples) <= texts
    for example in model.worked_examples:
        assert all(0 <= a < b <= example.duration + 1e-6 for a, b, _ in example.segments)


@pytest.mark.parametrize(
    ("shots", "kind", "seen"), [(0, "excerpts", []), (1, "excerpts", ["animal01"]), (2, "text", ["animal01", "animal02"])]
)
def test_only_recordings_shown_as_examples_count_as_training_recordings(shots, kind, seen, pairs, tmp_path):
    with GeminiStub(always=Say(OTHER)) as stub:
        asking(stub, shots=shots, examples=kind, example_seconds=5.0).fit(pairs).save(tmp_path / "m")
        model = load_model(tmp_path / "m", base_url=stub.url)
    assert [r.id for r in pairs if model.was_trained_on(r)] == seen


def test_examples_tell_the_truth(pairs):
    truths = {r.id: r.annotation() for r in pairs}
    (stretch,) = select_examples(pairs.recordings[:1], truths, lambda r, a, b: (r.id, a, b), kind="excerpts", shots=1, seconds=5)
    name, start, stop = stretch.clip
    part = truths[name].crop(round(start * 10), round(stop * 10))
    assert list(stretch.segments) == annotation_segments(part, part.ethogram)
    assert {*stretch.segments[0]} | {0.0} == {*stretch.segments[0]}
    with pytest.raises(EthobenchError, match="examples are"):
        select_examples(pairs.recordings, truths, lambda *_: None, kind="poems", shots=1, seconds=5)


def test_saved_examples_travel_with_the_model(pairs, tmp_path):
    with GeminiStub(always=Say(OTHER)) as stub:
        model = asking(stub, shots=1, example_seconds=4.0).fit(pairs.select(recordings=["animal01"]))
        model.save(tmp_path / "m")
        again = load_model(tmp_path / "m", allow_network=True, base_url=stub.url)
        assert again.predict(pairs["animal02"]).annotation == model.predict(pairs["animal02"]).annotation
    assert [e.segments for e in again.worked_examples] == [e.segments for e in model.worked_examples]
    assert again.worked_examples[0].clip.video == tmp_path / "m" / "example0.mp4"
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["CARD.md", "example0.mp4", "examples.json", "model.json", "training.json"]


def test_failures_are_predictions_of_nothing_and_are_told(pairs):
    with GeminiStub(Say("no idea"), Block(), Say(f"```json\n{OTHER}```"), Fail(401)) as stub:
        model = asking(stub).fit(pairs.select(recordings=[]))
        with pytest.warns(AnswerWarning) as told:
            predictions = [model.predict(recording) for recording in pairs]
        with pytest.raises(ProviderError, match="401"):
            asking(stub, temperature=1.0).fit(pairs.select(recordings=[])).predict(pairs.recordings[0])
    assert [len(p.annotation) for p in predictions] == [0, 0, 1]
    assert [len(p.annotation.observed.of_any().start) for p in predictions] == [0, 0, 1]
    assert np.isnan(predictions[0].probabilities).all()
    assert len(told) == 3
    found = outcomes_from_fit_report(json.loads(json.dumps(model.fit_report)))
    assert [outcome.state for outcome in found] == ["failed", "failed", "repaired"]
    assert found[2].repairs == {"fence": 1}
    assert list(model.outcomes.values()) == found


def test_windows_are_asked_one_by_one_and_joined(pairs):
    first = '{"segments": [{"start_time": 0, "end_time": 10, "behavior": "attack"}]}'
    second = '{"segments": [{"start_time": 0, "end_time": 10, "behavior": "mount"}]}'
    with GeminiStub(Say(first), Say(second), Say("broken")) as stub:
        model = asking(stub, window=10.0, overlap=5.0).fit(pairs.select(recordings=[]))
        with pytest.warns(AnswerWarning, match="partial"):
            found = model.predict(pairs.recordings[0]).annotation
    assert (found.start.tolist(), found.stop.tolist(), found.behavior.tolist()) == ([0, 75], [75, 150], [0, 2])
    assert found.observed.of_any().stop.tolist() == [150]
    assert found.n_frames == 200
    lengths = [len(q["contents"][0]["parts"][-1]["inlineData"]["data"]) for q in stub.questions]
    assert len(lengths) == 3


def test_a_given_beginning_is_kept(pairs):
    task = load_task("calms21")
    recording = Recording("x", video=pairs.recordings[0].video)
    given = Annotation.from_bouts([0, 30], [30, 50], ["mount", "attack"], task.ethogram, 10, 50)
    answer = (
        '{"segments": [{"start_time": 0, "end_time": 8, "behavior": "attack"}, {"start_time": 8, "end_time": 20, "behavior": "other"}]}'
    )
    with GeminiStub(Say(answer)) as stub:
        provider = create_provider("gemini", "gemini-2.5-flash", Access(base_url=stub.url))
        assignment = build_requests(recording, task, provider, RequestSettings(), initial=given)
        annotation, _ = read_replies(assignment, [RequestRunner(provider).send(r) for r in assignment.requests])
    shown = [
        (int(a), int(b), task.ethogram[int(c)].name) for a, b, c in zip(annotation.start, annotation.stop, annotation.behavior, strict=True)
    ]
    assert shown == [(0, 30, "mount"), (30, 80, "attack"), (80, 200, "other")]
    assert "until 00:05" in stub.questions[0]["contents"][0]["parts"][1]["text"]


def test_the_task_of_a_dataset():
    labels = Ethogram(["attack", "investigation", "mount", "other"], "other")
    model = Mllm(provider="replay", answers="nowhere").fit(Dataset((), labels, name="rodentbench/calms21"))
    assert model.task.ethogram["attack"].definition
    assert model.task.ethogram.names == labels.names
    assert Mllm(provider="replay").fit(Dataset((), labels, name="mine")).task.view == ""
    assert Mllm(provider="replay", task="calms21").fit(Dataset((), labels, name="mine")).task.view == "from above"
    with pytest.raises(EthobenchError, match="does not ask for attack"):
        Mllm(provider="replay", task="grooming").fit(Dataset((), labels, name="mine"))
    with pytest.raises(EthobenchError, match="takes no colour"):
        Mllm(colour="red")
    with pytest.raises(EthobenchError, match="by the rule"):
        Mllm(rule="guess")
    with pytest.raises(MismatchError, match="has no video"):
        Mllm(provider="gemini").fit(Dataset((), labels)).predict(Recording("r", rate=10, n_frames=10))


def test_predictions_of_overlapping_behaviors():
    annotation = Annotation.from_bouts([0, 2], [4, 6], ["a", "b"], ["a", "b"], 1, 8)
    prediction = annotation_to_prediction(annotation)
    assert prediction.probabilities.tolist() == [[1, 0], [1, 0], [1, 1], [1, 1], [0, 1], [0, 1], [0, 0], [0, 0]]
    assert prediction.annotation == annotation
    json.dumps(prediction.probabilities.tolist())
