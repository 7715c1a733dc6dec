from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ethobench import Annotation, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.formats import detect, formats, read_recordings, write_recordings

DLC = formats["deeplabcut"]
SINGLE = """scorer,DLC_net,DLC_net,DLC_net,DLC_net,DLC_net,DLC_net
bodyparts,nose,nose,nose,tail,tail,tail
coords,x,y,likelihood,x,y,likelihood
0,1.5,2.5,0.9,10,20,1
1,,,,11,21,0.5
2,3,4,0.8,12,22,0.25
"""
MULTI = """scorer,DLC_net,DLC_net,DLC_net,DLC_net,DLC_net,DLC_net,DLC_net,DLC_net,DLC_net
individuals,black,black,black,white,white,white,single,single,single
bodyparts,nose,nose,nose,nose,nose,nose,corner,corner,corner
coords,x,y,likelihood,x,y,likelihood,x,y,likelihood
0,1,2,0.9,3,4,0.8,5,6,0.7
1,7,8,0.6,,,,9,10,0.5
"""


def put(path: Path, text: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def only(path: Path, **options: Any) -> Recording:
    (result,) = read_recordings(path, **options, warn=False)
    return result


# ------------------------------------------------------------------------ CSV


def test_single_animal(tmp_path: Path) -> None:
    result = only(put(tmp_path / "video1.csv", SINGLE))
    poses = result.signals
    assert (result.id, result.rate, result.n_frames, result.subjects, result.notes) == ("video1", None, 3, (), ())
    assert (poses.individuals, poses.keypoints, poses.rate) == (("individual",), ("nose", "tail"), None)
    assert poses.positions[0, 0].tolist() == [[1.5, 2.5], [10, 20]]
    assert np.isnan(poses.positions[1, 0, 0]).all()
    assert np.isnan(poses.confidence[1, 0, 0])
    assert poses.confidence[2, 0].tolist() == [0.8, 0.25]
    assert result.metadata["scorer"] == "DLC_net"


def test_the_rate_is_stated_by_the_caller(tmp_path: Path) -> None:
    result = only(put(tmp_path / "v.csv", SINGLE), rate=25)
    assert result.rate == result.signals.rate == 25


def test_several_animals_and_unassigned_points(tmp_path: Path) -> None:
    result = only(put(tmp_path / "v.csv", MULTI))
    poses = result.signals
    assert poses.individuals == ("black", "white", "single")
    assert result.subjects == ("black", "white")
    assert poses.positions[:, 1, 0].tolist()[0] == [3, 4]
    assert poses.positions[1, 2, 1].tolist() == [9, 10]
    assert np.isnan(poses.positions[:, 2, 0]).all(), "the corner has no nose"
    assert np.isnan(poses.positions[:, :2, 1]).all(), "no mouse has a corner"


def test_animals_distinguished_by_prefix_remain_one_individual(tmp_path: Path) -> None:
    poses = only(put(tmp_path / "v.csv", SINGLE.replace("nose", "B_nose").replace("tail", "W_nose"))).signals
    assert (poses.individuals, poses.keypoints) == (("individual",), ("B_nose", "W_nose"))


def test_first_frames_without_points_are_kept(tmp_path: Path) -> None:
    head = "\n".join(SINGLE.split("\n")[:3])
    rows = "".join(f"{i},,,,,,\n" for i in range(3)) + "3,1,2,0.5,3,4,0.5\n4,,,,,,\n"
    poses = only(put(tmp_path / "v.csv", f"{head}\n{rows}")).signals
    assert len(poses) == 5
    assert np.isnan(poses.positions[[0, 1, 2, 4]]).all()


def test_zeros_with_likelihood_zero_are_missing_and_counted(tmp_path: Path) -> None:
    path = put(tmp_path / "v.csv", SINGLE.replace("1.5,2.5,0.9", "0.0,0.0,0.0").replace("12,22,0.25", "0.0,0.0,0.25"))
    with pytest.warns(UserWarning, match="1 of 6 points are at 0, 0 with likelihood 0; read as missing"):
        (result,) = read_recordings(path)
    assert np.isnan(result.signals.positions[0, 0, 0]).all()
    assert result.signals.confidence[0, 0, 0] == 0
    assert result.signals.positions[2, 0, 1].tolist() == [0, 0], "a likelihood above 0 makes it a point"


def test_rows_are_placed_by_their_frame_number(tmp_path: Path) -> None:
    result = only(put(tmp_path / "v.csv", SINGLE.replace("\n1,", "\n4,").replace("\n2,", "\n3,")))
    assert result.n_frames == 5
    assert result.signals.positions[3, 0, 0].tolist() == [3, 4]
    assert result.signals.positions[4, 0, 1].tolist() == [11, 21]
    assert [str(note) for note in result.notes] == ["2 of 5 frames have no row; their points are missing"]


def test_a_late_start_is_noted(tmp_path: Path) -> None:
    result = only(put(tmp_path / "v.csv", SINGLE.replace("\n0,", "\n3,")))
    assert result.n_frames == 4
    assert "including the first 1" in str(result.notes[0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\n2,3", "\n1,3", r"row 6: duplicate frame 1"),
        ("\n2,3", "\n1.5,3", r"row 6: '1.5' is not a frame number"),
        ("\n2,3", "\n-2,3", r"row 6: '-2' is not a frame number"),
        ("\n2,3", "\n999999999999,3", r"refused: its data would take"),
        ("11,21", "11,abc", r"row 5, column 6: 'abc' is not a number"),
        ("2,3,4,0.8,12,22,0.25\n", "2,3,4,0.8", r"row 6: 4 cells, but the header has 7; the file may be truncated"),
        ("coords,x,y", "coords,x,x", r"header: duplicate column individual nose x"),
        ("coords,x,y", "coords,x,w", r"header: keypoint 'nose' has no y"),
        ("coords,x,y,likelihood,x,y,likelihood\n", "", r"header: no header row coords"),
        ("\n0,1.5,2.5,0.9,10,20,1\n1,,,,11,21,0.5\n2,3,4,0.8,12,22,0.25\n", "\n", r"no rows of poses"),
    ],
)
def test_damage_gets_one_clear_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in SINGLE
    path = put(tmp_path / "v.csv", SINGLE.replace(old, new))
    with pytest.raises(FormatError, match=message) as caught:
        read_recordings(path, "deeplabcut", warn=False)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_empty_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="empty"):
        read_recordings(put(tmp_path / "v.csv", ""), warn=False)
    with pytest.raises(FormatError, match="empty"):
        read_recordings(put(tmp_path / "v.csv", ""), "deeplabcut", warn=False)


def test_binary_file_under_the_name_of_a_table(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="binary"):
        read_recordings(put(tmp_path / "v.csv", b"scorer,a\0\n"), "deeplabcut", warn=False)


def test_other_dialects(tmp_path: Path) -> None:
    expected = only(put(tmp_path / "plain.csv", SINGLE)).signals
    variants = {
        "bom": "\ufeff" + SINGLE,
        "crlf": SINGLE.replace("\n", "\r\n"),
        "semicolon": SINGLE.replace(",", ";"),
        "comma": SINGLE.replace(",", ";").replace(".", ","),
        "tab": SINGLE.replace(",", "\t"),
        "nan": SINGLE.replace("1,,,,", "1,NaN,nan,NA,"),
        "blank end": SINGLE + "\n\n",
        "index name": SINGLE.replace("\n0,", "\nN.,,,,,,\n0,"),
        "quotes": SINGLE.replace("scorer", '"scorer"').replace("nose", '"nose"'),
    }
    for name, text in variants.items():
        path = put(tmp_path / f"{name}.csv", text)
        assert detect(path).name == "deeplabcut", name
        poses = only(path).signals
        assert poses.keypoints == expected.keypoints, name
        assert np.array_equal(poses.positions, expected.positions, equal_nan=True), name
        assert np.array_equal(poses.confidence, expected.confidence, equal_nan=True), name


def test_utf16(tmp_path: Path) -> None:
    poses = only(put(tmp_path / "v.csv", SINGLE.replace("nose", "Schnäuzchen"), "utf-16")).signals
    assert poses.keypoints == ("Schnäuzchen", "tail")
    assert poses.positions[2, 0, 0].tolist() == [3, 4]


def test_rows_named_by_images_are_counted_in_order(tmp_path: Path) -> None:
    text = SINGLE.replace("\n0,", "\nlabeled-data/v/img007.png,").replace("\n1,,,,11,21,0.5", "\nlabeled-data\\v\\img009.png,,,,,,")
    result = only(put(tmp_path / "v.csv", text.replace("\n2,", "\nlabeled-data/v/img100.png,")))
    assert result.n_frames == 3, "an image without labels is a frame"
    assert result.metadata["images"][0] == "labeled-data/v/img007.png"
    assert "the index holds images" in str(result.notes[0])


def test_images_named_in_three_columns_without_likelihood(tmp_path: Path) -> None:
    text = "scorer,,,Ann,Ann\nbodyparts,,,nose,nose\ncoords,,,x,y\nlabeled-data,v,img1.png,1,2\nlabeled-data,v,img2.png,3,4\n"
    result = only(put(tmp_path / "CollectedData_Ann.csv", text))
    assert result.metadata["images"] == ["labeled-data/v/img1.png", "labeled-data/v/img2.png"]
    assert result.signals.positions[:, 0, 0].tolist() == [[1, 2], [3, 4]]
    assert np.isnan(result.signals.confidence).all()


def test_space_has_three_axes(tmp_path: Path) -> None:
    poses = only(put(tmp_path / "v.csv", "scorer,DLC_3D,DLC_3D,DLC_3D\nbodyparts,nose,nose,nose\ncoords,x,y,z\n0,1,2,3\n")).signals
    assert poses.positions[0, 0, 0].tolist() == [1, 2, 3]


def test_unknown_coordinates_are_noted(tmp_path: Path) -> None:
    text = "scorer,D,D,D\nbodyparts,nose,nose,nose\ncoords,x,y,variance\n0,1,2,3\n"
    assert [str(n) for n in only(put(tmp_path / "v.csv", text)).notes] == ["ignored unknown coordinates: variance"]


@pytest.mark.slow
def test_a_first_row_longer_than_the_head_is_recognized(tmp_path: Path) -> None:
    n = 4000
    parts = [f"keypoint_with_a_long_name_{i}" for i in range(n) for _ in "xyl"]
    rows = [
        ["scorer", *["DLC_resnet50_x"] * 3 * n],
        ["bodyparts", *parts],
        ["coords", *["x", "y", "likelihood"] * n],
        ["0", *["1"] * 3 * n],
    ]
    path = put(tmp_path / "v.csv", "\n".join(map(",".join, rows)) + "\n")
    assert detect(path).name == "deeplabcut"
    assert only(path).signals.positions.shape == (1, 1, n, 2)


def test_many_individuals_with_different_keypoints_cannot_exhaust_memory(tmp_path: Path) -> None:
    n = 5000
    names = [f"i{i}" for i in range(n) for _ in "xy"]
    rows = [["scorer", *["D"] * 2 * n], ["individuals", *names], ["bodyparts", *names], ["coords", *["x", "y"] * n], ["0", *["1"] * 2 * n]]
    with pytest.raises(FormatError, match="refused: its data would take"):
        only(put(tmp_path / "v.csv", "\n".join(map(",".join, rows)) + "\n"))


def test_entries(tmp_path: Path) -> None:
    path = put(tmp_path / "video1.csv", SINGLE)
    assert DLC.entries(path) == ["video1"]
    assert only(path, entry="video1").id == "video1"
    with pytest.raises(NotFoundError, match="video1"):
        only(path, entry="other")


# ------------------------------------------------------------------------- H5


def put_fixed(path: Path, labels: list[tuple[str, ...]], values: np.ndarray, key: str = "df_with_missing", index: Any = None) -> Path:
    """Write what ``DataFrame.to_hdf(format="fixed")`` writes."""
    with h5py.File(path, "a") as file:
        file.attrs["PYTABLES_FORMAT_VERSION"] = np.bytes_("2.1")
        group = file.create_group(key)
        group.attrs.update(pandas_type=np.bytes_("frame"), nblocks=1, axis1_variety=np.bytes_("regular"))
        group.attrs.update({"block0_items_variety": np.bytes_("multi"), "block0_items_nlevels": len(labels[0])})
        for level in range(len(labels[0])):
            names = sorted({label[level] for label in labels})
            group[f"block0_items_level{level}"] = np.array(names, dtype="S")
            group[f"block0_items_label{level}"] = np.array([names.index(label[level]) for label in labels], dtype="i1")
        group["axis1"] = np.arange(len(values)) if index is None else index
        group["block0_values"] = values
    return path


def put_table(path: Path, kind: bytes, values: np.ndarray) -> Path:
    """Write what ``DataFrame.to_hdf(format="table")`` writes."""
    with h5py.File(path, "w") as file:
        file.attrs["PYTABLES_FORMAT_VERSION"] = np.bytes_("2.1")
        group = file.create_group("df_with_missing")
        group.attrs["pandas_type"] = np.bytes_("frame_table")
        records = np.zeros(len(values), dtype=[("index", "i8"), ("values_block_0", "f8", (values.shape[1],))])
        records["index"], records["values_block_0"] = np.arange(len(values)), values
        table = group.create_dataset("table", data=records)
        table.attrs["values_block_0_kind"] = np.bytes_(kind)
    return path


LABELS = [("DLC_net", keypoint, coord) for keypoint in ("nose", "tail") for coord in ("x", "y", "likelihood")]
VALUES = np.arange(18.0).reshape(3, 6)


def expect_values(poses: Poses) -> None:
    assert poses.keypoints == ("nose", "tail")
    assert poses.positions[2, 0].tolist() == [[12, 13], [15, 16]]
    assert poses.confidence[1, 0].tolist() == [8, 11]


def test_fixed_layout(tmp_path: Path) -> None:
    path = put_fixed(tmp_path / "v.h5", LABELS, VALUES)
    assert detect(path).name == "deeplabcut"
    expect_values(only(path).signals)


def test_table_layout(tmp_path: Path) -> None:
    path = put_table(tmp_path / "v.h5", pickle.dumps(LABELS, protocol=0), VALUES)
    assert detect(path).name == "deeplabcut"
    result = only(path, rate=30)
    expect_values(result.signals)
    assert (result.id, result.rate, result.metadata["scorer"]) == ("v", 30, "DLC_net")


def test_several_animals_in_h5(tmp_path: Path) -> None:
    labels = [("D", who, "nose", coord) for who in ("a", "b") for coord in ("x", "y", "likelihood")]
    poses = only(put_fixed(tmp_path / "v.h5", labels, VALUES, key="tracks")).signals
    assert poses.individuals == ("a", "b")
    assert poses.positions[1, 1, 0].tolist() == [9, 10]


def test_several_tables_are_entries(tmp_path: Path) -> None:
    path = put_fixed(put_fixed(tmp_path / "v.h5", LABELS, VALUES, "one"), LABELS, VALUES + 1, "two")
    assert DLC.entries(path) == ["one", "two"]
    assert [r.id for r in read_recordings(path, "deeplabcut", warn=False)] == ["v/one", "v/two"]
    assert only(path, format="deeplabcut", entry="two").signals.positions[0, 0, 0].tolist() == [1, 2]


def test_h5_rows_named_by_images(tmp_path: Path) -> None:
    result = only(put_fixed(tmp_path / "v.h5", LABELS, VALUES, index=np.array([b"a/1.png", b"a/2.png", b"a/3.png"])))
    assert result.metadata["images"] == ["a/1.png", "a/2.png", "a/3.png"]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo ran >ran",)


def test_a_pickle_hidden_among_the_names_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = put_table(tmp_path / "v.h5", pickle.dumps([Evil()], protocol=0), VALUES)
    with pytest.raises(FormatError, match=r"refused: its pickle contains (posix|nt)\.system"):
        only(path)
    assert not Path("ran").exists()


def test_mismatched_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="5 names for 6 columns"):
        only(put_table(tmp_path / "a.h5", pickle.dumps(LABELS[:5], protocol=0), VALUES))
    with pytest.raises(FormatError, match="must consist of scorer"):
        only(put_table(tmp_path / "b.h5", pickle.dumps([label[:2] for label in LABELS], protocol=0), VALUES))
    with pytest.raises(FormatError, match="invalid column names"):
        only(put_table(tmp_path / "c.h5", pickle.dumps({"a": 1}, protocol=0), VALUES))


def test_links_to_other_files_are_not_followed(tmp_path: Path) -> None:
    other = put_fixed(tmp_path / "secret.h5", LABELS, VALUES)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.attrs["PYTABLES_FORMAT_VERSION"] = np.bytes_("2.1")
        file["df_with_missing"] = h5py.ExternalLink(str(other), "/df_with_missing")
    with pytest.raises(FormatError, match="link to another file"):
        only(tmp_path / "v.h5")


def test_numbers_in_other_files_are_not_read(tmp_path: Path) -> None:
    secret = put(tmp_path / "secret.bin", VALUES.tobytes())
    path = put_fixed(tmp_path / "v.h5", LABELS, VALUES)
    with h5py.File(path, "a") as file:
        group = file["df_with_missing"]
        del group["block0_values"]
        group.create_dataset("block0_values", (3, 6), "f8", external=[(str(secret), 0, VALUES.nbytes)])
    with pytest.raises(FormatError, match="data in another file"):
        only(path)
    virtual = h5py.VirtualLayout((3, 6), "f8")
    virtual[:] = h5py.VirtualSource(str(put_fixed(tmp_path / "s.h5", LABELS, VALUES)), "df_with_missing/block0_values", (3, 6))
    with h5py.File(path, "a") as file:
        del file["df_with_missing/block0_values"]
        file["df_with_missing"].create_virtual_dataset("block0_values", virtual)
    with pytest.raises(FormatError, match="data in another file"):
        only(path)


def test_a_size_that_the_file_cannot_store_is_refused(tmp_path: Path) -> None:
    path = put_fixed(tmp_path / "v.h5", LABELS, VALUES)
    with h5py.File(path, "a") as file:
        del file["df_with_missing/block0_values"]
        file["df_with_missing"].create_dataset("block0_values", (10**10, 6), "f8", chunks=(1000, 6))
    with pytest.raises(FormatError, match="refused: its data would take 480,000,000,000 bytes"):
        only(path)


def test_truncated_and_empty_h5(tmp_path: Path) -> None:
    full = put_fixed(tmp_path / "v.h5", LABELS, VALUES).read_bytes()
    with pytest.raises(FormatError, match="truncated"):
        read_recordings(put(tmp_path / "cut.h5", full[: len(full) // 2]), "deeplabcut", warn=False)
    with h5py.File(tmp_path / "none.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(FormatError, match="no table of poses; the file contains: x"):
        read_recordings(tmp_path / "none.h5", "deeplabcut", warn=False)


# --------------------------------------------------------------------- writing


numbers = st.floats(-1e6, 1e6, allow_nan=False) | st.just(float("nan"))


@given(
    positions=npst.arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 2), st.integers(1, 3), st.integers(2, 3)), elements=numbers),
    several=st.booleans(),
)
def test_round_trip(positions: np.ndarray, several: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("out") / "v.csv"
    n_frames, n, k, _ = positions.shape
    confidence = np.linspace(0.1, 1, n_frames * n * k).reshape(n_frames, n, k)
    individuals = ("individual",) if n == 1 and not several else tuple(f"mouse{i}" for i in range(n))
    poses = Poses(positions, confidence, individuals, tuple(f"k{i}" for i in range(k)))
    assert write_recordings([Recording("v", signals=poses)], path, "deeplabcut") == []
    assert detect(path).name == "deeplabcut"
    back = only(path).signals
    assert (back.individuals, back.keypoints) == (poses.individuals, poses.keypoints)
    assert np.array_equal(back.positions, positions, equal_nan=True)
    assert np.array_equal(back.confidence, confidence)


def test_what_a_table_cannot_store_is_reported(tmp_path: Path) -> None:
    poses = Poses(np.zeros((2, 1, 1, 2)), np.zeros((2, 1, 1)), ("individual",), ("nose",), 25.0)
    label = Annotation.from_bouts([0, 0], [1, 2], ["a", "b"], ["a", "b"], 25, 2)
    features = Signals(np.zeros((2, 1)), ("f",), 25.0)
    recording = Recording("v", signals=poses, features=features, annotations={"me": label}, metadata={"scorer": "heatmap_tracker"})
    notes = write_recordings([recording], tmp_path / "v.csv", "deeplabcut")
    assert [str(note) for note in notes] == [
        "DeepLabCut files do not store annotations; they are lost",
        "DeepLabCut files do not store features; they are lost",
        "DeepLabCut files do not store the frame rate; read them with rate=25",
        "DeepLabCut files do not store points at 0, 0 with confidence 0; 2 will be read as missing",
    ]
    assert detect(tmp_path / "v.csv").name == "deeplabcut", "not what the scorer would make of it"


def test_only_poses_can_be_written_and_only_as_csv(tmp_path: Path) -> None:
    with pytest.raises(EthobenchError, match="'v' has none"):
        write_recordings([Recording("v")], tmp_path / "v.csv", "deeplabcut")
    poses = Poses(np.zeros((2, 1, 1, 2)), np.ones((2, 1, 1)), ("individual",), ("nose",))
    with pytest.raises(EthobenchError, match=r"\.csv"):
        write_recordings([Recording("v", signals=poses)], tmp_path / "v.h5", "deeplabcut")
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------- real


def test_real_samples(data: Path) -> None:
    shapes = {
        "openfield_dlc_inference_example.csv": (2330, 1, 4, 2),
        "testDLC_csv_table_madlc.csv": (97, 2, 14, 2),
        "testDLC_csv_table_multi.csv": (98, 1, 28, 2),
        "testDLC_h5_table_madlc.h5": (100, 2, 14, 2),
    }
    for name, shape in shapes.items():
        path = data / "formats" / "dlc" / name
        assert detect(path).name == "deeplabcut", name
        assert only(path).signals.positions.shape == shape, name


def test_real_csv_and_h5_agree(data: Path) -> None:
    csv = only(data / "formats" / "dlc" / "testDLC_csv_table_madlc.csv")
    h5 = only(data / "formats" / "dlc" / "testDLC_h5_table_madlc.h5")
    assert (csv.signals.individuals, csv.signals.keypoints) == (h5.signals.individuals, h5.signals.keypoints)
    assert np.array_equal(csv.signals.positions, h5.signals.positions[:97], equal_nan=True)
    assert "679 of 2716 points" in str(csv.notes[0])
    assert "700 of 2800 points" in str(h5.notes[0])


def test_real_rats_keep_their_empty_first_frames(data: Path) -> None:
    result = only(data / "rats" / "poses" / "01.csv", rate=30)
    assert result.n_frames == len(result.signals) == 14_734
    assert np.isnan(result.signals.positions[0]).all()
    assert result.signals.positions[131, 0, 1].tolist() == [860.1, 620.7]
    assert result.signals.confidence[131, 0, 0] == 1.0
    assert result.notes == ()
