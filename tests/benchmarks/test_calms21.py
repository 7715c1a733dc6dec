"""CalMS21's three tasks on small files of its own format."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ethobench.benchmarks import calms21, results_table
from ethobench.benchmarks.behaviors import behaviors_table
from ethobench.benchmarks.calms21_summary import _mean, difficulty, laid_out, summary
from ethobench.benchmarks.published import published_figures
from ethobench.benchmarks.styles import styles_table
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets.synthetic import Annotator, make_dataset
from ethobench.formats import write_recordings
from ethobench.models import create_model, models
from ethobench.runs import Engine, Result, Store
from ethobench.runs.perform import _load

PEOPLE = (Annotator("annotator-id_1", delay=0.0, jitter=0.0, missed=0.0), Annotator("annotator-id_2", delay=0.6, jitter=0.05, missed=0.1))
TINY = {"past": 8, "future": 8, "gap": 2, "epochs": 2, "layers": [8, 4], "kernel": 3, "batch": 512}
SEEDS = (42, 43)
WAYS_OF_TASK3 = ("fine-tuned", "fine-tuned, undecoded")


def write_task(folder: Path, task: int, seed: int, groups) -> None:
    """Write training and test files in which every group has recordings of its own."""
    for split, count in (("train", 3), ("test", 2)):
        found = []
        for place, (group, people, behaviors) in enumerate(groups):
            data = make_dataset(
                "pose", individuals=count, seconds=12.0 if task < 3 else 60.0, seed=seed + 10 * place + (split == "test"), annotators=people
            )
            for number, recording in enumerate(data):
                annotation = next(iter(recording.annotations.values()))
                kept = annotation.restrict(behaviors or annotation.ethogram.names)
                name = f"task{task}/{split}/mouse{place}{number:02d}_task{task}"
                found.append(recording.copy(id=name, annotations={group: kept}))
        write_recordings(found, folder / f"calms21_task{task}_{split}.json", "calms21")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a folder with small files of all tasks, where `load_dataset` finds them."""
    folder = tmp_path_factory.mktemp("data")
    place = folder / "calms21"
    place.mkdir()
    names = make_dataset("pose", individuals=1, seconds=1.0).ethogram.names
    other = next(name for name in names if name == "other")
    news = [name for name in names if name != other][:2]
    write_task(place, 1, 0, [("annotator-id_0", (), ())])
    write_task(place, 2, 100, [(person.name, (person,), ()) for person in PEOPLE])
    write_task(place, 3, 200, [(name, (), (other, name)) for name in news])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETHOBENCH_DATA", str(folder))
        _load.cache_clear()
        yield folder


@pytest.fixture(scope="module")
def store(written):
    found = Store(written / "store")
    protocol = calms21.Protocol(SEEDS, params={"conv1d": TINY})
    planned = [
        *calms21.plans((1,), ("conv1d", "chance"), protocol),
        *calms21.plans((2, 3), ("conv1d",), replace(protocol, seeds=SEEDS[:1])),
    ]
    outcome = Engine(found, lambda: ThreadPoolExecutor(1), 1).run(planned)
    assert outcome.failed == {}
    assert outcome.broken == []
    # task 1: three variants and chance; task 2: three ways for each annotator, and what one begins with; task 3: each behavior
    assert outcome.done == 2 * 4 + 3 * 2 + 1 + 2
    return found


@pytest.mark.slow
def test_figures_are_means_over_seeds(store):
    row = next(r for r in results_table(store) if (r["setting"], r["suite"], r["metric"]) == ("baseline", "calms21", "macro_f1"))
    values = [
        store.scores(key)["suites"]["calms21"]["overall"]["macro_f1"]
        for key in list(store.finished())
        if (job := store.job(key))["setting"] == "baseline" and job["model"] == "conv1d"
    ]
    assert len(values) == 2
    assert (row["over"], row["n"]) == ("seeds", 2)
    assert (row["mean"], row["std"]) == (pytest.approx(np.mean(values)), pytest.approx(np.std(values)))
    assert row["published"] == 0.7928


@pytest.mark.slow
def test_annotators_and_behaviors_are_averaged(store):
    rows = {(r["dataset"], r["model"], r["setting"], r["metric"]): r for r in summary(store)}
    for way in ("zero-shot", "fine-tuned", "conditioned"):
        each = [rows["calms21/task2", "conv1d", f"{p.name}, {way}", "macro_f1"]["mean"] for p in PEOPLE]
        assert rows["calms21/task2", "conv1d", f"all annotators, {way}", "macro_f1"]["mean"] == pytest.approx(np.mean(each))
    for end in ("fine-tuned", "fine-tuned, undecoded"):
        each = [s for d, _, s, m in rows if d == "calms21/task3" and m == "macro_f1" and s.endswith(f", {end}") and not s.startswith("all")]
        assert len(each) == 2
        mean = np.mean([rows["calms21/task3", "conv1d", s, "macro_f1"]["mean"] for s in each])
        assert rows["calms21/task3", "conv1d", f"all behaviors, {end}", "macro_f1"]["mean"] == pytest.approx(mean)
    published = {end: rows["calms21/task3", "conv1d", f"all behaviors, {end}", "macro_f1"]["published"] for end in WAYS_OF_TASK3}
    assert published == {"fine-tuned": None, "fine-tuned, undecoded": 0.3378}  # theirs are of the most probable behavior of each frame
    head, lines = laid_out(list(rows.values()))
    assert head[:4] == ["dataset", "model", "setting", "macro_f1"]
    assert "published 0.793" in next(line for line in lines if line[1:3] == ["conv1d", "baseline"])[3]


@pytest.mark.slow
def test_tasks_two_and_three_begin_with_the_network_of_task_one(store):
    jobs = {key: store.job(key) for key in store.finished()}
    begun = {key for key, job in jobs.items() if job["setting"] == "augmented"}
    for key, job in jobs.items():
        if job["dataset"] != "calms21/task1" and not job["setting"].endswith("conditioned"):
            assert job["begin_with"] in begun
            assert jobs[job["begin_with"]]["seed"] == job["seed"]
        if job["setting"].endswith("zero-shot"):
            assert job["params"]["epochs"] == job["params"]["head_epochs"] == 0
        if job["dataset"] == "calms21/task3":
            assert len(job["behaviors"]) == 2
            assert store.scores(key)["suites"]["calms21"]["state"]["behaviors"] == job["behaviors"]


@pytest.mark.slow
def test_new_behaviors_by_frequency_and_length(store):
    rows = difficulty(store)
    assert len(rows) == 2
    for row in rows:
        assert 0 < row["share"] < 1
        assert row["seconds"] > 0
        assert row["bouts"] >= 1


@pytest.mark.slow
def test_where_annotators_differ_is_told_by_behavior(store):
    rows = styles_table(store)
    names = [name for name in make_dataset("pose", individuals=1, seconds=1.0).ethogram.names if name != "other"]
    assert {(row["annotator"], row["behavior"]) for row in rows} == {(person.name, name) for person in PEOPLE for name in names}
    errors = {(r["setting"], r["behavior"]): r["value"] for r in behaviors_table(store, ["onset_error"]) if r["suite"] == "ethobench"}
    for row in rows:
        late = errors[f"{row['annotator']}, zero-shot", row["behavior"]]
        assert row["later_onset"] == (None if late is None else -late)


def test_wishes_that_cannot_be_fulfilled(tmp_path, monkeypatch):
    with pytest.raises(NotFoundError, match="tasks 1, 2 and 3, not 4"):
        list(calms21.plans((4,)))
    with pytest.raises(EthobenchError, match="none of chance can"):
        list(calms21.plans((2,), ("chance",)))
    with pytest.raises(EthobenchError, match="paper or the code"):
        calms21.Protocol(recipe="luck")


def test_published_configurations_are_ones_that_the_models_take():
    for model, variants in calms21.VARIANTS.items():
        for params in variants.values():
            create_model(model, **params)
        assert "init" in models[model].Params.__dataclass_fields__
    known = [key for key in published_figures() if key[0] == "calms21"]
    assert {key[2] for key in known} == set(calms21.MODELS)
    assert {key[3] for key in known if key[1] == "calms21/task1"} >= {s for v in calms21.VARIANTS.values() for s in v}


def test_the_first_versions_tables_are_there_with_what_they_call_precision():
    known = {key[1:]: told for key, told in published_figures().items() if key[0] == "calms21"}
    place = ("calms21/task1", "conv1d", "baseline, first version", "calms21")
    f1 = [known[(*place, f"f1 of {name}")].value for name in ("attack", "investigation", "mount")]
    assert np.mean(f1) == pytest.approx(0.7248, abs=5e-5)  # as the text says
    assert "printed as precision" in known[(*place, "recall of attack")].source
    annotators = {key[2].partition(",")[0] for key in known if key[0] == "calms21/task2" and key[2].endswith("first version")}
    assert annotators == {f"annotator-id_{number}" for number in range(1, 6)}


def test_a_share_keeps_what_is_rare():
    data = make_dataset("pose", individuals=10, seconds=30.0)
    data = replace(data, splits={r.id: "train" for r in data})
    kept = calms21._share(data, [r.id for r in data], 0.8, 42)
    assert len(kept) == 8
    assert kept == calms21._share(data, [r.id for r in data], 0.8, 42)
    assert kept != calms21._share(data, [r.id for r in data], 0.8, 43)


def first_jobs(task: int, recipe: str):
    """Return the jobs with which a task begins, and those that go on from them."""
    protocol = calms21.Protocol((42,), recipe=recipe)
    (plan,) = calms21.plans((task,), ("conv1d",), protocol)
    begun = next(plan)
    return begun, plan.send([Result(job, {}, "") for job in begun])


def test_the_paper_and_its_code_are_told_apart(written):
    (coded,), behaviors = first_jobs(3, "code")
    assert (coded.setting, coded.params["past"], coded.params["gap"], coded.params["augment"]) == ("augmented", 50, 1, ["published"])
    assert {job.params["recipe"] for job in behaviors} == {"code"}
    (told,), weighed = first_jobs(3, "paper")
    assert told.setting == "augmented, as the paper tells"
    assert [told.params[name] for name in ("past", "future", "gap")] == [100, 100, 2]
    assert told.params["augment"] == ["rotation", "translation", "reflection"]
    assert {job.params["class_weight"] for job in weighed} == {"balanced"}
    assert {job.params["decode"] for job in (*behaviors, *weighed)} == {"f1"}
    assert calms21._weight("behavior-4") == calms21._weight("mount_attempt") == 100.0


def test_somebody_without_test_videos_is_left_out(written, monkeypatch):
    data = calms21.load_dataset("calms21/task2")
    last = data.annotators[-1]
    kept = [r.id for r in data if not (last in r.annotations and data.splits[r.id] == "test")]
    with pytest.warns(UserWarning, match=f"{last}' of calms21/task2 has no test videos: left out"):
        assert calms21._with_both(data.select(recordings=kept)) == [name for name in data.annotators if name != last]


def test_the_best_come_first_and_ties_go_to_precision():
    figures = {
        ("d", "m", s): {42: {"macro_f1": f, "macro_precision": p}} for s, f, p in (("a", 0.5, 0.1), ("b", 0.5, 0.9), ("c", np.nan, 1))
    }
    ranked = sorted(figures, key=lambda name: tuple(-_mean(figures[name], m) for m in ("macro_f1", "macro_precision")))
    assert [name[2] for name in ranked] == ["b", "a", "c"]
