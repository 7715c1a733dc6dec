"""The files that are mutated: small ones, made by the writers of all formats, and by hand for formats without a writer."""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ethobench as eb
from ethobench import Annotation, Ethogram, Poses, Recording
from ethobench.formats import formats, write_recordings

MODELS = "models"
ANSWERS = "answers"
REQUESTS = "requests"
N_FRAMES = 40
MODEL_PARAMS: dict[str, dict[str, int]] = {"chance": {}, "dt": {}, "rf": {"trees": 3}, "boost": {"rounds": 3}, "kmeans": {}, "hmm": {}}
KEYPOINTS = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")


@dataclass(frozen=True)
class Seed:
    """Something to mutate.

    Attributes
    ----------
    kind : str
        Name of the format, or `MODELS`.
    files : dict of str to bytes
        Contents by path; several files are a folder.
    """

    kind: str
    files: dict[str, bytes]


def make_corpus(kinds: list[str]) -> list[Seed]:
    """Return the seeds of the given kinds, always the same ones."""
    seeds = [seed for name in kinds if name in formats.names() for seed in _format_seeds(name)]
    return seeds + (_model_seeds() if MODELS in kinds else [])


def example() -> Recording:
    """Return a short recording of two mice with labels and poses."""
    codes = np.arange(N_FRAMES) // 5 % 4
    annotation = Annotation.from_frames(codes, Ethogram(["attack", "investigation", "mount", "other"], "other"), 30)
    positions = np.random.default_rng(1).uniform(10, 500, (N_FRAMES, 2, 7, 2)).round(1)
    poses = Poses(positions, np.full((N_FRAMES, 2, 7), 0.9), ("resident", "intruder"), KEYPOINTS, 30.0)
    return Recording("mouse001", annotations={"annotator": annotation}, signals=poses)


def _format_seeds(name: str) -> list[Seed]:
    seeds = []
    format = formats[name]
    if format.can_write:
        with tempfile.TemporaryDirectory() as folder:
            for suffix in format.suffixes:
                path = Path(folder) / f"seed{suffix}"
                try:
                    write_recordings([example()], path, name)
                except eb.EthobenchError:  # a suffix that is only read
                    continue
                seeds.append(Seed(name, {path.name: path.read_bytes()}))
    return seeds + [Seed(name, files) for files in _handmade(name)]


def _handmade(name: str) -> list[dict[str, bytes]]:
    """Return tiny files of the formats, or variants of them, that have no writer."""
    rows = range(6)
    if name == "anipose":
        header = "nose_x,nose_y,nose_z,nose_error,nose_ncams,nose_score,M_00,center_0,fnum"
        return [{"seed.csv": (header + "\n" + "".join(f"{i}.5,2.5,3.5,0.1,3,0.9,1.0,0.0,{i}\n" for i in rows)).encode()}]
    if name == "lightning_pose":
        header = "scorer,heatmap_tracker,heatmap_tracker,heatmap_tracker\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n"
        return [{"seed.csv": (header + "".join(f"{i},1.5,2.5,0.9\n" for i in rows)).encode()}]
    if name == "signals_csv":
        text = "time,AccX,AccY\n" + "".join(f"{i / 10},{i * 0.25},-1.5\n" for i in rows)
        return [{"seed.csv": text.encode()}, {"seed.parquet": _parquet()}]
    if name == "labeled_signals":
        times = [f"2024-05-01T12:00:{i:02d}" for i in rows]
        text = "timestamp,animal,ax,ay,az,label\n" + "".join(
            f"{t},a,{i * 0.25},-1.5,9.5,{'rest' if i % 2 else ''}\n" for i, t in enumerate(times)
        )
        bursts = "timestamp,tag,accelerations-raw,acceleration-axes,sampling-frequency,label\n"
        bursts += "".join(f"{t},7,1 2 3 4 5 6,XYZ,2,rest\n" for t in times)
        return [{"seed.csv": text.encode()}, {"bursts.csv": bursts.encode()}]
    if name == "matlab":
        return [{"hB_seed.mat": _matlab(compressed=True)}, {"seed.mat": _matlab(compressed=False)}, {"seed73.mat": _matlab_hdf5()}]
    if name == "bebe":
        metadata = (
            "clip_column_names: [AccX, AccY, individual_id, label]\nclip_ids: [a]\nclip_id_to_individual_id: {a: '1'}\n"
            "label_names: [unknown, rest, walk]\nsr: 10\nindividual_ids: ['1']\n"
        )
        clip = "".join(f"{i * 0.5},1.25,1,{i % 3}\n" for i in rows)
        return [{"dataset_metadata.yaml": metadata.encode(), "clip_data/a.csv": clip.encode()}]
    if name == "sleap":
        text = "track,frame_idx,instance.score,nose.x,nose.y,nose.score\n" + "".join(f"a,{i},0.9,1.5,2.5,0.8\n" for i in rows)
        return [{"seed.csv": text.encode()}, {"seed.analysis.h5": _sleap_h5()}]
    if name == "jabs":
        return [{"seed_pose_est_v3.h5": _jabs_h5()}]
    if name == "deeplabcut":
        return [{"seed.h5": _deeplabcut_h5()}]
    if name == "calms21":
        return [{"seed.npy": _calms21_npy()}]
    return []


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"time": np.arange(6) / 10, "AccX": np.arange(6) * 0.25}), file)
    return file.getvalue()


def _matlab(*, compressed: bool) -> bytes:
    from scipy.io import savemat

    rest = {"Bouts": np.array([[2.0, 4.0]]), "Count": 1, "Vector": np.array([[0, 1, 1, 1, 0, 0]])}
    scores = {"postprocessed": np.array([np.array([0.0, 1.0, np.nan]), np.ones(3)], dtype=object)}
    variables = {"hBehavior": {"FrameRate": 30.0, "VideoName": "a.avi", "rest": rest}, "allScores": scores, "behaviorName": "chase"}
    file = io.BytesIO()
    savemat(file, variables, do_compression=compressed)
    return file.getvalue()


def _matlab_hdf5() -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w", userblock_size=512) as h5:
        group = h5.create_group("hBehavior/rest")
        group.attrs["MATLAB_class"] = h5["hBehavior"].attrs["MATLAB_class"] = np.bytes_("struct")
        for name, values in (("Bouts", [[2.0], [4.0]]), ("Vector", [[0.0], [1.0], [1.0], [1.0], [0.0], [0.0]])):
            group.create_dataset(name, data=np.array(values)).attrs["MATLAB_class"] = np.bytes_("double")
    return b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + file.getvalue()[128:]


def _sleap_h5() -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        h5["tracks"] = np.arange(24.0).reshape(1, 2, 2, 6)
        h5["track_occupancy"] = np.ones((6, 1))
        h5["point_scores"] = np.ones((1, 2, 6))
        h5["node_names"], h5["track_names"] = [b"nose", b"tail"], [b"a"]
    return file.getvalue()


def _jabs_h5() -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        group = h5.create_group("poseest")
        group.attrs["version"] = np.array([3, 0], dtype=np.uint16)
        group["points"] = np.ones((6, 1, 12, 2), dtype=np.uint16)
        group["confidence"] = np.ones((6, 1, 12), dtype=np.float32)
        group["instance_count"] = np.ones(6, dtype=np.uint8)
        group["instance_embedding"] = np.zeros((6, 1, 12), dtype=np.float32)
        group["instance_track_id"] = np.zeros((6, 1), dtype=np.uint32)
    return file.getvalue()


def _deeplabcut_h5() -> bytes:
    import pickle

    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        h5.attrs["PYTABLES_FORMAT_VERSION"] = b"2.1"
        group = h5.create_group("df_with_missing")
        group.attrs["pandas_type"] = b"frame_table"
        values = np.zeros(6, dtype=[("index", "<i8"), ("values_block_0", "<f8", (3,))])
        values["index"] = range(6)
        names = [("scorer", "nose", axis) for axis in ("x", "y", "likelihood")]
        group.create_dataset("table", data=values).attrs["values_block_0_kind"] = np.void(pickle.dumps(names, protocol=0))
    return file.getvalue()


def _calms21_npy() -> bytes:
    file = io.BytesIO()
    record = {
        "keypoints": np.ones((6, 2, 2, 7)),
        "scores": np.ones((6, 2, 7)),
        "annotations": np.arange(6) % 2,
        "metadata": {"vocab": {"attack": 0, "other": 1}},
    }
    np.save(file, np.array({"annotator-id_0": {"task1/train/mouse001": record}}, dtype=object), allow_pickle=True)
    return file.getvalue()


def _model_seeds() -> list[Seed]:
    data = eb.load_dataset("synthetic/tag", individuals=3, seconds=20, folds=3)
    seeds = []
    for name, params in MODEL_PARAMS.items():
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder) / "model"
            eb.create_model(name, **params).fit(data).save(path)
            files = {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
        seeds.append(Seed(MODELS, files))
    return seeds


def request_of(generator_text: str) -> dict[str, str]:
    """Return a request of the viewer from a mutated text of three lines: method, address, body."""
    method, _, rest = generator_text.partition("\n")
    address, _, body = rest.partition("\n")
    return {"method": method, "address": address, "body": body}


REQUEST_SEEDS = [
    "GET\n/api/project\n",
    "GET\n/api/suggestions\n",
    "GET\n/api/recordings/0\n",
    "GET\n/api/recordings/0/signals\n",
    "GET\n/api/recordings/0/tiles?lane=track:0&level=0&index=0\n",
    "GET\n/api/recordings/0/at?frame=3\n",
    "GET\n/api/recordings/0/next?frame=3&forward=1&border=anna\n",
    "GET\n/api/recordings/0/next?frame=3&among=anna&among=zoe\n",
    "GET\n/api/recordings/1/signals\n",
    "GET\n/api/recordings/1/poses?start=0&stop=9\n",
    "GET\n/api/recordings/1/video\n",
    "GET\n/api/recordings/0/uncertain\n",
    "GET\n/api/recordings/0/export?track=anna&format=tidy\n",
    "GET\n/static/viewer.js\n",
    "POST\n/api/recordings/0/start\n" + json.dumps({"name": "me", "copy": "anna"}),
    "POST\n/api/recordings/0/edit\n"
    + json.dumps({"track": "zoe", "revision": 0, "edits": [{"kind": "mark", "start": 1, "stop": 5, "behavior": "a"}]}),
    "POST\n/api/recordings/0/watch\n" + json.dumps({"track": "zoe", "spans": [[0, 5]]}),
    "POST\n/api/recordings/0/undo\n" + json.dumps({"track": "zoe", "revision": 0}),
    "POST\n/api/recordings/0/redo\n" + json.dumps({"track": "zoe", "revision": 0}),
]
HEADERS = [
    {"host": "example.org"},
    {"host": ""},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "https://example.org"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"content-type": "text/plain"},
    {"content-length": "-1"},
    {"content-length": "99999999999999999999"},
    {"range": "bytes=9-2,-1"},
    {"x-ethobench-token": "\xff"},
]
