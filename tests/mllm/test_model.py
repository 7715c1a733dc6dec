"""The model `mllm`: `fit` selects examples, `predict` sends requests, and it is used like any other model."""

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
    recordings = [r.copy(video=draw_video(r, folder / f"{r.id}.mp4")) for r in social_recordings(3, seconds=20)]
    return Dataset(tuple(recordings), recordings[0].annotation().ethogram, name="mine")


def model_for(stub, **params) -> Mllm:
    return Mllm(**{"provider": "gemini", "model": "gemini-2.5-flash", "base_url": stub.url, **params})


def test_it_is_used_like_any_other_model():
    assert models["mllm"] is Mllm
    data = load_dataset("synthetic/pose", individuals=3, seconds=30)
    model = Mllm(seed=3).fit(data)
    prediction = model.predict(data.recordings[0])
    assert prediction.ethogram == data.ethogram
    assert prediction.n_frames == data.recordings[0].n_frames
    assert prediction.probabilities.sum(axis=1) == pytest.approx(np.ones(prediction.n_frames))
    assert Mllm(seed=3).fit(data).predict(data.recordings[0]).annotation == prediction.annotation
    assert Mllm(seed=4).fit(data).predict(data.recordings[0]).annotation != prediction.annotation


def test_saving_and_loading(tmp_path):
    data = load_dataset("synthetic/tag", individuals=2, seconds=30)
    model = Mllm(seed=1).fit(data)
    model.save(tmp_path / "saved")
    loaded = load_model(tmp_path / "saved")
    assert loaded.predict(data.recordings[0]).annotation == model.predict(data.recordings[0]).annotation
    assert sorted(p.name for p in (tmp_path / "saved").iterdir()) == ["CARD.md", "examples.json", "model.json", "training.json"]


def test_zero_shot_needs_no_recordings_and_chance_does(pairs):
    with GeminiStub(always=Say(OTHER)) as stub:
        model = model_for(stub).fit(pairs.select(recordings=[]))
        prediction = model.predict(pairs.recordings[0])
    assert prediction.annotation.to_codes().tolist() == [3] * 200
    with pytest.raises(EthobenchError, match="dataset without recordings"):
        Mllm().fit(pairs.select(recordings=[]))
    with pytest.raises(EthobenchError, match="dataset without recordings"):
        model_for(stub, shots=1).fit(pairs.select(recordings=[]))


@pytest.mark.parametrize(("kind", "clips", "texts"), [("excerpts", 2, 2), ("clips", 8, 8), ("text", 0, 2)])
def test_examples_are_part_of_the_prompt(kind, clips, texts, pairs):
    with GeminiStub(always=Say(OTHER)) as stub:
        model = model_for(stub, shots=2, examples=kind, example_seconds=5.0).fit(pairs.select(recordings=["animal01", "animal02"]))
        model.predict(pairs["animal03"])
    parts = stub.questions[0]["contents"][0]["parts"]
    n_clips = min(clips, len(model.worked_examples)) if kind == "clips" else clips
    assert sum("inlineData" in content for content in parts) == n_clips + 1
    assert sum(content.get("text", "").startswith("Example ") for content in parts) == len(model.worked_examples)
    assert len(model.worked_examples) <= texts
    for example in model.worked_examples:
        assert all(0 <= a < b <= example.duration + 1e-6 for a, b, _ in example.segments)


@pytest.mark.parametrize(
    ("shots", "kind", "training_ids"), [(0, "excerpts", []), (1, "excerpts", ["animal01"]), (2, "text", ["animal01", "animal02"])]
)
def test_only_recordings_with_examples_count_as_training_recordings(shots, kind, training_ids, pairs, tmp_path):
    with GeminiStub(always=Say(OTHER)) as stub:
        model_for(stub, shots=shots, examples=kind, example_seconds=5.0).fit(pairs).save(tmp_path / "m")
        model = load_model(tmp_path / "m", base_url=stub.url)
    assert [r.id for r in pairs if model.was_trained_on(r)] == training_ids


def test_examples_match_the_reference_annotation(pairs):
    truths = {r.id: r.annotation() for r in pairs}
    (excerpt,) = select_examples(pairs.recordings[:1], truths, lambda r, a, b: (r.id, a, b), kind="excerpts", shots=1, seconds=5)
    name, start, stop = excerpt.clip
    cropped = truths[name].crop(round(start * 10), round(stop * 10))
    assert list(excerpt.segments) == annotation_segments(cropped, cropped.ethogram)
    assert {*excerpt.segments[0]} | {0.0} == {*excerpt.segments[0]}
    with pytest.raises(EthobenchError, match="kind of examples must be one of"):
        select_examples(pairs.recordings, truths, lambda *_: None, kind="poems", shots=1, seconds=5)


def test_saved_examples_are_part_of_the_model_folder(pairs, tmp_path):
    with GeminiStub(always=Say(OTHER)) as stub:
        model = model_for(stub, shots=1, example_seconds=4.0).fit(pairs.select(recordings=["animal01"]))
        model.save(tmp_path / "m")
        loaded = load_model(tmp_path / "m", allow_network=True, base_url=stub.url)
        assert loaded.predict(pairs["animal02"]).annotation == model.predict(pairs["animal02"]).annotation
    assert [e.segments for e in loaded.worked_examples] == [e.segments for e in model.worked_examples]
    assert loaded.worked_examples[0].clip.video == tmp_path / "m" / "example0.mp4"
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["CARD.md", "example0.mp4", "examples.json", "model.json", "training.json"]


def test_failed_answers_are_unobserved_with_a_warning(pairs):
    with GeminiStub(Say("no idea"), Block(), Say(f"```json\n{OTHER}```"), Fail(401)) as stub:
        model = model_for(stub).fit(pairs.select(recordings=[]))
        with pytest.warns(AnswerWarning) as recorded:
            predictions = [model.predict(recording) for recording in pairs]
        with pytest.raises(ProviderError, match="401"):
            model_for(stub, temperature=1.0).fit(pairs.select(recordings=[])).predict(pairs.recordings[0])
    assert [len(p.annotation) for p in predictions] == [0, 0, 1]
    assert [len(p.annotation.observed.of_any().start) for p in predictions] == [0, 0, 1]
    assert np.isnan(predictions[0].probabilities).all()
    assert len(recorded) == 3
    outcomes = outcomes_from_fit_report(json.loads(json.dumps(model.fit_report)))
    assert [outcome.state for outcome in outcomes] == ["failed", "failed", "repaired"]
    assert outcomes[2].repairs == {"fence": 1}
    assert list(model.outcomes.values()) == outcomes


def test_windows_are_requested_separately_and_merged(pairs):
    first = '{"segments": [{"start_time": 0, "end_time": 10, "behavior": "attack"}]}'
    second = '{"segments": [{"start_time": 0, "end_time": 10, "behavior": "mount"}]}'
    with GeminiStub(Say(first), Say(second), Say("broken")) as stub:
        model = model_for(stub, window=10.0, overlap=5.0).fit(pairs.select(recordings=[]))
        with pytest.warns(AnswerWarning, match="partial"):
            annotation = model.predict(pairs.recordings[0]).annotation
    assert (annotation.start.tolist(), annotation.stop.tolist(), annotation.behavior.tolist()) == ([0, 75], [75, 150], [0, 2])
    assert annotation.observed.of_any().stop.tolist() == [150]
    assert annotation.n_frames == 200
    lengths = [len(q["contents"][0]["parts"][-1]["inlineData"]["data"]) for q in stub.questions]
    assert len(lengths) == 3


def test_an_initial_annotation_is_kept(pairs):
    task = load_task("calms21")
    recording = Recording("x", video=pairs.recordings[0].video)
    initial = Annotation.from_bouts([0, 30], [30, 50], ["mount", "attack"], task.ethogram, 10, 50)
    answer = (
        '{"segments": [{"start_time": 0, "end_time": 8, "behavior": "attack"}, {"start_time": 8, "end_time": 20, "behavior": "other"}]}'
    )
    with GeminiStub(Say(answer)) as stub:
        provider = create_provider("gemini", "gemini-2.5-flash", Access(base_url=stub.url))
        requests = build_requests(recording, task, provider, RequestSettings(), initial=initial)
        annotation, _ = read_replies(requests, [RequestRunner(provider).send(r) for r in requests.requests])
    bouts = [
        (int(a), int(b), task.ethogram[int(c)].name) for a, b, c in zip(annotation.start, annotation.stop, annotation.behavior, strict=True)
    ]
    assert bouts == [(0, 30, "mount"), (30, 80, "attack"), (80, 200, "other")]
    assert "until 00:05" in stub.questions[0]["contents"][0]["parts"][1]["text"]


def test_the_default_task_is_that_of_the_dataset():
    labels = Ethogram(["attack", "investigation", "mount", "other"], "other")
    model = Mllm(provider="replay", answers="nowhere").fit(Dataset((), labels, name="rodentbench/calms21"))
    assert model.task.ethogram["attack"].definition
    assert model.task.ethogram.names == labels.names
    assert Mllm(provider="replay").fit(Dataset((), labels, name="mine")).task.view == ""
    assert Mllm(provider="replay", task="calms21").fit(Dataset((), labels, name="mine")).task.view == "from above"
    with pytest.raises(EthobenchError, match="lacks behaviors of mine: attack"):
        Mllm(provider="replay", task="grooming").fit(Dataset((), labels, name="mine"))
    with pytest.raises(EthobenchError, match="has no parameter `colour`"):
        Mllm(colour="red")
    with pytest.raises(EthobenchError, match="`rule` must be one of repair, published"):
        Mllm(rule="guess")
    with pytest.raises(MismatchError, match="has no video"):
        Mllm(provider="gemini").fit(Dataset((), labels)).predict(Recording("r", rate=10, n_frames=10))


def test_predictions_of_overlapping_behaviors():
    annotation = Annotation.from_bouts([0, 2], [4, 6], ["a", "b"], ["a", "b"], 1, 8)
    prediction = annotation_to_prediction(annotation)
    assert prediction.probabilities.tolist() == [[1, 0], [1, 0], [1, 1], [1, 1], [0, 1], [0, 1], [0, 0], [0, 0]]
    assert prediction.annotation == annotation
    json.dumps(prediction.probabilities.tolist())
