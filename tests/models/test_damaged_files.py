"""Damaged and hostile files of saved models are refused in words: no traceback, no crash, no endless loop."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.models.damage import renew_digests
from tests.models.test_every_model import SMALL

import ethobench as eb
from ethobench.core.errors import FormatError
from ethobench.models import models
from ethobench.models.estimator_files import check_lightgbm_text
from ethobench.models.saving import CARD, READABLE_CARD

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
MUTANTS = 1  # of each file
SMALLER = {"boost": {"rounds": 3}, "rf": {"trees": 2}, "wavelet_rf": {"trees": 2}, "tcn": {"updates": 2, "width": 4, "levels": 2}}
SMALLER |= {name: {"epochs": 1} for name in ("cnn", "crnn", "rnn", "wavelet_rnn")}


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A saved model of each kind."""
    root = tmp_path_factory.mktemp("saved")
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=10)
    for name in models.names():
        eb.create_model(name, **{**SMALL.get(name, {}), **SMALLER.get(name, {})}).fit(data).save(root / name)
    return root


def copy_of(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / folder.name))


@pytest.mark.parametrize("name", models.names())
def test_the_digest_is_checked_before_any_file_is_parsed(name, saved, tmp_path, monkeypatch):
    folder = copy_of(saved / name, tmp_path)
    monkeypatch.setattr(models[name], "_load", lambda *_: pytest.fail("a file was parsed before its digest was checked"))
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in (CARD, READABLE_CARD)):
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        with pytest.raises(FormatError, match="this file was changed since the model was saved") as refusal:
            eb.load_model(folder)
        assert refusal.value.path == path
        path.unlink()
        with pytest.raises(FormatError, match="this file is missing"):
            eb.load_model(folder)
        path.write_bytes(content)
    (folder / "further.txt").write_text("", encoding="utf-8")
    with pytest.raises(FormatError, match="this file was added"):
        eb.load_model(folder)


def test_damage_with_a_renewed_digest_is_refused_or_harmless(saved):
    command = [sys.executable, "-m", "tests.models.damage", str(saved), str(MUTANTS), "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"the process ended at {lines[-1] if lines else 'the start'}: {done.stderr[-2000:]}"
    outcomes = {line["mutant"]: line["outcome"] for line in lines if "outcome" in line}
    assert {mutant: outcome for mutant, outcome in outcomes.items() if outcome not in ("refused", "usable")} == {}
    assert {mutant.partition("/")[0] for mutant in outcomes} == {*models.names()}


TREE_TEXT = [
    ("left_child=", "left_child=9", "tree 0"),  # a child out of range
    ("right_child=", "right_child=0", "tree 0"),  # a cycle
    ("split_feature=", "split_feature=99999", "feature that does not exist"),
    ("threshold=", "threshold=nan", "finite numbers"),
    ("decision_type=", "decision_type=1", "is not numerical"),
    ("num_leaves=", "num_leaves=2147483647", "not an integer"),
    ("tree_sizes=", "tree_sizes=7", "size of tree"),
    ("max_feature_idx=", "max_feature_idx=3", "feature_names"),
    ("num_class=", "num_class=9", "does not have"),
    ("leaf_value=", "leaf_value=1e999", "finite numbers"),
]


@pytest.mark.parametrize(("line", "changed", "why"), TREE_TEXT)
def test_the_text_of_boosted_trees_is_checked_before_lightgbm_reads_it(line, changed, why, saved, tmp_path):
    folder = copy_of(saved / "boost", tmp_path)
    path = folder / "trees-0.txt"
    text = path.read_text(encoding="utf-8")
    start = text.index(f"\n{line}") + 1
    stop = min(position for end in (" ", "\n") if (position := text.find(end, start)) > 0)
    damaged = text[:start] + changed + text[stop:]
    if not line.startswith(("tree_sizes", "max", "num_class")):  # a hostile file has sizes that fit
        damaged = with_tree_sizes(damaged)
    path.write_text(damaged, encoding="utf-8")
    renew_digests(folder)
    with pytest.raises(FormatError, match=why) as refusal:
        eb.load_model(folder)
    assert refusal.value.path == path


def with_tree_sizes(text: str) -> str:
    start = text.index("\nTree=0\n") + 1
    trees = text[start : text.index("end of trees")].split("Tree=")[1:]
    sizes = " ".join(str(len("Tree=" + tree)) for tree in trees)
    head = [f"tree_sizes={sizes}" if line.startswith("tree_sizes=") else line for line in text[:start].split("\n")]
    return "\n".join(head) + text[start:]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_that_lightgbm_wrote_pass_and_predict_the_same(n_classes):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 4)), rng.integers(0, n_classes, 200)
    x[rng.random(x.shape) < 0.1] = np.nan
    params = {"objective": "multiclass", "num_class": n_classes} if n_classes > 2 else {"objective": "binary"}
    for constant in (False, True):  # constant features give trees of a single leaf
        features = np.zeros_like(x) if constant else x
        grown = lightgbm.train({**params, "verbose": -1, "min_data_in_leaf": 5}, lightgbm.Dataset(features, y), 4)
        again = lightgbm.Booster(model_str=check_lightgbm_text(grown.model_to_string(), n_classes))
        assert np.array_equal(again.predict(features), grown.predict(features))


def change_nodes(field: str, value: float) -> Callable[[np.ndarray], None]:
    def change(nodes: np.ndarray) -> None:
        nodes[field][0] = value

    return change


@pytest.mark.parametrize("name", ["dt", "rf"])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (change_nodes("left_child", 10**9), "lead out of it"),
        (change_nodes("left_child", 0), "form a cycle"),
        (change_nodes("right_child", -7), "lead out of it"),
        (change_nodes("right_child", -1), "one child"),
        (change_nodes("feature", 10**6), "feature that does not exist"),
        (change_nodes("threshold", np.nan), "not a number"),
    ],
)
def test_nodes_of_trees_are_checked(name, change, why, saved, tmp_path):
    folder = copy_of(saved / name, tmp_path)
    path = folder / "estimator.skops"
    rewrite_archive(path, change)
    renew_digests(folder)
    with pytest.raises(FormatError, match=why) as refusal:
        eb.load_model(folder)
    assert refusal.value.path == path


def rewrite_archive(path: Path, change: Callable[[np.ndarray], None]) -> None:
    """Change the first array of nodes in a skops file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    target = next(name for name, content in members.items() if b"left_child" in content[:1000] and name.endswith(".npy"))
    temporary = path.with_suffix(".npy")
    temporary.write_bytes(members[target])
    nodes = np.load(temporary)
    change(nodes)
    np.save(temporary, nodes)
    members[target] = temporary.read_bytes()
    temporary.unlink()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_other_classes_of_scikit_learn_are_refused(saved, tmp_path):
    import skops.io
    from sklearn.neighbors import KNeighborsClassifier

    folder = copy_of(saved / "dt", tmp_path)
    skops.io.dump(KNeighborsClassifier(algorithm="kd_tree").fit(np.eye(9), range(9)), folder / "estimator.skops")
    renew_digests(folder)
    with pytest.raises(FormatError, match="the file holds a sklearn"):
        eb.load_model(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", models.names())
def test_a_card_with_fewer_inputs_is_refused_or_harmless(name, saved, tmp_path):
    folder = copy_of(saved / name, tmp_path)
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    card["inputs"] = card["inputs"][:-1]
    (folder / CARD).write_text(json.dumps(card), encoding="utf-8")
    recording = eb.load_dataset("synthetic/tag", individuals=2, seconds=10).recordings[0]
    try:
        prediction = eb.load_model(folder).predict(recording)
    except eb.EthobenchError as error:
        assert "Error" not in str(error)
    else:
        assert len(prediction.probabilities) == recording.n_frames


def test_a_network_too_large_for_memory_is_refused(saved, tmp_path):
    folder = copy_of(saved / "tcn", tmp_path)
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    card["params"]["width"] = 10**6
    (folder / CARD).write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(FormatError, match="do not fit the network"):
        eb.load_model(folder)
