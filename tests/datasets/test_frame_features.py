"""Per-frame features of a study: files, rates, missing stretches, and studies without signals."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench as eb
from ethobench.core import Poses, Signals
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.datasets.discover import discover_study
from ethobench.datasets.frame_features import FORMAT, FORMAT_VERSION, MAX_WIDTH, align_samples, open_features, read_features, reduce_width
from ethobench.datasets.study_check import check_study
from ethobench.formats import formats

VALUES = np.arange(60, dtype=np.float32).reshape(20, 3)


def write(path: Path, values: np.ndarray = VALUES) -> Path:
    """Write the same features in the format of the suffix."""
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".npz":
        np.savez(path, features=values, rate=10.0)
    elif path.suffix == ".h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file.create_dataset("a/embedding", data=values).attrs["rate"] = 10.0
    else:
        table = pd.DataFrame(values, columns=["a", "b", "c"]).assign(time=np.arange(len(values)) / 10)
        table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5", ".parquet", ".csv"])
def test_every_format_has_the_same_values(tmp_path: Path, suffix: str) -> None:
    table = read_features(write(tmp_path / f"m1{suffix}"))
    assert np.array_equal(table.values, VALUES)
    assert table.names == (("a", "b", "c") if suffix in (".parquet", ".csv") else ("0", "1", "2"))
    assert table.samples_per_second == (None if suffix == ".npy" else pytest.approx(10))


def test_npy_of_one_row_per_frame_is_memory_mapped(tmp_path: Path) -> None:
    features, notes = open_features([write(tmp_path / "m1.npy")], 30.0, 20)
    assert isinstance(features.values, np.memmap)
    assert features.channels == ("features/0", "features/1", "features/2")
    assert not notes


def test_sidecar_states_names_and_stride(tmp_path: Path) -> None:
    path = write(tmp_path / "m1.npy")
    (tmp_path / "m1.npy.json").write_text(json.dumps({"names": ["x", "y", "z"], "stride": 2}))
    features, _ = open_features([path], 30.0, 40)
    assert features.channels == ("features/x", "features/y", "features/z")
    assert np.allclose(features.values[:39, 0], np.arange(39) * 1.5)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_row_numbers_of_pandas_are_not_a_feature(tmp_path: Path, suffix: str) -> None:
    """A counter would tell a model the time in the recording."""
    path, table = tmp_path / f"m1{suffix}", pd.DataFrame(VALUES, columns=["a", "b", "c"])
    write_table = {".csv": table.to_csv, ".parquet": table.set_index(np.arange(20)).to_parquet}[suffix]
    write_table(path)
    assert read_features(path).names == ("a", "b", "c")
    assert np.array_equal(read_features(path).values, VALUES)
    rest = table.drop(index=[4, 5])
    rest.to_csv(path) if suffix == ".csv" else rest.to_parquet(path)
    with pytest.raises(FormatError, match="its row numbers have gaps; name their column 'frame', if they are frames, or remove it"):
        read_features(path)
    rest.assign(frame=rest.index).to_csv(path)
    if suffix == ".csv":
        assert read_features(path).names == ("a", "b", "c")
    rest.rename_axis("frame").reset_index().to_csv(tmp_path / "named.csv", index=False)
    assert read_features(tmp_path / "named.csv").frames.tolist() == rest.index.tolist()  # type: ignore[union-attr]


def test_several_files_are_joined(tmp_path: Path) -> None:
    paths = [write(tmp_path / "m1.npy"), write(tmp_path / "m1.npz")]
    features, _ = open_features(paths, 10.0, 20)
    assert features.channels == ("features/1/0", "features/1/1", "features/1/2", "features/2/0", "features/2/1", "features/2/2")
    assert np.array_equal(features.values, np.hstack([VALUES, VALUES]))


def test_wide_arrays_are_projected_and_keep_distances(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(40, 768)).astype(np.float32)
    features, _ = open_features([write(tmp_path / "m1.npy", wide)], 30.0, 40)
    assert features.values.shape == (40, MAX_WIDTH)
    assert len({*features.channels}) == MAX_WIDTH
    assert np.array_equal(features.values, reduce_width(wide))
    before = np.linalg.norm(wide[:, None] - wide[None], axis=2)[np.triu_indices(40, 1)]
    after = np.linalg.norm(features.values[:, None] - features.values[None], axis=2)[np.triu_indices(40, 1)]
    ratio = after / before
    assert ratio.std() / ratio.mean() < 0.15
    other, _ = open_features([write(tmp_path / "m2.npy", wide[:, :700])], 30.0, 40)
    assert other.channels != features.channels


@given(st.integers(1, 8), st.integers(2, 30), st.integers(0, 100))
def test_slower_samples_are_interpolated(stride: int, n_samples: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(n_samples, 2))
    n_frames = n_samples * stride
    aligned = align_samples(values, np.arange(n_samples) * float(stride), n_frames)
    expected = np.stack([np.interp(np.arange(n_frames), np.arange(n_samples) * stride, column) for column in values.T], axis=1)
    assert np.allclose(aligned, expected, atol=1e-5)


@given(st.integers(2, 9), st.integers(1, 20))
def test_faster_samples_are_averaged(factor: int, n_frames: int) -> None:
    values = np.random.default_rng(factor).normal(size=(factor * n_frames, 2))
    values[0, 0] = np.nan
    aligned = align_samples(values, np.arange(len(values)) / factor, n_frames)
    assert np.allclose(aligned, np.nanmean(values.reshape(n_frames, factor, 2), axis=1), atol=1e-5)


def test_missing_rows_and_gaps_between_times_stay_missing() -> None:
    values = np.ones((20, 1))
    values[5] = np.nan
    positions = np.r_[np.arange(10), np.arange(30, 40)].astype(float)
    aligned = align_samples(values, positions, 50)[:, 0]
    assert np.flatnonzero(~np.isnan(aligned)).tolist() == [*range(5), *range(6, 10), *range(30, 40)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((4, 2, 2)), "one row per sample"),
        (np.array(["a", "b"]), "one row per sample"),
        (np.array([{}], dtype=object), "not a valid NPY file"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, values: np.ndarray, message: str) -> None:
    np.save(tmp_path / "m1.npy", values, allow_pickle=True)
    with pytest.raises(FormatError, match=message):
        read_features(tmp_path / "m1.npy")


def test_unclear_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=VALUES, b=VALUES)
    with pytest.raises(FormatError, match=r"cannot tell which array has the features; name it 'features'.* a, b"):
        read_features(tmp_path / "two.npz")
    (tmp_path / "cut.npy").write_bytes(write(tmp_path / "m1.npy").read_bytes()[:90])
    with pytest.raises(FormatError, match="not a valid NPY file"):
        read_features(tmp_path / "cut.npy")
    with pytest.raises(FormatError, match="20 rows for 1,000 frames, and no rate is stated: fill in column 'features_rate'"):
        open_features([tmp_path / "m1.npy"], 30.0, 1000)
    with pytest.raises(FormatError, match="are they of another one"):
        open_features([tmp_path / "m1.npy"], 30.0, 100, features_rate=1.0)
    with pytest.raises(EthobenchError, match="the frame rate is unknown"):
        open_features([tmp_path / "m1.npy"], None, None)


def make_study(folder: Path, columns: str, cells: str) -> Path:
    """Write a study of two recordings with poses, features and annotations."""
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=10)
    lines = [f"recording,individual,rate,annotations,annotator{columns}"]
    for recording in data:
        name = recording.id
        eb.write_annotation(recording.annotation(), folder / f"{name}_labels.csv")
        formats["deeplabcut"].write([recording.copy(annotations={})], folder / f"{name}_poses.csv")
        np.save(folder / f"{name}.npy", np.arange(recording.n_frames * 2, dtype=np.float32).reshape(-1, 2))
        np.save(folder / f"{name}_slow.npy", np.arange(50.0)[:, None])
        lines.append(f"{name},{name},30,{name}_labels.csv,ann{cells.format(name=name)}")
    (folder / "recordings.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_study_of_features_alone(tmp_path: Path) -> None:
    data = eb.load_dataset(make_study(tmp_path, ",features", ",{name}.npy"))
    recording = data["animal01"]
    assert isinstance(recording.signals, Signals)
    assert recording.signals.is_features
    assert recording.features is None
    assert recording.n_frames == 300
    version = data.version
    np.save(tmp_path / "animal01.npy", np.zeros((300, 2)))
    assert eb.load_dataset(tmp_path).version != version
    check = check_study(tmp_path)
    assert check.is_valid
    assert check.to_dict()["with_features"] == 2


def test_study_with_poses_and_features(tmp_path: Path) -> None:
    data = eb.load_dataset(make_study(tmp_path, ",signals,features", ",{name}_poses.csv,{name}.npy"))
    recording = data["animal02"]
    assert isinstance(recording.signals, Poses)
    assert recording.features is not None
    assert recording.features.values.shape == (300, 2)
    assert isinstance(recording.features.values, np.memmap)


def test_the_last_of_slower_rows_covers_as_many_frames_as_the_others(tmp_path: Path) -> None:
    for name in ("frame", "time"):
        positions = 3 * np.arange(100) / (1 if name == "frame" else 30)
        pd.DataFrame({name: positions, "a": np.arange(100.0)}).drop(range(20, 40)).to_csv(tmp_path / f"{name}.csv", index=False)
        features, _ = open_features([tmp_path / f"{name}.csv"], 30.0, None)
        assert len(features) == 300
        values = features.values[:, 0]
        assert np.isnan(values[66:114]).all()
        assert np.isfinite(values[:58]).all()
        assert np.isfinite(values[120:]).all()


def test_slower_features_without_a_rate_are_refused_with_the_column_that_states_it(tmp_path: Path) -> None:
    make_study(tmp_path, ",features", ",{name}_slow.npy")
    [message, _] = [str(problem) for problem in check_study(tmp_path).problems]
    assert "labels for 300 frames, but signals for 50" in message
    assert message.endswith("features with fewer rows than frames need column 'features_rate' (rows per second)")


def test_study_with_several_files_and_a_rate(tmp_path: Path) -> None:
    folder = make_study(tmp_path, ",features,features_rate", ",{name}_slow.npy,5")
    recording = eb.load_dataset(folder)["animal01"]
    assert recording.n_frames == 300
    assert np.allclose(recording.signals.values[:295, 0], np.arange(295) / 6, atol=1e-4)  # type: ignore[union-attr]


def test_problems_of_features_are_listed_by_row(tmp_path: Path) -> None:
    make_study(tmp_path, ",features,features_rate", ",{name}_slo.npy,x")
    messages = [str(problem) for problem in check_study(tmp_path).problems]
    assert "row 2: features: animal01_slo.npy does not exist; did you mean animal01_slow.npy?" in messages
    assert "row 2: features_rate must be a positive number, got 'x'" in messages


def test_column_names_of_others_are_recognized(tmp_path: Path) -> None:
    make_study(tmp_path, ",embeddings", ",{name}.npy")
    assert "did you mean 'features'?" in str(check_study(tmp_path).problems[0])


def test_a_draft_lists_features_of_videos(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="making a video needs av")
    from tests.video_files import write_video

    labels = eb.Annotation.from_frames([0] * 10 + [1] * 10, ["rest", "run"], rate=10)
    for name in ("m1", "m2"):
        write_video(tmp_path / f"{name}.webm", 20, 10)
        eb.write_annotation(labels, tmp_path / "labels" / f"{name}.csv")
        (tmp_path / "features").mkdir(exist_ok=True)
        np.save(tmp_path / "features" / f"{name}.npy", np.zeros((20, 2)))
        facts = {"format": FORMAT, "format_version": FORMAT_VERSION, "video": f"{name}.webm", "rate": 10.0, "names": ["a", "b"]}
        (tmp_path / "features" / f"{name}.npy.json").write_text(json.dumps(facts))
    manifest = tmp_path / "features" / "recordings.csv"
    manifest.write_text("recording,individual,rate,video,features,annotations\nm1,m1,10,../m1.webm,m1.npy,../labels/m1.csv\n")
    draft = discover_study(tmp_path)
    assert [row.get("features", "") for row in draft.rows] == ["", ""]
    assert [str(each.path) for each in draft.unused] == ["features"]  # a study of its own, to which annotations were added
    manifest.write_text("recording,individual,rate,video,features\nm1,m1,10,../m1.webm,m1.npy\nm2,m2,10,../m2.webm,m2.npy\n")
    draft = discover_study(tmp_path)
    assert [row["features"] for row in draft.rows] == ["features/m1.npy", "features/m2.npy"]
    assert not draft.unused
    draft.write()
    recording = eb.load_dataset(tmp_path)["m2"]
    assert isinstance(recording.signals, Signals)
    assert recording.signals.channels == ("features/a", "features/b")
    newer = {"format": FORMAT, "format_version": 2}
    (tmp_path / "features" / "m1.npy.json").write_text(json.dumps(newer))
    with pytest.raises(FormatError, match="format version 2 is not supported"):
        read_features(tmp_path / "features" / "m1.npy")
