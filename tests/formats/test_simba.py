"""SimBA CSV: poses, features, behaviors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ethobench.core import Annotation, Ethogram, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_recordings
from ethobench.formats.text import Head

PARTS = ",Nose_1_x,Nose_1_y,Nose_1_p,Tail_base_1_x,Tail_base_1_y,Tail_base_1_p,Nose_2_x,Nose_2_y,Nose_2_p"
TARGETS = (
    f"{PARTS},Feature_1,Zone_in_zone,Attack,Sniffing\n"
    "0,1,2,0.9,3,4,0.8,5,6,0.7,3.5,1,1,0\n1,1,2,0.9,3,4,0.8,5,6,0.7,3.6,0,1,1\n2,1,2,0.9,3,4,0.8,,,0.7,3.7,0,0,1\n"
)
RESULTS = (
    f"{PARTS},Movement,Probability_Attack,Probability_Sniffing,Attack,Sniffing\n"
    "0,1,2,1,3,4,1,5,6,1,3,0.9,0.1,1,0\n1,1,2,1,3,4,1,5,6,1,3,0.7,0.2,1,0\n2,1,2,1,3,4,1,5,6,1,3,0.2,0.6,0,1\n"
)


def put(folder: Path, text: str, name: str = "Together_1.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("change", [("\n", "\n"), ("\n", "\r\n"), (PARTS, "\ufeff" + PARTS)])
def test_targets_inserted(tmp_path: Path, change: tuple[str, str]) -> None:
    path = put(tmp_path, TARGETS.replace(*change))
    assert detect(path).name == "simba"
    with pytest.warns(ReadWarning, match=r"read as behaviors: Attack, Sniffing \(set them with behaviors=\)"):
        (recording,) = read_recordings(path, rate=25)
    a = recording.annotation()
    assert a.ethogram == Ethogram(["Attack", "Sniffing"])
    assert a.to_frames().astype(int).tolist() == [[1, 0], [1, 1], [0, 1]]
    assert (a.rate, a.confidence) == (25, None)


def test_poses_and_features(tmp_path: Path) -> None:
    (recording,) = read_recordings(put(tmp_path, TARGETS), rate=25, warn=False)
    poses, features = recording.signals, recording.features
    assert isinstance(poses, Poses)
    assert (poses.individuals, poses.keypoints) == (("animal_1", "animal_2"), ("Nose", "Tail_base"))
    assert poses.positions[0, 1, 0].tolist() == [5, 6]
    assert np.isnan(poses.positions[2, 1, 0]).all()
    assert np.isnan(poses.positions[:, 1, 1]).all()
    assert poses.confidence[0].tolist()[0] == [0.9, 0.8]
    assert isinstance(features, Signals)
    assert features.channels == ("Feature_1", "Zone_in_zone")
    assert features.channel("Feature_1").tolist() == [3.5, 3.6, 3.7]


def test_one_animal(tmp_path: Path) -> None:
    (recording,) = read_recordings(put(tmp_path, "frame,nose_x,nose_y,nose_p,rear\n0,1,2,1,1\n1,1,2,1,0\n"), rate=25, warn=False)
    assert isinstance(recording.signals, Poses)
    assert (recording.signals.individuals, recording.signals.keypoints) == (("animal",), ("nose",))
    assert recording.annotation().ethogram.names == ("rear",)


def test_machine_results(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, RESULTS), rate=30)
    assert (a.start.tolist(), a.stop.tolist(), a.behavior.tolist()) == ([0, 2], [2, 3], [0, 1])
    assert a.confidence is not None
    assert a.confidence.tolist() == pytest.approx([0.8, 0.6])


def test_decisions_next_to_probabilities(tmp_path: Path) -> None:
    text = f"{PARTS},Probability_Attack,Attack,Probability_Rear,Flag\n0,1,2,1,3,4,1,5,6,1,0.9,1,0.3,0\n"
    with pytest.warns(ReadWarning, match="Probability_Rear: no column 'Rear'"):
        a = read_annotation(put(tmp_path, text), rate=30)
    assert a.ethogram.names == ("Attack",)


def test_behaviors_can_be_specified(tmp_path: Path) -> None:
    path = put(tmp_path, TARGETS)
    assert read_annotation(path, rate=30, behaviors=["Sniffing"]).ethogram.names == ("Sniffing",)
    with pytest.raises(FormatError, match="no column Rear"):
        read_recordings(path, rate=30, behaviors="Attack,Rear", warn=False)
    with pytest.raises(FormatError, match=r"row 2: 3\.5 in column 'Feature_1'"):
        read_recordings(path, rate=30, behaviors="Feature_1", warn=False)


def test_poses_without_labels(tmp_path: Path) -> None:
    path = put(tmp_path, "\n".join(line.rsplit(",", 3)[0] for line in TARGETS.split("\n")))
    (recording,) = read_recordings(path, rate=30, warn=False)
    assert not recording.annotations
    assert recording.n_frames == 3
    assert "no columns of behaviors" in str(recording.notes)


def test_blank_label_is_unobserved_and_reported(tmp_path: Path) -> None:
    (recording,) = read_recordings(put(tmp_path, TARGETS.removesuffix("0,1\n") + "0\n"), rate=30, warn=False)
    assert "row 4: 1 frames have a missing label" in str(recording.notes[-1])
    a = recording.annotation()
    assert a.observed.of("Sniffing").stop.tolist() == [2]
    assert a.observed.of("Attack").stop.tolist() == [3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n1,2\n", "no body part"),
        (TARGETS.replace("Sniffing", "Attack"), "duplicate column 'Attack'"),
        (TARGETS.replace("0,1,1\n", "0,1,1,9,9\n"), "row 3: more cells than the 14 of the header"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as error:
        read_recordings(put(tmp_path, text), "simba", rate=30, warn=False)
    assert "\n" not in str(error.value)


def test_text_among_numbers(tmp_path: Path) -> None:
    (recording,) = read_recordings(put(tmp_path, TARGETS.replace("3.6", "oops")), rate=30, warn=False)
    with pytest.raises(FormatError, match="expected numbers in column 'Feature_1', got text"):
        _ = recording.features


@pytest.mark.parametrize("text", ["a,b,c\n1,0,1\n", ",a_x,a_y,b_p\n0,1,2,3\n", "x,y,p\n1,2,3\n"])
def test_does_not_detect_other_files(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    assert formats["simba"].sniff(path, Head(path)) == 0


def test_round_trip(tmp_path: Path) -> None:
    (result,) = read_recordings(put(tmp_path, TARGETS), rate=30, warn=False)
    notes = write_recordings([result], tmp_path / "again.csv", "simba")
    assert [str(n) for n in notes] == ["SimBA CSV does not store the frame rate; read it with rate=30"]
    (again,) = read_recordings(tmp_path / "again.csv", rate=30, warn=False)
    assert again.annotation() == result.annotation()
    assert isinstance(again.signals, Poses)
    assert isinstance(result.signals, Poses)
    assert again.signals.keypoints == result.signals.keypoints
    assert np.array_equal(again.signals.positions, result.signals.positions, equal_nan=True)
    assert isinstance(again.features, Signals)
    assert again.features.channels == ("Feature_1", "Zone_in_zone")


def test_what_cannot_be_written(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0], [1], ["x"], ["x"], 30, 3)
    with pytest.raises(EthobenchError, match="'r' has none; choose another format"):
        write_recordings([Recording("r", annotations={"me": a})], tmp_path / "x.csv", "simba")
    flat, deep = (Poses(np.zeros((4, 1, 1, d)), np.zeros((4, 1, 1)), ("m",), ("nose",)) for d in (2, 3))
    with pytest.raises(EthobenchError, match="4 frames of poses, but 3 frames of labels"):
        write_recordings([Recording("r", signals=flat, annotations={"me": a})], tmp_path / "x.csv", "simba")
    with pytest.raises(EthobenchError, match="3-D"):
        write_recordings([Recording("r", signals=deep, annotations={"me": a})], tmp_path / "x.csv", "simba")
    with pytest.raises(EthobenchError, match="'nose_x' is a behavior and also a column"):
        write_recordings(
            [Recording("r", signals=flat, annotations={"me": a.rename({"x": "nose_x"}).extend(4)})], tmp_path / "x.csv", "simba"
        )
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.data
def test_samples(data: Path) -> None:
    folder = data / "formats/simba"
    targets, results = folder / "targets_inserted_Together_1.csv", folder / "machine_results_Together_1.csv"
    assert detect(targets).name == detect(results).name == "simba"
    (recording,) = read_recordings(targets, rate=30, warn=False)
    a = recording.annotation()
    assert a.ethogram.names == ("Attack", "Sniffing")
    assert a.to_frames().sum(axis=0).tolist() == [587, 232]
    assert isinstance(recording.signals, Poses)
    assert recording.signals.positions.shape == (1738, 2, 8, 2)
    assert isinstance(recording.features, Signals)
    assert recording.features.channels == ("Feature_1", "Feature_2")
    (machine,) = read_recordings(results, rate=30, warn=False)
    b = machine.annotation()
    assert (b.ethogram.names, b.n_frames, len(b)) == (("Attack", "Sniffing"), 300, 4)
    assert b.confidence is not None
    assert ((b.confidence > 0) & (b.confidence <= 1)).all()
    assert isinstance(machine.features, Signals)
    assert machine.features.values.shape == (300, 517)


@pytest.mark.slow
@pytest.mark.data
def test_banos(data: Path, tmp_path: Path) -> None:
    paths = sorted(data.glob("banos/Recording_*/humanAnnotation_1.csv"))
    assert len(paths) == 10
    for i, path in enumerate(paths):
        a = read_annotation(path, "onehot", rate=30)
        poses = Poses(np.zeros((a.n_frames, 1, 1, 2)), np.ones((a.n_frames, 1, 1)), ("m",), ("nose",), 30)
        write_recordings([Recording("r", signals=poses, annotations={"me": a})], tmp_path / f"{i}.csv", "simba")
        assert read_recordings(tmp_path / f"{i}.csv", rate=30, warn=False)[0].annotation() == a
