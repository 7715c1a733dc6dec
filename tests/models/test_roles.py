"""Models by role: mixed skeletons, rates, numbers of animals and laboratories."""

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from ethobench import create_model, load_dataset, load_model
from ethobench.cli import app
from ethobench.core import Annotation, Dataset, Observed, Poses, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.decoding.pooling import Labeled, fit_weighted_threshold, pool_threshold, pooled_thresholds
from ethobench.decoding.postprocess import THRESHOLDS, fit_threshold
from ethobench.features.keypoints import ROLES
from ethobench.features.roles import RoleInputs, needs_roles
from ethobench.models.condition_parts import condition_folds
from ethobench.models.row_sampling import Rows

pytestmark = pytest.mark.filterwarnings("ignore:.*(not used for training|unlike the training data)")
SMALL = {"rounds": 3, "leaves": 4}
LABS = ["CRIM13", "JovialSwallow", "LyricalHare", "GroovyShrew", "AdaptableSnail"]
PERFORMED = ["approach", "attack", "freeze", "rear", "selfgroom"]
"""Behaviors that mice of CRIM13 or LyricalHare perform; `freeze` and `selfgroom` are labeled in one laboratory only."""


def labs(**options):
    return load_dataset("synthetic/labs", **{"videos": 2, "seconds": 8, "labs": LABS, "metadata": False} | options)


@pytest.fixture(scope="module")
def mixed():
    """Two videos of each laboratory, but one of GroovyShrew."""
    data = labs()
    return data.select(recordings=[r.id for r in data if r.annotations and r.id != "GroovyShrew-002"])


@pytest.fixture(scope="module")
def fitted(mixed):
    return create_model("boost", **SMALL).fit(mixed)


def of_labs(data, *names):
    return data.select(recordings=[r.id for r in data if r.metadata["lab"] in names])


def lone(recording, animals, keep=None, **changes):
    """Return a recording with some of its animals and keypoints, without annotations."""
    poses = recording.signals
    a = [poses.individuals.index(name) for name in animals]
    k = [i for i, name in enumerate(poses.keypoints) if keep is None or name in keep]
    kept = Poses(
        poses.positions[:, a][:, :, k],
        poses.confidence[:, a][:, :, k],
        tuple(animals),
        tuple(poses.keypoints[i] for i in k),
        poses.rate,
    )
    return recording.copy(signals=kept, annotations={}, subjects=tuple(animals), **changes)


def test_converted_poses_have_one_skeleton_rate_and_unit(mixed):
    inputs = RoleInputs.fit(mixed.recordings)
    assert inputs.unit == "cm"
    assert 7 < inputs.body_length < 10  # of simulated mice
    assert len({r.signals.keypoints for r in mixed}) > 2
    for recording in mixed:
        converted = inputs.convert(recording)
        poses = converted.signals
        assert (poses.keypoints, poses.rate, poses.individuals) == (ROLES, inputs.rate, recording.signals.individuals)
        assert abs(len(poses) / inputs.rate - recording.n_frames / recording.rate) < 2 / inputs.rate
        ends = poses.positions[:, :, ROLES.index("neck")] - poses.positions[:, :, ROLES.index("tail_base")]
        assert 0.4 < np.nanmedian(np.linalg.norm(ends, axis=-1)) < 1.1  # body lengths, in every laboratory
        assert converted.constants[0] == pytest.approx(np.log2(recording.rate))
        assert converted.copy(id="copy").constants == converted.constants
        assert converted.metadata == recording.metadata


def test_flanks_and_hips_are_one_part_and_stand_ins_are_marked():
    names = ("ear_left", "ear_right", "lateral_left", "lateral_right", "tail_base", "antenna")
    positions = np.random.default_rng(0).normal(size=(20, 1, len(names), 2)).cumsum(axis=0)
    recording = Recording("a", rate=30, signals=Poses(positions, np.ones((20, 1, 6)), ("m",), names, 30.0))
    inputs = RoleInputs(rate=30.0)
    converted = inputs.convert(recording)
    scaled = converted.signals.positions[:, 0]
    unit = np.nanmedian(np.linalg.norm(positions, axis=-1)) / np.nanmedian(np.linalg.norm(scaled[:, [2, 3, 6, 7, 8]], axis=-1))
    assert unit > 0
    assert np.allclose(scaled[:, ROLES.index("left_hip")] / scaled[:, ROLES.index("tail_base")], positions[:, 0, 2] / positions[:, 0, 4])
    assert np.allclose(scaled[:, ROLES.index("neck")], scaled[:, [ROLES.index("left_ear"), ROLES.index("right_ear")]].mean(axis=1))
    available = dict(zip(ROLES, converted.constants[2:], strict=True))
    assert (available["left_hip"], available["neck"], available["nose"]) == (1.0, 0.5, 0.0)
    assert np.isnan(scaled[:, ROLES.index("nose")]).all()
    assert any("missing: nose" in str(note) for note in converted.notes)


def test_parts_that_nobody_knows_are_refused_by_name():
    poses = Poses(np.zeros((10, 1, 2, 2)), np.ones((10, 1, 2)), ("m",), ("blob1", "blob2"), 30.0)
    with pytest.raises(MismatchError, match=r"'a'.*blob1, blob2.*nothing in common.*keypoints\.csv"):
        RoleInputs(30.0).convert(Recording("a", signals=poses))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0, -3.0, "wide", float("nan")])
def test_an_invalid_scale_warns(mixed, fitted, scale):
    first, *others = mixed.recordings
    damaged = first.copy(metadata={**first.metadata, "pixels_per_cm": scale})
    with pytest.warns(UserWarning, match="not a positive number"):
        assert RoleInputs.fit([damaged, *others]).unit == "body lengths"
    with pytest.warns(UserWarning, match="own body length"):
        assert fitted.predict(damaged).n_frames == first.n_frames


def test_without_scale_lengths_are_in_body_lengths_and_the_unit_of_the_tracker_does_not_matter(mixed):
    recording = mixed.recordings[0].copy(metadata={})
    poses = recording.signals
    inches = recording.copy(signals=Poses(poses.positions * 2.54, poses.confidence, poses.individuals, poses.keypoints, poses.rate))
    inputs = RoleInputs.fit([recording])
    assert inputs.unit == "body lengths"
    assert np.allclose(inputs.convert(recording).signals.positions, inputs.convert(inches).signals.positions, equal_nan=True)


def test_roles_are_used_only_where_recordings_differ(mixed):
    same = [r for r in mixed if r.metadata["lab"] == "CRIM13"]
    assert not needs_roles(same, "lab")
    assert needs_roles(mixed.recordings)
    assert needs_roles([same[0], same[1].copy(metadata={"lab": "other"})], "lab")
    assert needs_roles([same[0], same[1].copy(rate=24.62)])
    assert needs_roles([same[0], lone(same[1], ["mouse1"])])
    model = create_model("boost", **SMALL).fit(mixed.select(recordings=[r.id for r in same]))
    assert model.role_inputs is None
    assert model.inputs[0] == f"subject/{same[0].signals.keypoints[0]}"


@pytest.mark.slow
def test_every_laboratory_is_learned_and_predicted_at_its_own_rate(mixed, fitted, tmp_path):
    assert fitted.role_inputs is not None
    assert not fitted.exclusive
    assert {*fitted.condition_parts} == {*LABS}
    fitted.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for recording in mixed:
        prediction = fitted.predict(recording)
        assert (prediction.rate, prediction.n_frames) == (recording.rate, recording.n_frames)
        pairs = len(recording.subjects) * (len(recording.subjects) - 1)
        assert len(prediction.by_actors) == pairs
        again = loaded.predict(recording)
        assert np.array_equal(prediction.probabilities, again.probabilities, equal_nan=True)
        assert prediction.annotation == again.annotation or np.array_equal(prediction.annotation.start, again.annotation.start)


@pytest.mark.slow
def test_other_numbers_of_animals_other_parts_and_unknown_laboratories_are_predicted(mixed, fitted):
    four = next(r for r in mixed if len(r.subjects) > 2)
    single = fitted.predict(lone(four, ["mouse2"]))
    assert {*single.by_actors} == {("mouse2", None)}
    assert not {single.ethogram[int(code)].name for code in single.annotation.behavior} & {*fitted.directed.targeted}
    few = lone(four, ["mouse1", "mouse3"], keep={"ear_left", "ear_right", "tail_base"}, metadata={"lab": "new", "pixels_per_cm": 16.0})
    assert {*fitted.predict(few).by_actors} == {("mouse1", "mouse3"), ("mouse3", "mouse1")}
    shared = fitted.predict(few.copy(metadata={"pixels_per_cm": 16.0}))
    assert np.array_equal(fitted.predict(few).probabilities, shared.probabilities, equal_nan=True)


@pytest.mark.slow
def test_behaviors_that_are_not_labeled_are_not_negatives(mixed):
    """A model does not change if unlabeled behaviors are performed, and changes if they are labeled as absent."""
    two = of_labs(mixed, "CRIM13", "AdaptableSnail")
    masked = {r.id: r.annotation() for r in two}
    unmasked = [
        r.copy(annotations={"a": masked[r.id].with_observed(Observed(iv.full(r.n_frames)))}) if r.metadata["lab"] == "CRIM13" else r
        for r in two
    ]
    code = two.ethogram.names.index("chase")  # not labeled in CRIM13
    assert not any("chase" in text for r in two if r.metadata["lab"] == "CRIM13" for text in r.metadata["behaviors_labeled"])
    first = create_model("boost", **SMALL, condition="").fit(two)
    second = create_model("boost", **SMALL, condition="").fit(Dataset(tuple(unmasked), two.ethogram))
    target = next(r for r in two if r.metadata["lab"] == "CRIM13")
    assert second.predict(target).probabilities[:, code].mean() < first.predict(target).probabilities[:, code].mean()


@pytest.mark.slow
def test_an_animal_that_is_missing_for_long_is_not_a_target(mixed, fitted):
    recording = next(r for r in mixed if len(r.subjects) == 2)
    poses = recording.signals
    positions = poses.positions.copy()
    half = len(poses) // 2
    positions[:half, 1] = np.nan
    gone = recording.copy(signals=Poses(positions, poses.confidence, poses.individuals, poses.keypoints, poses.rate), annotations={})
    prediction = fitted.predict(gone)
    towards, on_self = prediction.by_actors["mouse1", "mouse2"], prediction.annotation.observed
    assert np.isnan(towards.probabilities[: half - 40]).all()
    assert not np.isnan(towards.probabilities[half + 40 :]).any()
    behavior = next(name for name in prediction.ethogram.names if name not in fitted.directed.targeted)
    assert iv.total(on_self.of(behavior, "mouse1")) > 0.8 * recording.n_frames  # the tracker loses it for a moment
    assert iv.total(on_self.of(fitted.directed.targeted[0], "mouse1", "mouse2")) < recording.n_frames - half + 40


@pytest.mark.slow
def test_swapped_identities_swap_the_predictions(mixed, fitted):
    recording = next(r for r in mixed if len(r.subjects) == 2)
    poses = recording.signals
    swapped = recording.copy(
        signals=Poses(poses.positions[:, ::-1], poses.confidence[:, ::-1], poses.individuals, poses.keypoints, poses.rate), annotations={}
    )
    one, other = fitted.predict(recording), fitted.predict(swapped)
    assert np.allclose(
        one.by_actors["mouse1", "mouse2"].probabilities, other.by_actors["mouse2", "mouse1"].probabilities, atol=1e-5, equal_nan=True
    )


@pytest.mark.slow
def test_a_laboratory_with_one_video_and_a_behavior_of_one_laboratory(mixed, fitted):
    (only,) = of_labs(mixed, "GroovyShrew")
    assert fitted.predict(only).n_frames == only.n_frames
    assert "GroovyShrew" in fitted.condition_thresholds


@pytest.mark.slow
def test_a_new_laboratory_is_adapted_to_without_changing_others(mixed, tmp_path):
    known_values, new = of_labs(mixed, "CRIM13", "LyricalHare"), of_labs(mixed, "JovialSwallow")
    model = create_model("boost", **SMALL).fit(known_values)
    before = {r.id: model.predict(r).probabilities for r in mixed}
    assert model.adapt_to(new) is model
    for recording in known_values:
        assert np.array_equal(model.predict(recording).probabilities, before[recording.id], equal_nan=True)
    assert "JovialSwallow" in model.condition_thresholds
    assert all(model.was_trained_on(r) for r in new)
    model.save(tmp_path / "adapted")
    recording = new.recordings[0]
    again = load_model(tmp_path / "adapted").predict(recording).probabilities
    assert np.array_equal(again, model.predict(recording).probabilities, equal_nan=True)


def test_models_of_one_skeleton_cannot_be_adapted(mixed):
    same = of_labs(mixed, "CRIM13")
    model = create_model("boost", **SMALL).fit(same)
    with pytest.raises(EthobenchError, match="cannot be adapted"):
        model.adapt_to(same)


def test_adaptation_needs_a_common_behavior(fitted, mixed):
    recording = mixed.recordings[0]
    labels = Annotation.from_bouts([0], [5], ["flying"], ["flying"], recording.rate, recording.n_frames, subject=["mouse1"])
    with pytest.raises(MismatchError, match="none of the behaviors flying"):
        fitted.adapt_to(Dataset((recording.copy(annotations={"a": labels}),), labels.ethogram))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), [("tcn", {"updates": 25, "width": 8, "levels": 3}), ("auto", {"folds": 2})])
def test_networks_and_auto_learn_from_mixed_laboratories(name, params, tmp_path):
    mixed = labs(labs=["CRIM13", "LyricalHare"]).select(behaviors=PERFORMED)
    model = create_model(name, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(mixed)
        model.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        for recording in mixed.recordings[::3]:
            prediction = model.predict(recording)
            assert prediction.n_frames == recording.n_frames
            assert np.allclose(loaded.predict(recording).probabilities, prediction.probabilities, atol=1e-5, equal_nan=True)
        unknown = mixed.recordings[0].copy(metadata={**mixed.recordings[0].metadata, "lab": "new"})
        assert model.predict(unknown).n_frames == unknown.n_frames


@pytest.mark.slow
def test_animals_without_subjects_are_pooled():
    """Bouts without subjects; one, two and three animals."""
    generator = np.random.default_rng(0)
    recordings = []
    for number, animals in enumerate((1, 2, 3, 2)):
        positions = generator.normal(size=(900, animals, 3, 2)).cumsum(axis=0) + 100
        names = tuple(f"rat{i}" for i in range(animals))
        poses = Poses(positions, np.ones((900, animals, 3)), names, ("nose", "neck", "tail_base"), 30.0)
        labels = Annotation.from_frames(np.arange(900) // 90 % 2, ["rest", "move"], rate=30)
        recordings.append(Recording(f"r{number}", signals=poses, annotations={"a": labels}))
    data = Dataset(tuple(recordings), recordings[0].annotation().ethogram)
    model = create_model("boost", **SMALL).fit(data)
    assert model.directed is None
    assert model.role_inputs is not None
    assert model.exclusive
    for recording in recordings:
        assert model.predict(recording).n_frames == 900


def test_weighted_thresholds_are_those_of_repeated_frames():
    generator = np.random.default_rng(1)
    for _ in range(20):
        probabilities = generator.random(60)
        occurs = generator.random(60) < probabilities
        weights = generator.integers(1, 5, 60)
        repeated = np.repeat(probabilities, weights), np.repeat(occurs, weights).astype(int)
        assert fit_weighted_threshold(Labeled(probabilities, occurs, weights.astype(float), 1)) == fit_threshold(*repeated)
    assert fit_weighted_threshold(Labeled(np.array([0.2]), np.array([False]), np.ones(1), 0)) == 0.5


def test_thresholds_of_laboratories_are_shrunk_by_their_number_of_bouts():
    assert pool_threshold(0.9, 0.3, 0) == pytest.approx(0.3)
    assert 0.3 < pool_threshold(0.9, 0.3, 5) < pool_threshold(0.9, 0.3, 50) < 0.9
    high = Labeled(np.array([0.6, 0.7, 0.9]), np.array([False, False, True]), np.ones(3), 1000)
    low = Labeled(np.array([0.05, 0.3, 0.35]), np.array([False, True, True]), np.ones(3), 1000)
    shared, by_lab = pooled_thresholds({"run": {"strict": high, "lenient": low}})
    assert by_lab["lenient"]["run"] < 0.35
    assert by_lab["strict"]["run"] > 0.6
    assert THRESHOLDS.min() <= shared["run"] <= THRESHOLDS.max()


def test_recordings_of_a_laboratory_are_in_different_folds_and_examples_of_one_are_together():
    empty = np.zeros((0, 1), dtype=np.float32)
    rows = {
        f"{lab}{video}|{pair}": Rows(empty, empty.astype(np.int16), np.zeros((1, 2), dtype=np.int64), lab, f"{lab}{video}")
        for lab in "abc"
        for video in range(3 if lab == "a" else 1)
        for pair in range(2)
    }
    folds = condition_folds(rows)
    assert {folds["a0|0"], folds["a1|0"], folds["a2|0"]} == {0, 1, 2}
    assert all(folds[f"{name}|0"] == folds[f"{name}|1"] for name in ("a0", "a1", "a2", "b0", "c0"))
    assert folds["b0|0"] != folds["c0|0"]


@pytest.mark.slow
def test_the_command_line_adapts_a_saved_model(fitted, mixed, tmp_path, monkeypatch):
    fitted.save(tmp_path / "many")
    new = mixed.select(recordings=[r.id for r in mixed if r.metadata["lab"] == "CRIM13"])
    monkeypatch.setattr("ethobench.datasets.load_dataset", lambda name, **options: new)
    arguments = ["train", "new_lab", "--adapt", "--out", str(tmp_path / "new")]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    assert "--init" in refused.output
    done = CliRunner().invoke(app, [*arguments, "--init", str(tmp_path / "many")])
    assert done.exit_code == 0, done.output
    assert "zero-shot" in done.output
    assert "CRIM13" in load_model(tmp_path / "new").condition_parts
