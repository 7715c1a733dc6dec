"""Models of studies in which every recording was labeled for the same time, although it goes on afterwards."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import ethobench as eb
from ethobench.core import Annotation, Dataset, Ethogram, Signals
from ethobench.core.errors import FormatError
from ethobench.models import load_model, pieces

RATE, LABELED_SECONDS = 10.0, 60.0
ETHOGRAM = Ethogram(["none", "run", "rest"], background="none")


def make_recording(seed: int, seconds: float = 90.0) -> tuple[eb.Recording, Annotation]:
    """Return a recording whose labels end after a minute of behavior, and what the animal really did.

    The animal is put in after some seconds, runs and rests, and is taken out never.
    """
    rng = np.random.default_rng(seed)
    first, n_frames = int(rng.integers(5, 15) * RATE), round(seconds * RATE)
    behavior = np.repeat(rng.permutation(np.arange(n_frames // 20 + 1) % 2) + 1, 20)[:n_frames]
    behavior[:first] = 0
    behavior[first], behavior[first + 1] = 1, 2
    levels = np.array([[0.0, 0.0], [1.0, 0.2], [0.1, 1.0]])
    values = levels[behavior] + rng.normal(0, 0.05, (n_frames, 2))
    labels = behavior.copy()
    labels[first + round(LABELED_SECONDS * RATE) :] = 0
    signals = Signals(values.astype(np.float32), ("speed", "height"), RATE)
    annotation = Annotation.from_frames(labels, ETHOGRAM, RATE)
    name = f"r{seed}"
    recording = eb.Recording(name, individual=name, rate=RATE, signals=signals, annotations={"anna": annotation})
    return recording, Annotation.from_frames(behavior, ETHOGRAM, RATE)


@pytest.fixture(scope="module")
def study() -> tuple[Dataset, dict[str, Annotation]]:
    pairs = [make_recording(seed) for seed in range(8)]
    return Dataset(tuple(recording for recording, _ in pairs), ETHOGRAM), {recording.id: behavior for recording, behavior in pairs}


@pytest.fixture(scope="module")
def model(study: tuple[Dataset, dict[str, Annotation]]) -> eb.Model:
    data, _ = study
    return eb.create_model("boost", rounds=20).fit(data.select(recordings=[f"r{seed}" for seed in range(6)]))


def test_the_model_says_what_it_does(model: eb.Model) -> None:
    assert model.observation_period.seconds == LABELED_SECONDS
    (note,) = (note for note in model.fit_report["notes"] if "observed_from" in note)
    assert note.startswith("6 recordings have labels for 60 s from the first bout")


def test_predictions_end_where_the_labels_end(model: eb.Model, study: tuple[Dataset, dict[str, Annotation]]) -> None:
    for name in ("r6", "r7"):
        recording = study[0][name]
        predicted, truth = model.predict(recording).annotation, recording.annotation()
        assert np.mean(predicted.to_codes() == truth.to_codes()) > 0.97
        assert model.annotate(recording) == predicted
        bouts = predicted.behavior > 0
        assert predicted.stop[bouts].max() - predicted.start[bouts].min() <= LABELED_SECONDS * RATE


def test_frames_after_the_labels_are_not_training_data(model: eb.Model, study: tuple[Dataset, dict[str, Annotation]]) -> None:
    """Probabilities there are those of the behavior, although the labels of the training recordings say that there is none."""
    recording, behavior = study[0]["r6"], study[1]["r6"].to_codes()
    after = slice(int(recording.annotation().stop[recording.annotation().behavior > 0].max()), None)
    probabilities = model.predict(recording).probabilities[after]
    assert np.mean(probabilities.argmax(axis=1) == behavior[after]) > 0.95


def test_longer_recordings_are_predicted_completely(model: eb.Model) -> None:
    recording, behavior = make_recording(20, seconds=200.0)
    assert np.mean(model.predict(recording).annotation.to_codes() == behavior.to_codes()) > 0.95


def test_pieces_of_a_recording_are_limited_together(
    model: eb.Model, study: tuple[Dataset, dict[str, Annotation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, complete = study[0]["r7"], model.predict(study[0]["r7"]).annotation
    monkeypatch.setattr(pieces, "MAX_PIECE_FRAMES", 400)
    assert np.mean(model.annotate(recording).to_codes() == complete.to_codes()) > 0.99


def test_labels_with_a_stated_time_are_learned_as_they_are(study: tuple[Dataset, dict[str, Annotation]]) -> None:
    data, behaviors = study
    stated = []
    for recording in data:
        annotation = recording.annotation()
        last = int(annotation.stop[annotation.behavior > 0].max())
        stated.append(recording.copy(annotations={"anna": annotation.mark_unobserved(np.arange(annotation.n_frames) >= last)}))
    model = eb.create_model("boost", rounds=20).fit(Dataset(tuple(stated[:6]), ETHOGRAM))
    assert model.observation_period is None
    assert np.mean(model.predict(stated[6]).annotation.to_codes() == behaviors["r6"].to_codes()) > 0.95


def test_a_saved_model_keeps_it(model: eb.Model, study: tuple[Dataset, dict[str, Annotation]], tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.observation_period == model.observation_period
    assert loaded.predict(study[0]["r6"]).annotation == model.predict(study[0]["r6"]).annotation
    assert "60 s from the first bout" in (tmp_path / "model" / "CARD.md").read_text()
    card = json.loads((tmp_path / "model" / "model.json").read_text())
    card["observation_period"]["seconds"] = -5
    (tmp_path / "model" / "model.json").write_text(json.dumps(card))
    with pytest.raises(FormatError, match="not possible"):
        load_model(tmp_path / "model")


def test_cross_validated_scores_are_of_limited_predictions(study: tuple[Dataset, dict[str, Annotation]]) -> None:
    """The decoder and the blend of `auto` are chosen on the labeled time, and the result is scored against the labels as they are."""
    data, _ = study
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = eb.create_model("auto", folds=2).fit(data.select(recordings=[f"r{seed}" for seed in range(6)]))
    predicted = {name: model.predict(data[name]).annotation for name in ("r6", "r7")}
    truths = {name: data[name].annotation() for name in predicted}
    assert eb.score(predicted, truths, resamples=0).overall["f1"] > 0.95
