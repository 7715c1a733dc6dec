"""A study as a benchmark: annotators, and folds that do not split individuals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ethobench import Annotation, load_dataset
from ethobench.benchmarks import study
from ethobench.benchmarks.folds import select_annotated, with_folds
from ethobench.core.errors import EthobenchError, NotFoundError, ReadWarning
from ethobench.datasets.synthetic import ANNOTATORS
from ethobench.runs import Job

POSE = {"individuals": 3, "seconds": 20.0}


@pytest.fixture(scope="module")
def pose():
    return load_dataset("synthetic/pose", **POSE)


@pytest.mark.parametrize("annotator", ["consensus", "all"])
def test_all_annotators_can_be_combined(annotator, monkeypatch):
    data = load_dataset("synthetic/pose", **POSE, annotators=ANNOTATORS)
    monkeypatch.setattr(study, "load_dataset", lambda name: data)
    with pytest.raises(EthobenchError, match="several annotators"):
        study.study_plan("synthetic/pose", "chance")
    jobs = next(study.study_plan("synthetic/pose", "chance", annotator=annotator))
    assert all(isinstance(job, Job) and job.annotator == annotator for job in jobs)


def test_recordings_without_annotations_are_skipped_with_a_warning(pose):
    first, *others = pose
    changed = replace(pose, recordings=(first.copy(annotations={}), *others))
    with pytest.warns(ReadWarning, match=f"1 recordings without annotations are skipped: {first.id}"):
        kept = select_annotated(changed)
    assert [r.id for r in kept] == [r.id for r in others]
    assert kept.version == pose.version


def test_data_without_annotations_are_refused(pose):
    bare = replace(pose, recordings=tuple(r.copy(annotations={}) for r in pose))
    with pytest.raises(NotFoundError, match=r"no recording of .* is annotated"):
        select_annotated(bare)
    with pytest.raises(NotFoundError, match="is annotated by 'nobody'; annotators:"):
        select_annotated(pose, "nobody")


def test_folds_that_split_an_individual_are_refused(pose):
    two = [pose.recordings[0], pose.recordings[1].copy(individual=pose.recordings[0].individual), pose.recordings[2]]
    mixed = replace(pose, recordings=tuple(two), folds={r.id: k for k, r in enumerate(two)})
    with pytest.raises(EthobenchError, match=r"the folds split individual .*split='recording'"):
        with_folds(mixed)
    assert len(set(with_folds(mixed, split="recording").folds.values())) == 3
    partly = replace(pose, folds={pose.recordings[0].id: 0, pose.recordings[1].id: 1})
    with pytest.raises(EthobenchError, match="some have none"):
        with_folds(partly)


def test_a_recording_without_bouts_is_annotated(pose):
    first, *others = pose
    nothing = Annotation.from_bouts([], [], [], pose.ethogram, first.rate, first.n_frames)
    changed = replace(pose, recordings=(first.copy(annotations={"truth": nothing}), *others))
    assert len(select_annotated(changed)) == len(select_annotated(changed, "truth")) == 3
