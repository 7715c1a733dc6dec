"""Fetching, against a real server on loopback."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ethobench import load_dataset
from ethobench.core.errors import EthobenchError, MissingDataError
from ethobench.datasets import bebe, split_name
from ethobench.datasets.fetch import fetch_from_record, unpack

pytestmark = pytest.mark.slow

METADATA = """\
clip_column_names: [AccX, AccY, AccZ, individual_id, label]
clip_ids: [a, b]
clip_id_to_individual_id: {a: 1, b: 2}
clip_ids_per_fold: {0: [a], 1: [b]}
label_names: [unknown, rest, run]
sr: 10
dataset_name: HAR
"""
CLIP = "0.1,0.2,0.3,1,0\n" * 3 + "0.1,0.2,0.3,1,2\n" * 4


def archive(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return buffer.getvalue()


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        self.server.hits.append(self.path)


@pytest.fixture
def server(tmp_path):
    root = tmp_path / "server"
    root.mkdir()
    http_server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    http_server.hits, http_server.root = [], root
    threading.Thread(target=http_server.serve_forever, daemon=True).start()
    http_server.url = f"http://127.0.0.1:{http_server.server_port}"
    yield http_server
    http_server.shutdown()
    http_server.server_close()


def publish(server, content: bytes, name: str = "HAR.zip", checksum: str | None = None) -> None:
    """Serve a record the way InvenioRDM does."""
    (server.root / name).write_bytes(content)
    checksum = checksum or f"md5:{hashlib.md5(content, usedforsecurity=False).hexdigest()}"
    entry = {"key": name, "checksum": checksum, "size": len(content), "links": {"content": f"{server.url}/{name}", "self": "x"}}
    (server.root / "files").write_text(json.dumps({"enabled": True, "entries": [entry]}), encoding="utf-8")


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("ETHOBENCH_DATA", str(folder))
    return folder


def test_bebe_is_downloaded_once_and_loads(server, empty, monkeypatch):
    monkeypatch.setattr(bebe, "RECORD", server.url)
    members = {
        "formatted/HAR/dataset_metadata.yaml": METADATA,
        "formatted/HAR/clip_data/a.csv": CLIP,
        "formatted/HAR/clip_data/b.csv": CLIP,
    }
    publish(server, archive({**members, "formatted/HAR/__MACOSX/x": "junk"}))
    data = load_dataset("bebe/HAR")
    assert (len(data), data.folds) == (2, {"a": 0, "b": 1})
    assert data["a"].annotation().to_codes().tolist() == [-1] * 3 + [1] * 4
    assert sorted(p.name for p in (empty / "bebe" / "HAR").iterdir()) == ["clip_data", "dataset_metadata.yaml"]
    n_requests = len(server.hits)
    assert load_dataset("bebe/HAR").version == data.version
    assert len(server.hits) == n_requests


def test_a_damaged_download_leaves_nothing_and_says_where_to_put_it(server, empty, monkeypatch):
    monkeypatch.setattr(bebe, "RECORD", server.url)
    publish(server, b"not what was promised", checksum="md5:" + "0" * 32)
    with pytest.raises(MissingDataError, match=r"HAR.zip could not be downloaded .* unpack it into .*bebe"):
        load_dataset("bebe/HAR")
    assert not split_name("bebe/HAR")[0].is_here("HAR")
    assert list((empty / "bebe").iterdir()) == []


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_pinned_checksum_overrides_that_of_the_record(kind, server, tmp_path):
    content = archive({"a.csv": CLIP})
    publish(server, content)  # the record states the digest of what it serves
    pinned = hashlib.new(kind, content, usedforsecurity=False).hexdigest()
    fetch_from_record(server.url, "HAR.zip", tmp_path / "good", lambda _: True, f"{kind}:{pinned}")
    assert (tmp_path / "good" / "a.csv").is_file()
    with pytest.raises(MissingDataError, match=r"HAR.zip could not be downloaded"):
        fetch_from_record(server.url, "HAR.zip", tmp_path / "bad", lambda _: True, f"{kind}:{'0' * len(pinned)}")
    assert not (tmp_path / "bad" / "a.csv").exists()


@pytest.mark.parametrize("name", ["bebe/HAR", "banos", "calms21/task1"])
def test_offline_is_one_clear_line(empty, monkeypatch, name):
    from ethobench.datasets import banos, calms21

    nowhere = "http://127.0.0.1:9/none"
    monkeypatch.setattr(bebe, "RECORD", nowhere)
    monkeypatch.setattr(calms21, "RECORD", nowhere)
    monkeypatch.setattr(banos, "ARCHIVE", banos.ARCHIVE.model_copy(update={"url": nowhere}))
    with pytest.raises(MissingDataError, match="could not be downloaded") as caught:
        load_dataset(name)
    assert "\n" not in str(caught.value)
    assert str(empty) in str(caught.value)


def test_a_record_without_the_file_is_reported(server, empty, monkeypatch):
    monkeypatch.setattr(bebe, "RECORD", server.url)
    publish(server, archive({"x": "y"}), name="other.txt")
    with pytest.raises(MissingDataError, match="has no file"):
        load_dataset("bebe/HAR")


@pytest.mark.parametrize("name", ["../evil.csv", "/etc/evil.csv", "a/../../evil.csv", "C:\\evil.csv", "..\\evil.csv"])
def test_archives_cannot_write_outside_their_folder(tmp_path, name):
    path = tmp_path / "bad.zip"
    path.write_bytes(archive({name: "x"}))
    target = tmp_path / "in"
    target.mkdir()
    with pytest.raises(EthobenchError, match="points outside the folder"):
        unpack(path, target, lambda _: True)
    assert list(target.rglob("*")) == []
    assert not (tmp_path / "evil.csv").exists()


def test_zip_bombs_are_refused(tmp_path):
    path = tmp_path / "bomb.zip"
    path.write_bytes(archive({"big.csv": "0" * 30_000_000}))
    with pytest.raises(EthobenchError, match="its unpacked size is more than"):
        unpack(path, tmp_path, lambda _: True)


def test_banos_is_downloaded_and_laid_out(server, empty, monkeypatch):
    from ethobench.datasets import banos

    table = "attack,other\n" + "0,1\n" * 3 + "1,0\n" * 2
    top = "BANOS-0.2.3/data/dataset_human_vs_human"
    members = {f"{top}/Recording_{i}/humanAnnotation_{k}.csv": table for i in (1, 2, 10) for k in (1, 2)}
    (server.root / "banos.zip").write_bytes(archive({**members, "BANOS-0.2.3/setup.py": "x"}))
    monkeypatch.setattr(banos, "ARCHIVE", banos.ARCHIVE.model_copy(update={"url": f"{server.url}/banos.zip"}))
    data = load_dataset("banos")
    assert [r.id for r in data] == ["Recording_1", "Recording_2", "Recording_10"]
    assert data.annotators == ("human1", "human2")
    assert data["Recording_10"].annotation("human2").spans("attack").start.tolist() == [3]
    assert not list(empty.rglob("setup.py"))
    assert not list(empty.rglob("*.zip"))


def test_calms21_is_downloaded(server, empty, monkeypatch):
    from ethobench.datasets import calms21

    record = {
        "keypoints": [[[[float(i)] * 7] * 2] * 2 for i in range(6)],
        "scores": [[[0.9] * 7] * 2] * 6,
        "annotations": [3, 3, 0, 0, 1, 3],
        "metadata": {"annotator-id": 0, "vocab": {"attack": 0, "investigation": 1, "mount": 2, "other": 3}},
    }
    files = {
        f"task1_classic_classification/calms21_task1_{split}.json": json.dumps(
            {"annotator-id_0": {f"task1/{split}/{mouse}_task1_annotator1": record}}
        )
        for split, mouse in (("train", "mouse001"), ("test", "mouse071"))
    }
    programmed = {"features": [[float(i)] * 32 for i in range(6)], "metadata": record["metadata"]}
    files["task1_classic_classification/taskprog_features_task1_train.json"] = json.dumps(
        {"annotator-id_0": {"task1/train/mouse001_task1_annotator1": programmed}}
    )
    publish(server, archive(files), name="task1_classic_classification.zip")
    monkeypatch.setattr(calms21, "RECORD", server.url)
    monkeypatch.setattr(calms21, "ARCHIVES", {**calms21.ARCHIVES, "task1": ("task1_classic_classification.zip", None)})
    data = load_dataset("calms21/task1")
    assert sorted(data.splits.values()) == ["test", "train"]
    assert data.ethogram.background_name == "other"
    assert data.select(split="train").recordings[0].annotation().to_codes().tolist() == [3, 3, 0, 0, 1, 3]
    assert data.recordings[0].signals.positions.shape == (6, 2, 7, 2)
    train, test = (data.select(split=split).recordings[0] for split in ("train", "test"))
    assert train.features.values.shape == (6, 32)
    assert test.features is None
