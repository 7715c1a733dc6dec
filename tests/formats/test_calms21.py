from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ethobench import Annotation, Ethogram, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, NotFoundError
from ethobench.formats import calms21, detect, formats, json_arrays, read_recordings, write_recordings
from ethobench.formats.calms21 import KEYPOINTS

CALMS21 = formats["calms21"]
VOCAB = {"attack": 0, "investigation": 1, "mount": 2, "other": 3}
ONE = "task1/train/mouse001_task1_annotator1"
TWO = "task1/train/mouse002_task1_annotator1"


def record(n_frames: int = 5, seed: int = 0, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    created = {
        "keypoints": rng.random((n_frames, 2, 2, 7)).tolist(),
        "scores": rng.random((n_frames, 2, 7)).tolist(),
        "annotations": (np.arange(n_frames) % 4).tolist(),
        "metadata": {"annotator-id": 0, "vocab": VOCAB},
        **changes,
    }
    return {name: value for name, value in created.items() if value is not None}


def put(path: Path, content: Any, **layout: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, **layout), encoding="utf-8")
    return path


def only(path: Path, format: str | None = None, **options: Any) -> Recording:
    (result,) = read_recordings(path, format, **options, warn=False)
    return result


# --------------------------------------------------------------------- reading


def test_a_sequence(tmp_path: Path) -> None:
    source = record(features=np.arange(160.0).reshape(5, 32).tolist())
    path = put(tmp_path / "calms21_task1_train.json", {"annotator-id_0": {ONE: source}})
    assert detect(path).name == "calms21"
    result = only(path)
    assert (result.id, result.individual, result.rate, result.n_frames) == (ONE, "mouse001", 30, 5)
    assert result.subjects == result.signals.individuals == ("resident", "intruder")
    assert (result.signals.keypoints, result.signals.rate) == (KEYPOINTS, 30)
    assert result.signals.positions[3, 1, 4].tolist() == [source["keypoints"][3][1][0][4], source["keypoints"][3][1][1][4]]
    assert result.signals.confidence.tolist() == source["scores"]
    assert result.features.values[2].tolist() == source["features"][2]
    assert (result.features.channels[0], result.features.rate) == ("feature0", 30)
    annotation = result.annotation("annotator-id_0")
    assert annotation.ethogram == Ethogram(["attack", "investigation", "mount", "other"], "other")
    assert annotation.to_codes().tolist() == source["annotations"]
    assert result.metadata == {"annotator-id": 0, "task": "task1", "split": "train", "group": "annotator-id_0"}
    assert result.notes == ()


def test_entries_are_sequences(tmp_path: Path) -> None:
    path = put(tmp_path / "x.json", {"annotator-id_0": {ONE: record(4), TWO: record(6, 1)}})
    assert CALMS21.entries(path) == [ONE, TWO]
    assert only(path, entry=TWO).n_frames == 6
    with pytest.raises(NotFoundError, match="mouse002"):
        read_recordings(path, entry="mouse002", warn=False)


def test_groups_are_annotators(tmp_path: Path) -> None:
    a, b = "task2/annotator1/train/mouse001", "task2/annotator2/train/mouse001"
    result = read_recordings(put(tmp_path / "x.json", {"annotator-id_1": {a: record()}, "annotator-id_2": {b: record(seed=1)}}), warn=False)
    assert [(r.id, [*r.annotations]) for r in result] == [(a, ["annotator-id_1"]), (b, ["annotator-id_2"])]


def test_task_3_groups_are_behaviors(tmp_path: Path) -> None:
    vocab = {"other": 0, "approach": 1}
    sequence = record(annotations=[0, 0, 1, 1, 0], metadata={"annotator-id": 1, "vocab": vocab})
    result = only(put(tmp_path / "x.json", {"approach": {"task3/train/mouse005_approach": sequence}}))
    annotation = result.annotation("approach")
    assert annotation.ethogram == Ethogram(["other", "approach"], "other")
    assert annotation.spans("approach").start.tolist() == [2]
    assert result.metadata["task"] == "task3"


def test_one_sequence_in_several_groups_is_one_recording(tmp_path: Path) -> None:
    groups = {name: {ONE: record(annotations=[i] * 5)} for i, name in enumerate(("groom", "approach"))}
    result = only(put(tmp_path / "x.json", groups))
    assert result.id == ONE
    assert {name: a.to_codes().tolist() for name, a in result.annotations.items()} == {"groom": [0] * 5, "approach": [1] * 5}


def test_sequences_that_only_share_their_name_stay_apart(tmp_path: Path) -> None:
    path = put(tmp_path / "x.json", {"groom": {ONE: record()}, "approach": {ONE: record(seed=1)}})
    assert CALMS21.entries(path) == [f"groom/{ONE}", f"approach/{ONE}"]
    assert only(path, entry=f"approach/{ONE}").signals.positions[0, 0, 0, 0] == record(seed=1)["keypoints"][0][0][0][0]
    assert {r.individual for r in read_recordings(path, warn=False)} == {"mouse001"}


def test_unlabeled_sequences(tmp_path: Path) -> None:
    path = put(tmp_path / "x.json", {"unlabeled": {"unlabeled_videos/seq7": record(annotations=None, metadata=None)}})
    result = only(path)
    assert (result.annotations, result.individual, result.n_frames) == ({}, "unlabeled_videos/seq7", 5)


def test_features_alone(tmp_path: Path) -> None:
    path = put(tmp_path / "x.json", {"annotator-id_0": {ONE: {"features": np.zeros((4, 60)).tolist()}}})
    assert detect(path).name == "calms21"
    result = only(path)
    assert (result.n_frames, result.signals, len(result.features.channels)) == (4, None, 60)


def test_other_numbers_of_mice_and_points(tmp_path: Path) -> None:
    result = only(put(tmp_path / "x.json", {"g": {"s": {"keypoints": np.zeros((3, 3, 2, 5)).tolist()}}}))
    assert result.signals.individuals == ("mouse0", "mouse1", "mouse2")
    assert result.signals.keypoints[4] == "keypoint4"
    assert np.isnan(result.signals.confidence).all()


def test_codes_need_not_begin_at_zero(tmp_path: Path) -> None:
    sequence = record(annotations=[7, 7, 3, 3, 7], metadata={"vocab": {"other": 7, "attack": 3}})
    annotation = only(put(tmp_path / "x.json", {"g": {ONE: sequence}})).annotation()
    assert annotation.ethogram.names == ("attack", "other")
    assert annotation.to_codes().tolist() == [1, 1, 0, 0, 1]


def test_frames_without_label_are_unobserved(tmp_path: Path) -> None:
    text = json.dumps({"g": {ONE: record()}}).replace("[0, 1, 2, 3, 0]", "[0, NaN, null, 3, 0]")
    with pytest.warns(UserWarning, match="2 frames have no label; read as unobserved"):
        (result,) = read_recordings(put(tmp_path / "x.json", text))
    assert result.annotation().to_codes().tolist() == [0, -1, -1, 3, 0]


def test_labels_without_a_vocab_are_numbered(tmp_path: Path) -> None:
    result = only(put(tmp_path / "x.json", {"g": {ONE: record(metadata={})}}))
    assert result.annotation().ethogram.names == ("behavior0", "behavior1", "behavior2", "behavior3")
    assert "no vocab" in str(result.notes[0])


def test_the_requested_rate_is_used(tmp_path: Path) -> None:
    result = only(put(tmp_path / "x.json", {"g": {ONE: record(features=np.zeros((5, 2)).tolist())}}), rate=25)
    assert result.rate == result.signals.rate == result.features.rate == result.annotation().rate == 25
    assert result.annotation().to_codes().tolist() == [0, 1, 2, 3, 0]


@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}])
def test_any_spacing(layout: dict[str, Any], tmp_path: Path) -> None:
    source = {"annotator-id_0": {ONE: record(), TWO: record(3, 1)}}
    path = put(tmp_path / "x.json", source, **layout)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert detect(path).name == "calms21"
    for result, sequence in zip(read_recordings(path, warn=False), source["annotator-id_0"].values(), strict=True):
        assert result.signals.positions.transpose(0, 1, 3, 2).tolist() == sequence["keypoints"]
        assert result.annotation().to_codes().tolist() == sequence["annotations"]


def test_fields_in_any_order_and_unknown_fields(tmp_path: Path) -> None:
    odd = {"notes": ['a "]}{ \\ string', [1, {"x": [2]}]], "speed": [[1, 2], [3]], "fps": 30, "none": None}
    sequence = {**odd, **dict(reversed(record(metadata={"vocab": VOCAB, "list": [1, [2.5, "x"], {}], "yes": True}).items()))}
    result = only(put(tmp_path / "x.json", {"g": {ONE: sequence}}), "calms21")
    assert result.signals.confidence.tolist() == sequence["scores"]
    assert [str(n) for n in result.notes] == [f"sequence '{ONE}': ignored unknown fields: notes, speed, fps, none"]
    assert (result.metadata["list"], result.metadata["yes"]) == ([1, [2.5, "x"], {}], True)


@given(
    values=npst.arrays(
        float, st.tuples(st.integers(0, 5), st.integers(1, 3)), elements=st.floats(allow_nan=True, allow_infinity=True, width=64)
    ),
    indent=st.sampled_from([None, 1]),
    chunk=st.sampled_from([1, 7, 40, 1 << 20]),
)
def test_numbers_are_read_exactly_in_pieces_of_any_size(
    values: np.ndarray, indent: int | None, chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("calms") / "x.json"
    full = values.tolist() if len(values) else []
    put(path, {"g": {"s": {"features": full, "annotations": list(range(len(values)))}}}, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_arrays, "CHUNK", chunk)
        arrays = calms21.parse_json(path)
    assert np.array_equal(arrays["features"], values.reshape(-1), equal_nan=True)
    assert arrays["annotations"].tolist() == list(range(len(values)))


# ----------------------------------------------------------------------- cache


def test_a_file_is_parsed_once_and_then_memory_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))
    path = put(tmp_path / "x.json", {"g": {ONE: record()}})
    first = only(path).signals.positions
    monkeypatch.setattr(calms21, "parse_json", lambda _: pytest.fail("parsed again"))
    again = only(path).signals.positions
    assert np.array_equal(first, again)
    base: Any = again
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_parsing_takes_no_object_for_each_number(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    rows = json.dumps(np.random.default_rng(0).random((2000, 2, 2, 7)).tolist())
    path.write_text(f'{{"g": {{"s": {{"keypoints": {rows}}}, "t": {{"keypoints": {rows}}}}}}}', encoding="utf-8")
    calms21.parse_json(path)
    tracemalloc.start()
    calms21.parse_json(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * path.stat().st_size


# ---------------------------------------------------------------------- damage


def test_truncated_json_is_refused_with_its_location_wherever_it_is_cut(tmp_path: Path) -> None:
    full = json.dumps({"annotator-id_0": {ONE: record(2, extra=[[1], "x"])}})
    for n in range(1, len(full), 7):
        path = put(tmp_path / f"{n}.json", full[:n])
        with pytest.raises(FormatError, match=rf"{n}\.json, byte \d+.*not valid CalMS21 JSON.*truncated") as caught:
            read_recordings(path, "calms21", warn=False)
        assert "\n" not in str(caught.value)


def test_labels_a_little_longer_than_the_poses_are_cut(tmp_path):
    for longer, path in ((1, tmp_path / "a.json"), (9, tmp_path / "b.json")):
        labels = [0] * (200 + longer)
        record = {"annotations": labels, "features": [[1.0]] * 200, "metadata": {"vocab": {"attack": 0, "other": 1}}}
        path.write_text(json.dumps({"g": {"s": record}}), encoding="utf-8")
    (recording,) = read_recordings(tmp_path / "a.json", warn=False)
    assert recording.annotation().n_frames == recording.n_frames == 200
    assert "labels end 1 frames after the signals; cropped" in str(recording.notes[0])
    with pytest.raises(FormatError, match="labels for 209 frames, but signals for 200"):
        read_recordings(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"g": {"s": {"annotations": [1, 2, x]}}}', r"byte 29, sequence 's', annotations: .*not a number"),
        ('{"g": {"s": {"annotations": [1, , 2]}}}', r"byte 29.*missing number|byte 29.*not a number"),
        ('{"g": {"s": {"annotations": [1 2]}}}', r"byte 28, .*invalid array"),
        ('{"g": {"s": {"annotations": [0, 1 2]}}}', r"byte 29, .*not a number"),
        ('{"g": {"s": {"features": [[1, 2], [3]]}}}', r"byte 26.*rows of different lengths"),
        ('{"g": {"s": {"features": [[1, 2], [3, 4, 5], [6]]}}}', r"rows of different lengths"),
        ('{"g": {"s": {"features": [[1, 2], 3]}}}', r"differ|damaged"),
        ('{"g": {"s": {"features": [1, 2]}}}', r"expected 2 axes in features, got shape \(2,\)"),
        ('{"g": {"s": {"features": "none"}}}', r"expected an array of numbers"),
        ('{"g": {"s": {"annotations": [1]} "t": {}}}', r"expected \}"),
        ('{"g": {"s": {"annotations": [1]}}} more', r"expected the end of the file"),
        ('{"g": {"s": 5}}', r"expected \{"),
        ('{"g": {s: 5}}', r"expected a name in quotes"),
        ('{"g": {"s": {"annotations": [1]}, "s": {"annotations": [2]}}}', r"duplicate sequence 's' in group 'g'"),
        ('{"g": {"s": {"metadata": ' + "[" * 100 + "]" * 100 + "}}}", r"nested too deeply"),
        (
            '{"g": {"s": {"annotations": [1, 2], "features": [[1], [2], [3]]}}}',
            r"sequence 's': the fields differ in length: 2 frames of annotations, 3",
        ),
        (
            '{"g": {"s": {"annotations": [1, 9], "metadata": {"vocab": {"a": 1}}}}}',
            r"sequence 's', frame 1: label 9 is not in the vocab \(a\)",
        ),
        (
            '{"g": {"s": {"annotations": [1], "metadata": {"vocab": {"a": 1, "b": 1}}}}}',
            r"duplicate code in the vocab",
        ),
        ('{"g": {"s": {"metadata": {}}}}', r"no frames"),
        ('{"g": {}}', r"no sequences"),
        ("{}", r"no sequences"),
        ("[1]", r"byte 0: .*expected \{"),
    ],
)
def test_damage_gets_one_clear_line(text: str, message: str, tmp_path: Path) -> None:
    path = put(tmp_path / "x.json", text)
    with pytest.raises(FormatError, match=message) as caught:
        read_recordings(path, "calms21", warn=False)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_invalid_sequence_does_not_prevent_reading_the_others(tmp_path: Path) -> None:
    path = put(tmp_path / "x.json", {"g": {ONE: record(scores=np.zeros((4, 2, 7)).tolist()), TWO: record()}})
    assert only(path, entry=TWO).n_frames == 5
    with pytest.raises(FormatError, match=f"sequence '{ONE}'"):
        read_recordings(path, warn=False)


def test_keypoints_of_another_shape(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"keypoints of shape \(2, 2, 7, 3\)"):
        read_recordings(put(tmp_path / "x.json", {"g": {"s": {"keypoints": np.zeros((2, 2, 7, 3)).tolist()}}}), warn=False)


def test_empty_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="empty"):
        read_recordings(put(tmp_path / "x.json", ""), warn=False)
    with pytest.raises(FormatError, match="empty"):
        read_recordings(put(tmp_path / "x.json", ""), "calms21", warn=False)


@pytest.mark.parametrize("content", [{"segments": []}, {"a": {"b": {"c": 1}}}, [{"keypoints": 1}]])
def test_other_json_is_not_detected(content: Any, tmp_path: Path) -> None:
    from ethobench.formats.text import Head

    path = put(tmp_path / "x.json", content)
    assert CALMS21.sniff(path, Head(path)) == 0


# ------------------------------------------------------------------------- NPY


def as_arrays(source: dict[str, Any]) -> dict[str, Any]:
    return {name: np.array(value) if name in calms21.FIELDS else value for name, value in source.items()}


def test_npy_reads_like_json(tmp_path: Path) -> None:
    source = {"annotator-id_0": {ONE: record(features=np.ones((5, 32)).tolist()), TWO: record(3, 1)}}
    npy = tmp_path / "x.npy"
    np.save(npy, {group: {name: as_arrays(r) for name, r in sequence.items()} for group, sequence in source.items()}, allow_pickle=True)
    assert detect(npy).name == "calms21"
    for a, b in zip(read_recordings(npy, warn=False), read_recordings(put(tmp_path / "x.json", source), warn=False), strict=True):
        assert (a.id, a.individual, a.metadata, a.subjects) == (b.id, b.individual, b.metadata, b.subjects)
        assert a.annotation() == b.annotation()
        assert np.array_equal(a.signals.positions, b.signals.positions)
        assert np.array_equal(a.signals.confidence, b.signals.confidence)
        assert (a.features is None) == (b.features is None)


def test_npy_with_lists_and_numpy_scalars(tmp_path: Path) -> None:
    sequence = record(metadata={"annotator-id": np.int64(0), "vocab": {k: np.int32(v) for k, v in VOCAB.items()}})
    np.save(tmp_path / "x.npy", {"g": {ONE: sequence}}, allow_pickle=True)
    assert only(tmp_path / "x.npy").annotation().to_codes().tolist() == sequence["annotations"]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo ran >ran",)


def test_a_pickle_hidden_in_an_npy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "x.npy", {"g": {ONE: {"keypoints": Evil()}}}, allow_pickle=True)
    with pytest.raises(FormatError, match=r"x\.npy: refused: its pickle contains (posix|nt)\.system"):
        read_recordings(tmp_path / "x.npy", warn=False)
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.arange(3), "expected a dictionary, as in the NPY form of CalMS21"),
        (np.array([{}, {}], dtype=object), "expected a dictionary, as in the NPY form of CalMS21"),
        ([1, 2], "expected a dictionary, as in the NPY form of CalMS21"),
        ({"g": 5}, "expected a dictionary in group 'g', got int"),
        ({"g": {"s": {"keypoints": [[1, 2], [3]]}}}, "sequence 's': keypoints is not an array of numbers"),
        ({"g": {"s": {"keypoints": np.array(["a"])}}}, "sequence 's': keypoints is not an array of numbers"),
        ({}, "no sequences"),
    ],
)
def test_other_npy_content_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", content, allow_pickle=True)
    with pytest.raises(FormatError, match=message):
        read_recordings(tmp_path / "x.npy", "calms21", warn=False)


def test_truncated_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", {"g": {ONE: as_arrays(record())}}, allow_pickle=True)
    full = (tmp_path / "x.npy").read_bytes()
    for n in (10, 60, 140, len(full) // 2, len(full) - 1):
        (tmp_path / "cut.npy").write_bytes(full[:n])
        with pytest.raises(FormatError, match=r"damaged|invalid NPY header|refused"):
            read_recordings(tmp_path / "cut.npy", "calms21", warn=False)


# --------------------------------------------------------------------- writing


def created(n_frames: int = 6, rate: float = 30) -> Recording:
    rng = np.random.default_rng(3)
    poses = Poses(rng.random((n_frames, 2, 7, 2)), rng.random((n_frames, 2, 7)), ("resident", "intruder"), KEYPOINTS, rate)
    poses.positions[1, 0, 0] = np.nan
    ethogram = Ethogram(["attack", "mount", "other"], "other")
    label = Annotation.from_bouts([1, 4], [3, 5], ["attack", "mount"], ethogram, rate, n_frames)
    features = Signals(rng.random((n_frames, 4)), ("feature0", "feature1", "feature2", "feature3"), rate)
    return Recording("task1/test/mouse071_x", rate=rate, signals=poses, features=features, annotations={"annotator-id_0": label})


def test_round_trip(tmp_path: Path) -> None:
    there = created()
    path = tmp_path / "x.calms21.json"
    assert write_recordings([there], path) == []
    assert detect(path).name == "calms21"
    back = only(path)
    assert (back.id, back.individual, back.metadata["split"]) == (there.id, "mouse071", "test")
    assert np.array_equal(back.signals.positions, there.signals.positions, equal_nan=True)
    assert np.array_equal(back.signals.confidence, there.signals.confidence)
    assert np.array_equal(back.features.values, there.features.values)
    assert back.annotation().ethogram == there.annotation().ethogram
    assert np.array_equal(back.annotation().to_frames(), there.annotation().to_frames())
    again = tmp_path / "again.calms21.json"
    write_recordings([back], again)
    assert only(again).annotation() == back.annotation()


def test_what_python_reads_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "x.calms21.json"
    write_recordings([created(), Recording("plain", signals=created().signals)], path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert {group: [*names] for group, names in content.items()} == {
        "annotator-id_0": ["task1/test/mouse071_x"],
        "unlabeled": ["plain"],
    }
    first = content["annotator-id_0"]["task1/test/mouse071_x"]
    assert np.array(first["keypoints"]).shape == (6, 2, 2, 7)
    assert first["annotations"] == [2, 0, 0, 2, 1, 2]
    assert first["metadata"]["vocab"] == {"attack": 0, "mount": 1, "other": 2}


def test_several_annotators_come_back_together(tmp_path: Path) -> None:
    one = created()
    label = one.annotation()
    both = one.copy(annotations={"a": label, "b": label.shift(1).with_observed(label.observed)})
    write_recordings([both], tmp_path / "x.calms21.json")
    back = only(tmp_path / "x.calms21.json")
    assert [*back.annotations] == ["a", "b"]
    assert np.array_equal(back.annotations["b"].to_frames(), both.annotations["b"].to_frames())


def test_without_a_background_one_is_added(tmp_path: Path) -> None:
    label = Annotation.from_bouts([1], [3], ["attack"], ["attack"], 30, 4)
    write_recordings([Recording("r", annotations={"a": label})], tmp_path / "x.calms21.json")
    back = only(tmp_path / "x.calms21.json").annotation()
    assert back.ethogram == Ethogram(["attack", "other"], "other")
    assert back.to_codes().tolist() == [1, 0, 0, 1]


def test_losses_are_reported_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.calms21.json"
    notes = write_recordings([created(rate=25)], path)
    assert [str(n) for n in notes] == ["CalMS21 files do not store the rate and are read at 30 Hz; read this one with rate=25"]
    assert only(path, rate=25).annotation().rate == 25
    overlapping = Annotation.from_bouts([0, 1], [3, 4], ["a", "b"], ["a", "b"], 30, 5)
    with pytest.raises(MismatchError, match="one behavior at a time"):
        write_recordings([Recording("r", annotations={"x": overlapping})], tmp_path / "y.calms21.json")
    hidden = Annotation.from_frames([0, -1, 0], ["a"], 30, unobserved=-1)
    notes = write_recordings([Recording("r", annotations={"x": hidden})], tmp_path / "z.calms21.json")
    assert "which frames are unobserved" in str(notes[0])
    with pytest.raises(EthobenchError, match="duplicate recording 'r'"):
        write_recordings([Recording("r", annotations={"x": hidden})] * 2, tmp_path / "w.calms21.json")
    with pytest.raises(MismatchError, match="have 3 and 6 frames; crop or extend them first"):
        write_recordings([created().copy(annotations={"x": hidden})], tmp_path / "t.calms21.json")
    space = Poses(np.zeros((2, 1, 1, 3)), np.zeros((2, 1, 1)), ("a",), ("b",), 30)
    with pytest.raises(EthobenchError, match="3-D"):
        write_recordings([Recording("r", signals=space)], tmp_path / "v.calms21.json")
    with pytest.raises(EthobenchError, match=r"\.json"):
        write_recordings([created()], tmp_path / "u.npy", "calms21")
