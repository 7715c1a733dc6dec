"""Every file that is read back states its version, and docs/stability.md lists it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ethobench as eb
from ethobench.app.origins import Origin, Origins
from ethobench.decoding import Decoder
from ethobench.models.audit import ENTRIES, LOG, read_entry
from ethobench.runs.store import Store

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ethobench"
ROW = re.compile(r"^\|.*\| (\d+) \| `([\w/]+\.py)` \|$", re.MULTILINE)
WITHOUT_VERSION = {
    "app/corrections.py": "a row that waits to be added to manifest.csv",
    "core/files.py": "the function that writes JSON",
    "formats/boris.py": "the format of BORIS",
    "formats/calms21.py": "the format of CalMS21",
    "formats/intervals.py": "the format of Rodent-Bench",
    "formats/parse_cache.py": "a cache",
    "mllm/output.py": "version of mllm/cache.py",
    "mllm/providers/openai.py": "a request to a server",
    "mllm/runner.py": "version of mllm/cache.py",
    "models/auto.py": "in a model folder, listed by model.json",
    "models/boost.py": "in a model folder, listed by model.json",
    "models/chance.py": "in a model folder, listed by model.json",
    "runs/leases.py": "a lock of a running process",
    "training/video_embedding.py": "version of datasets/frame_features.py",
    "runs/worker.py": "in a store, listed by its manifest",
}
"""Modules that write JSON without a version of their own, and why."""


def stated_versions() -> dict[str, int]:
    """Return the constants ``FORMAT_VERSION`` of all modules."""
    constant = re.compile(r"^(?:\w+, )?\w*FORMAT_VERSION = .*?(\d+)$", re.MULTILINE)
    versions = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if match := constant.search(path.read_text(encoding="utf-8")):
            versions[path.relative_to(PACKAGE).as_posix()] = int(match[1])
    return versions


def test_the_page_lists_every_version():
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    listed = {module: int(version) for version, module in ROW.findall(page)}
    assert listed.pop("formats/tidy.py") == 1
    assert listed == stated_versions()


def test_modules_that_write_json_have_a_version_or_a_reason():
    writes = re.compile(r"(write_text|write_json|write_ascii_json|\.write|os\.write)\([^\n]*json\.dumps|write_json\(|write_ascii_json\(")
    writers = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if writes.search(path.read_text(encoding="utf-8"))}
    assert writers - {*stated_versions()} == {*WITHOUT_VERSION}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    study = eb.load_dataset("synthetic/tag", individuals=2, seconds=20)
    folder = tmp_path_factory.mktemp("model") / "chance"
    eb.create_model("chance").fit(study).save(folder)
    return folder


def test_model_folders(model):
    assert json.loads((model / "model.json").read_text())["format_version"] == 2
    assert json.loads((model / "training.json").read_text())["format_version"] == 1


def test_decoders_stores_and_origins(tmp_path):
    assert Decoder().to_dict()["format_version"] == 1
    Store(tmp_path / "store")
    assert json.loads((tmp_path / "store" / "store.json").read_text()) == {"format_version": 3}
    Origins(tmp_path).add([Origin("m1", "anna", 0, 5, "attack")])
    assert json.loads((tmp_path / "origins.jsonl").read_text())["format_version"] == 1


def test_annotations(tmp_path):
    annotation = eb.Annotation.from_bouts([0], [5], ["attack"], ["attack"], rate=30, n_frames=10)
    eb.write_annotation(annotation, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith("# ethobench bouts 1\n")


def test_unknown_versions_are_refused(model, tmp_path):
    card = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps({**card, "format_version": 99}))
    with pytest.raises(eb.EthobenchError, match="99"):
        eb.load_model(model)
    Store(tmp_path / "store")
    (tmp_path / "store" / "store.json").write_text('{"format_version": 99}')
    with pytest.raises(eb.EthobenchError, match="99"):
        Store.open(tmp_path / "store")


def test_logs_of_unknown_versions_are_refused(tmp_path):
    log = Origins(tmp_path)
    log.add([Origin("m1", "anna", 0, 5, "attack")])
    log.path.write_text(log.path.read_text() + '{"format_version": 99, "start": 1, "stop": 2}\n')
    with pytest.raises(eb.FormatError, match=r"origins\.jsonl, line 2: format version 99 is not supported, only 1"):
        log.load()
    entry = tmp_path / LOG / ENTRIES / "m1.csv.json"
    entry.parent.mkdir(parents=True)
    entry.write_text('{"format_version": 99, "file": "m1.csv"}')
    with pytest.raises(eb.FormatError, match="format version 99 is not supported, only 2; update ethobench"):
        read_entry(tmp_path, "m1.csv")


def test_decoders_of_unknown_versions_are_refused():
    with pytest.raises(eb.EthobenchError, match="format_version 99"):
        Decoder.from_dict({**Decoder().to_dict(), "format_version": 99})
