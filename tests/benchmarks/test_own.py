"""Your own data as a benchmark: who annotated what, and folds that keep individuals together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ethobench import Annotation, load_dataset
from ethobench.benchmarks import own
from ethobench.core.errors import EthobenchError, NotFoundError, ReadWarning
from ethobench.datasets.synthetic import ANNOTATORS
from ethobench.runs import Job

POSE = {"individuals": 3, "seconds": 20.0}


@pytest.fixture(scope="module")
def pose():
    return load_dataset("synthetic/pose", **POSE)


@pytest.mark.parametrize("annotator", ["consensus", "all"])
def test_everybody_together_can_be_learnt_from(annotator, monkeypatch):
    data = load_dataset("synthetic/pose", **POSE, annotators=ANNOTATORS)
    monkeypatch.setattr(own, "load_dataset", lambda name: data)
    with pytest.raises(EthobenchError, match="several annotators"):
        next(own.plans("synthetic/pose", ["chance"]))
    jobs = next(next(own.plans("synthetic/pose", ["chance"], annotator=annotator)))
    assert all(isinstance(job, Job) and job.annotator == annotator for job in jobs)


def test_recordings_without_annotations_are_left_out_and_told(pose):
    first, *others = pose
    some = replace(pose, recordings=(first.copy(annotations={}), *others))
    with pytest.warns(ReadWarning, match=f"1 recordings without annotations to learn from are left out: {first.id}"):
        kept = own.annotated(some)
    assert [r.id for r in kept] == [r.id for r in others]
    assert kept.version == pose.version


def test_nothing_to_learn_from_is_refused(pose):
    bare = replace(pose, recordings=tuple(r.copy(annotations={}) for r in pose))
    with pytest.raises(NotFoundError, match=r"no recording of .* is annotated"):
        own.annotated(bare)
    with pytest.raises(NotFoundError, match="is annotated by 'nobody'; annotators are"):
        own.annotated(pose, "nobody")


def test_folds_that_split_an_individual_are_refused(pose):
    two = [pose.recordings[0], pose.recordings[1].copy(individual=pose.recordings[0].individual), pose.recordings[2]]
    mixed = replace(pose, recordings=tuple(two), folds={r.id: k for k, r in enumerate(two)})
    with pytest.raises(EthobenchError, match=r"the folds split individual .*--split recording"):
        own.with_folds(mixed)
    assert len(set(own.with_folds(mixed, by="recording").folds.values())) == 3
    partly = replace(pose, folds={pose.recordings[0].id: 0, pose.recordings[1].id: 1})
    with pytest.raises(EthobenchError, match="some have none"):
        own.with_folds(partly)


def test_a_recording_in_which_nothing_happened_is_learnt_from(pose):
    first, *others = pose
    nothing = Annotation.from_bouts([], [], [], pose.ethogram, first.rate, first.n_frames)
    some = replace(pose, recordings=(first.copy(annotations={"truth": nothing}), *others))
    assert len(own.annotated(some)) == len(own.annotated(some, "truth")) == 3
