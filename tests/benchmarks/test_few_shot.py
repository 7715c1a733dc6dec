"""Curves over few training recordings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench.benchmarks import results_table
from ethobench.benchmarks.few_shot import BEGUN, SCRATCH, Curve, curves_table, plans
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset
from ethobench.formats import write_recordings
from ethobench.runs import Engine, Store

TINY = {"conv1d": {"past": 8, "future": 8, "frame_stride": 2, "epochs": 1, "layers": [8, 4], "kernel": 3, "batch": 64, "class_weight": "balanced"}}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Write poses and labels of eight recordings as a folder of one's own."""
    folder = tmp_path_factory.mktemp("study")
    data = load_dataset("synthetic/pose", individuals=8, seconds=40.0)
    lines = ["recording,individual,rate,signals,annotations"]
    for recording in data:
        write_recordings([recording.copy(annotations={})], folder / f"{recording.id}.json", "calms21")
        write_recordings([recording], folder / f"{recording.id}.csv", "tidy")
        lines.append(f"{recording.id},{recording.id},30,{recording.id}.json,{recording.id}.csv")
    (folder / "recordings.csv").write_text("\n".join(lines), encoding="utf-8")
    names = data.ethogram.names
    rows = "\n".join(f"{name},{'yes' if name == data.ethogram.background_name else ''}" for name in names)
    (folder / "ethogram.csv").write_text(f"behavior,background\n{rows}\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_curves_begin_from_scratch_and_with_what_is_known(study, tmp_path):
    store = Store(tmp_path / "s")
    data = load_dataset(str(study))
    rare = next(name for name in data.ethogram.names if name != "other")
    curve = Curve((1, 2, 8), [rare], before=str(study), params=TINY, params_before=TINY, folds=(0,))
    outcome = Engine(store, lambda: ThreadPoolExecutor(1), 1).run(plans(str(study), ["conv1d"], curve))
    assert (outcome.failed, outcome.broken) == ({}, [])
    jobs = {key: store.job(key) for key in store.finished()}
    final = [job for job in jobs.values() if job["stage"] == "final"]
    assert {job["setting"] for job in final} == {f"{rare}, {n} recordings, {way}" for n in (1, 2) for way in (SCRATCH, BEGUN)}
    (begin,) = (key for key, job in jobs.items() if job["stage"] == "beginning")
    for job in final:
        assert bool(job["begin_with"]) == job["setting"].endswith(BEGUN)
        assert not {*job["train"]} & {*job["test"]}
        assert job["begin_with"] in ("", begin)
    assert not {*jobs[begin]["train"]} & {*jobs[begin]["test"]}
    one, two = (next(j["train"] for j in final if f" {n} recordings, {SCRATCH}" in j["setting"]) for n in (1, 2))
    assert two[:1] == one
    rows = curves_table(store)
    assert [(row["way"], row["metric"]) for row in rows] == [(way, m) for way in (BEGUN, SCRATCH) for m in ("macro_f1", "map")]
    assert all({"1", "2"} < {*row} for row in rows)
    figures = results_table(store)
    value = next(r["mean"] for r in figures if (r["setting"], r["metric"]) == (f"{rare}, 2 recordings, {SCRATCH}", "macro_f1"))
    assert rows[2]["2"] == value


def test_unknown_behaviors_are_refused(study):
    with pytest.raises(NotFoundError, match="has no flying"):
        list(plans(str(study), ["conv1d"], Curve(behaviors=["flying"])))


def test_unknown_folds_are_refused(study):
    with pytest.raises(NotFoundError, match="has no fold 9; it has: 0, 1"):
        list(plans(str(study), ["conv1d"], Curve(folds=(0, 9))))


def test_data_without_background_are_refused():
    with pytest.raises(EthobenchError, match="names no background"):
        list(plans("synthetic/tag", ["conv1d"], Curve()))
