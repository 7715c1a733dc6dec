"""Labels in files for the recordings of a study."""

from __future__ import annotations

import pytest

import ethobench as eb
from ethobench.datasets.label_files import labels_by_recording

ANNOTATION = eb.Annotation.from_bouts([0], [5], ["groom"], ["groom"], rate=10, n_frames=10)


def labeled(*names, annotators=("model",)):
    return [eb.Recording(name, annotations=dict.fromkeys(annotators, ANNOTATION)) for name in names]


STUDY = [eb.Recording(name) for name in ("m1", "m1_2", "m12")]


def test_equal_names_come_before_affixes():
    assert list(labels_by_recording(labeled("m1", "m1_2", "m12_model"), STUDY, "x")) == ["m1", "m1_2", "m12"]
    assert list(labels_by_recording(labeled("m1_2_model"), STUDY, "x")) == ["m1_2"]


def test_recordings_that_are_not_in_the_study_are_left_out():
    assert list(labels_by_recording(labeled("m1", "m7"), STUDY, "x")) == ["m1"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (labeled("m7"), "no file belongs to a recording of the study, such as 'm7'"),
        (labeled("m12_a", "m12_b"), "several files belong to recording 'm12'"),
        (labeled("m1", annotators=("a", "b")), "has several annotators"),
    ],
)
def test_ambiguous_labels_are_refused(labels, message):
    with pytest.raises(eb.EthobenchError, match=message):
        labels_by_recording(labels, STUDY, "predicted/")
