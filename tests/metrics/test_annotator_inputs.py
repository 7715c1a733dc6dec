"""Arrays in `agreement` and `ceiling`: the same results as the equivalent annotations, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.examples import ETHOGRAM, FRAME_KINDS, NAMES, random_annotation

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError

RATE = 5.0
ANNOTATORS = ("anna", "ben", "carla")
kinds = st.sampled_from(sorted(FRAME_KINDS))
FAST_KINDS = {"labels", "DataFrame"}
ALL_KINDS = [*sorted(FAST_KINDS), *(pytest.param(kind, marks=pytest.mark.slow) for kind in sorted({*FRAME_KINDS} - FAST_KINDS))]


@st.composite
def recordings_of_annotators(draw: st.DrawFn, n_recordings: int = 3) -> dict[str, dict[str, np.ndarray]]:
    """Return codes, -1 where unobserved, by recording and annotator: two or three annotators, not all of them in each recording."""
    recordings = {}
    for number in range(draw(st.integers(1, n_recordings))):
        n_frames = draw(st.integers(2, 30))
        names = draw(st.lists(st.sampled_from(ANNOTATORS), min_size=2, max_size=3, unique=True))
        codes = st.lists(st.integers(-1, len(NAMES) - 1), min_size=n_frames, max_size=n_frames).map(np.array)
        recordings[f"day{number}"] = {name: draw(codes) for name in names}
    return recordings


def annotate(frames: np.ndarray) -> Annotation:
    return Annotation.from_frames(frames, NAMES, RATE, unobserved=-1)


def as_annotations(recordings: dict[str, dict[str, np.ndarray]]) -> dict[str, dict[str, Annotation]]:
    return {recording: {name: annotate(frames) for name, frames in group.items()} for recording, group in recordings.items()}


@pytest.mark.slow
@given(recordings_of_annotators(), st.data())
def test_arrays_have_the_agreement_of_the_equivalent_annotations(recordings, data):
    arrays = {
        recording: {name: FRAME_KINDS[data.draw(kinds)](frames) for name, frames in group.items()}
        for recording, group in recordings.items()
    }
    expected = eb.agreement(as_annotations(recordings), resamples=0).to_dict()
    assert eb.agreement(arrays, rate=RATE, behaviors=NAMES, resamples=0).to_dict() == expected
    if len(arrays) == 1:
        single = eb.agreement(next(iter(arrays.values())), rate=RATE, behaviors=NAMES, resamples=0).to_dict()
        assert single["pairs"] == expected["pairs"]


@pytest.mark.slow
@given(recordings_of_annotators(1), st.data())
def test_arrays_beside_annotations_have_their_rate_and_names(recordings, data):
    ((_, group),) = recordings.items()
    expected = eb.agreement(as_annotations(recordings)["day0"], resamples=0).to_dict()
    first, *others = group
    mixed = {first: annotate(group[first]), **{name: FRAME_KINDS[data.draw(kinds)](group[name]) for name in others}}
    assert eb.agreement(mixed, resamples=0).to_dict() == expected


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
def test_overlapping_behaviors(seed):
    generator = np.random.default_rng(seed)
    frames = {name: generator.random((40, 3)) < 0.5 for name in ANNOTATORS}
    expected = eb.agreement({name: Annotation.from_frames(f, NAMES, RATE) for name, f in frames.items()}, tolerance=0.2, resamples=0)
    assert eb.agreement(frames, rate=RATE, behaviors=NAMES, tolerance=0.2, resamples=0).to_dict() == expected.to_dict()


@pytest.fixture(scope="module")
def six_recordings() -> dict[str, dict[str, Annotation]]:
    truths = {f"r{k}": random_annotation(k) for k in range(6)}
    return {name: {"anna": truth, "ben": truth.shift(1 + int(name[1:]) % 3)} for name, truth in truths.items()}


def test_dicts_of_recordings_have_intervals_over_individuals(six_recordings):
    arrays = {recording: {name: a.to_codes() for name, a in group.items()} for recording, group in six_recordings.items()}
    expected = eb.agreement(six_recordings)
    result = eb.agreement(arrays, rate=10, behaviors=ETHOGRAM)
    assert result.to_dict() == expected.to_dict()
    assert json.loads(json.dumps(result.to_dict()))["intervals"]["fleiss"]["all"] is not None
    owners = {name: f"mouse{int(name[1:]) // 2}" for name in arrays}
    assert eb.agreement(arrays, rate=10, behaviors=ETHOGRAM, individuals=owners).intervals["unit"] == "individuals"


def test_labels_that_only_one_annotator_uses_are_noted():
    anna, ben = ["interact"] * 30 + [""] * 30, [""] + ["i"] * 30 + [""] * 29
    (note,) = eb.agreement({"anna": anna, "ben": ben}, rate=10).notes
    assert "only anna uses 'interact'" in str(note)
    assert "the same behavior?" in str(note)
    assert eb.agreement({"anna": anna, "ben": anna}, rate=10).notes == ()


def test_only_the_chosen_labels_are_compared():
    anna, ben = ["rest", "run", "dig", "dig"], ["rest", "run", "run", ""]
    result = eb.agreement({"anna": anna, "ben": ben}, rate=1, behaviors="run")
    assert result.behaviors == ("run",)
    assert result.table().query("behavior == 'run'")["agreement"].tolist() == [0.75]
    with pytest.raises(NotFoundError, match="no frame has the behavior 'ruun'; did you mean 'run'"):
        eb.agreement({"anna": anna, "ben": ben}, rate=1, behaviors=["ruun"])


@pytest.fixture(scope="module")
def people_and_model() -> tuple[dict[str, dict[str, np.ndarray]], dict[str, np.ndarray], pd.DataFrame]:
    """Return the frames of two annotators and of a model by recording, and the ceiling of the equivalent annotations."""
    generator = np.random.default_rng(7)
    truths = {f"r{k}": np.repeat(generator.integers(-1, 3, 20), 5) for k in range(6)}
    people = {name: {"anna": truth, "ben": np.roll(truth, 1)} for name, truth in truths.items()}
    model = {name: np.roll(truth, 2) for name, truth in truths.items()}
    annotations = {name: annotate(frames) for name, frames in model.items()}
    return people, model, eb.ceiling(as_annotations(people), annotations, resamples=50).table()


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_ceiling_of_arrays_is_that_of_the_equivalent_annotations(kind, people_and_model):
    people, model, expected = people_and_model
    convert = FRAME_KINDS[kind]
    arrays = {recording: {name: convert(frames) for name, frames in group.items()} for recording, group in people.items()}
    result = eb.ceiling(arrays, {name: convert(frames) for name, frames in model.items()}, rate=RATE, behaviors=NAMES, resamples=50)
    pd.testing.assert_frame_equal(result.table(), expected)


@pytest.mark.slow
def test_the_ceiling_of_probabilities_is_that_of_a_prediction(six_recordings):
    values = {name: np.random.default_rng(k).dirichlet(np.ones(3), 300) for k, name in enumerate(six_recordings)}
    predictions = {name: Prediction(v, ETHOGRAM, 10, exclusive=True) for name, v in values.items()}
    expected = eb.ceiling(six_recordings, predictions, resamples=200).table()
    pd.testing.assert_frame_equal(eb.ceiling(six_recordings, values, resamples=200).table(), expected)
    data = Dataset(tuple(Recording(name, annotations=group) for name, group in six_recordings.items()), ETHOGRAM)
    pd.testing.assert_frame_equal(eb.ceiling(data, values, resamples=200).table(), expected)
    one = eb.ceiling(six_recordings["r0"], values["r0"], resamples=0).table()
    pd.testing.assert_frame_equal(one, eb.ceiling(six_recordings["r0"], predictions["r0"], resamples=0).table())


def test_the_ceiling_of_chosen_behaviors(six_recordings):
    model = {name: group["ben"].shift(1) for name, group in six_recordings.items()}
    everything, chosen = (eb.ceiling(six_recordings, model, behaviors=names, resamples=0) for names in (None, ["b"]))
    assert {row["behavior"] for row in chosen.rows} == {"", "b"}
    assert chosen.of("f1", "b") == everything.of("f1", "b")


@pytest.mark.parametrize(
    ("annotations", "options", "error", "message"),
    [
        ({"anna": [0, 1], "ben": [0, 1]}, {"behaviors": NAMES}, EthobenchError, "the annotation by 'anna': an array has no frame rate"),
        ({"anna": [0, 1], "ben": [0, 1]}, {"rate": 1}, EthobenchError, "the annotation by 'anna' has codes without names"),
        ({"anna": [0, 1], "ben": [0, 1, 1]}, {"rate": 1, "behaviors": NAMES}, MismatchError, "resample, crop or extend"),
        ({"anna": [0, 1], "ben": [0, 5]}, {"rate": 1, "behaviors": NAMES}, NotFoundError, "the annotation by 'ben' has code 5"),
        (
            {"d1": {"anna": [0, 1], "ben": [[0.2, 0.8, 0], [0.5, 0.5, 0]]}},
            {"rate": 1, "behaviors": NAMES},
            MismatchError,
            "the annotation by 'ben' of recording 'd1' has probabilities, which only predictions may have",
        ),
        (
            {"anna": pd.Series([0, 1]), "ben": [0, 1], "carla": pd.Series([0, 1], index=[1, 0])},
            {"rate": 1, "behaviors": NAMES},
            MismatchError,
            "the annotation by 'anna' and the annotation by 'carla' have different pandas indexes",
        ),
        (pd.DataFrame({"anna": [0, 1], "ben": [0, 1]}), {"rate": 1}, EthobenchError, r"got DataFrame.*dict\(table.items\(\)\)"),
        ([[0, 1], [0, 1]], {"rate": 1}, EthobenchError, "expected a dict of annotators to annotations or arrays, got list"),
        ({"d1": {"anna": [0, 1]}, "d2": [0, 1]}, {"rate": 1}, EthobenchError, "recording 'd2': expected a mapping of annotators"),
        ({"anna": random_annotation(0), "ben": random_annotation(1)}, {"rate": 10}, EthobenchError, "`rate` is an option for arrays"),
        ({"anna": random_annotation(0), "ben": 7}, {}, EthobenchError, "'ben' has the type int"),
        (
            {"anna": random_annotation(0), "ben": Prediction(np.ones((300, 1)), Ethogram(["a"]), 10, exclusive=True)},
            {},
            EthobenchError,
            "'ben' is a Prediction; pass its annotation",
        ),
    ],
)
def test_what_is_refused(annotations, options, error, message):
    with pytest.raises(error, match=message):
        eb.agreement(annotations, **options)


def test_exclusive_is_an_option_for_arrays(six_recordings):
    with pytest.raises(EthobenchError, match="`exclusive` is an option for arrays"):
        eb.ceiling(six_recordings["r0"], six_recordings["r0"]["ben"], exclusive=True)


def test_recordings_of_one_annotator_are_not_compared():
    ethogram = Ethogram(["a", "b"])
    one, two = (Annotation.from_frames(np.repeat(codes, 5), ethogram, 5) for codes in ([0, 1, 0], [0, 1, 1]))
    recordings = (Recording("r0", annotations={"x": one, "y": two}), Recording("r1", annotations={"x": one}))
    results = [eb.agreement(Dataset(chosen, ethogram)).to_dict() for chosen in (recordings, recordings[:1])]
    assert json.dumps(results[0]) == json.dumps(results[1])
