"""Synthetic data: reproducible, varied, and what they claim to be."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import load_dataset
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets.synthetic import ANNOTATORS, Annotator, make_dataset


@pytest.mark.parametrize("kind", ["pose", "tag"])
def test_the_same_seed_gives_the_same_data_and_another_seed_other_data(kind):
    first, again, other = (make_dataset(kind, individuals=2, seconds=30, seed=s) for s in (3, 3, 4))
    for a, b, c in zip(first, again, other, strict=True):
        assert a.annotation() == b.annotation()
        assert a.annotation() != c.annotation()
        values_a, values_b = (r.signals.positions if kind == "pose" else r.signals.values for r in (a, b))
        assert np.array_equal(values_a, values_b, equal_nan=True)
    assert first.version == again.version != other.version


def test_pose_layout():
    data = load_dataset("synthetic/pose", individuals=3, recordings=2, seconds=40, missing=0.05)
    assert (len(data), len(data.individuals), data.n_frames) == (6, 3, 6 * 1200)
    recording = data["animal02_1"]
    poses = recording.signals
    assert poses.positions.shape == (1200, 2, 7, 2)
    assert 0.005 < poses.missing < 0.1
    inside = poses.positions[~np.isnan(poses.positions).any(axis=-1)]
    assert (inside > -150).all()
    assert (inside < [1024 + 150, 570 + 150]).all()
    assert np.nanmax(poses.confidence) <= 1
    assert np.nanmin(poses.confidence) >= 0
    assert data.ethogram.background_name == "other"


def test_poses_depend_on_the_behavior():
    data = make_dataset("pose", individuals=4, seconds=300, missing=0)
    distance = {name: [] for name in data.ethogram.names}
    for recording in data:
        middle = recording.signals.positions.mean(axis=2)
        apart = np.linalg.norm(middle[:, 0] - middle[:, 1], axis=1)
        frames = recording.annotation().to_frames()
        for code, name in enumerate(data.ethogram.names):
            distance[name].append(apart[frames[:, code]])
    means = {name: float(np.concatenate(parts).mean()) for name, parts in distance.items()}
    assert means["mount"] < means["investigation"] < means["other"]
    assert means["attack"] < means["other"]


def test_tag_signals_depend_on_the_behavior():
    data = make_dataset("tag", individuals=4, seconds=300)
    spread = {name: [] for name in data.ethogram.names}
    for recording in data:
        assert recording.signals.channels[:3] == ("AccX", "AccY", "AccZ")
        norm = np.linalg.norm(recording.signals.values[:, :3], axis=1)
        for code, name in enumerate(data.ethogram.names):
            spread[name].append(norm[recording.annotation().to_frames()[:, code]])
    variances = {name: float(np.concatenate(parts).std()) for name, parts in spread.items()}
    assert variances["rest"] < variances["walk"] < variances["run"]


def test_individuals_differ_more_than_their_own_recordings():
    data = make_dataset("tag", individuals=6, recordings=3, seconds=200, spread=0.6)
    means = np.array([[r.signals.values[:, :3].mean(axis=0) for r in data if r.individual == who] for who in data.individuals])
    within = means.std(axis=1).mean()
    between = means.mean(axis=1).std(axis=0).mean()
    assert between > within


def test_annotators_are_late_imprecise_and_miss_bouts():
    sharp, slow = Annotator("sharp", 0, 0, 0), Annotator("slow", delay=0.5, jitter=0.0, missed=0.0)
    blind = Annotator("blind", delay=0, jitter=0, missed=1.0)
    data = make_dataset("pose", individuals=1, seconds=200, annotators=(sharp, slow, blind))
    annotations = data.recordings[0].annotations
    attack = data.ethogram.code("attack")
    assert (annotations["slow"].spans(attack).start - annotations["sharp"].spans(attack).start == 15).all()
    assert annotations["blind"].behavior.tolist() == [data.ethogram.background]
    truth = make_dataset("pose", individuals=1, seconds=200).recordings[0].annotation("truth")
    assert np.array_equal(annotations["sharp"].to_codes(), truth.to_codes())


def test_folds_keep_individuals_together_and_options_are_checked():
    data = make_dataset("tag", individuals=5, recordings=2, seconds=5, folds=2, annotators=ANNOTATORS)
    for who in data.individuals:
        assert len({data.folds[r.id] for r in data if r.individual == who}) == 1
    assert data.annotators == ("ann1", "ann2")
    with pytest.raises(EthobenchError, match="must be one of 'pose', 'tag'"):
        make_dataset("video")
    with pytest.raises(EthobenchError, match="`individuals` must be >= 1, got 0"):
        make_dataset("tag", individuals=0)
    with pytest.raises(NotFoundError, match="synthetic/pose"):
        load_dataset("synthetic/video")


def test_three_animals_with_subjects_and_targets():
    data = load_dataset("synthetic/trio", individuals=2, seconds=120)
    recording = data.recordings[0]
    truth, poses = recording.annotation(), recording.signals
    assert poses.individuals == ("ada", "bea", "cleo")
    middle = np.nanmean(poses.positions, axis=2)
    for start, stop, subject, target in zip(truth.start, truth.stop, truth.subject, truth.target, strict=True):
        if stop - start < 30:
            continue
        who, whom = (truth.subjects.index(truth.subjects[k]) for k in (subject, target))
        third = ({0, 1, 2} - {who, whom}).pop()
        late = slice((start + stop) // 2, stop)
        near, far = (np.nanmedian(np.linalg.norm(middle[late, who] - middle[late, other], axis=1)) for other in (whom, third))
        assert near < 120
        assert near < far + 120
    assert len({(s, t) for s, t in zip(truth.subject, truth.target, strict=True)}) > 2
    again = load_dataset("synthetic/trio", individuals=2, seconds=120).recordings[0]
    assert np.array_equal(again.signals.positions, poses.positions, equal_nan=True)
