"""The three tasks of CalMS21 on small files in its format."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ethobench.benchmarks import results_table
from ethobench.benchmarks.calms21 import (
    FINE_TUNING_PARAMS,
    VARIANTS,
    Calms21,
    Calms21Options,
    behavior_weight,
    groups_with_both_splits,
    select_share,
)
from ethobench.benchmarks.calms21_tables import difficulty_table, layout_summary, rank, styles_table, summarize
from ethobench.benchmarks.tables import behaviors_table
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset
from ethobench.datasets.synthetic import Annotator, make_dataset
from ethobench.formats import write_recordings
from ethobench.models import create_model, models
from ethobench.runs import Engine, Result, Setting, Store
from ethobench.runs.worker import load_cached

PEOPLE = (Annotator("annotator-id_1", delay=0.0, jitter=0.0, missed=0.0), Annotator("annotator-id_2", delay=0.6, jitter=0.05, missed=0.1))
TINY = {"past": 8, "future": 8, "frame_stride": 2, "epochs": 2, "layers": [8, 4], "kernel": 3, "batch": 512}
SEEDS = (42, 43)
TRANSFERS_OF_TASK3 = ("fine-tuned", "fine-tuned, undecoded")


def write_task(folder: Path, task: int, seed: int, groups) -> None:
    """Write training and test files with different recordings of every group."""
    for split, count in (("train", 3), ("test", 2)):
        recordings = []
        for index, (group, people, behaviors) in enumerate(groups):
            data = make_dataset(
                "pose", individuals=count, seconds=12.0 if task < 3 else 30.0, seed=seed + 10 * index + (split == "test"), annotators=people
            )
            for number, recording in enumerate(data):
                annotation = next(iter(recording.annotations.values()))
                kept = annotation.restrict(behaviors or annotation.ethogram.names)
                name = f"task{task}/{split}/mouse{index}{number:02d}_task{task}"
                recordings.append(recording.copy(id=name, annotations={group: kept}))
        write_recordings(recordings, folder / f"calms21_task{task}_{split}.json", "calms21")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a folder with small files of all tasks, where `load_dataset` finds them."""
    folder = tmp_path_factory.mktemp("data")
    data_folder = folder / "calms21"
    data_folder.mkdir()
    names = make_dataset("pose", individuals=1, seconds=1.0).ethogram.names
    other = next(name for name in names if name == "other")
    news = [name for name in names if name != other][:2]
    write_task(data_folder, 1, 0, [("annotator-id_0", (), ())])
    write_task(data_folder, 2, 100, [(person.name, (person,), ()) for person in PEOPLE])
    write_task(data_folder, 3, 200, [(name, (), (other, name)) for name in news])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETHOBENCH_DATA", str(folder))
        load_cached.cache_clear()
        yield folder


@pytest.fixture(scope="module")
def store(written):
    created = Store(written / "store")
    params = {"conv1d": TINY}
    with pytest.MonkeyPatch.context() as patch:
        for task in (2, 3):
            patch.setitem(FINE_TUNING_PARAMS, task, {**FINE_TUNING_PARAMS[task], "head_epochs": 2})
        planned = [
            *Calms21(Calms21Options(tasks=(1,), models=("conv1d", "chance"), seeds=SEEDS, params=params)).jobs(),
            *Calms21(Calms21Options(tasks=(2, 3), models=("conv1d",), seeds=SEEDS[:1], params=params)).jobs(),
        ]
        result = Engine(created, lambda: ThreadPoolExecutor(1), 1).run(planned)
    assert result.failed == {}
    assert result.failed_plans == []
    # task 1: three variants and chance; task 2: three transfers for each annotator, and a pre-training; task 3: each behavior
    assert result.done == 2 * 4 + 3 * 2 + 1 + 2
    return created


@pytest.mark.slow
def test_scores_are_means_over_seeds(store):
    row = next(r for r in results_table(store) if (r["setting"], r["suite"], r["metric"]) == ("baseline", "calms21", "macro_f1"))
    values = [
        store.scores(key)["suites"]["calms21"]["overall"]["macro_f1"]
        for key in list(store.finished())
        if (job := store.job(key)).setting == Setting("baseline") and job.model == "conv1d"
    ]
    assert len(values) == 2
    assert (row["over"], row["n"]) == ("seeds", 2)
    assert (row["mean"], row["std"]) == (pytest.approx(np.mean(values)), pytest.approx(np.std(values)))
    assert row["published"] == 0.7928


@pytest.mark.slow
def test_annotators_and_behaviors_are_averaged(store):
    rows = {(r["dataset"], r["model"], r["setting"], r["metric"]): r for r in summarize(store)}
    for transfer in ("zero-shot", "fine-tuned", "conditioned"):
        each = [rows["calms21/task2", "conv1d", f"{p.name}, {transfer}", "macro_f1"]["mean"] for p in PEOPLE]
        assert rows["calms21/task2", "conv1d", f"all annotators, {transfer}", "macro_f1"]["mean"] == pytest.approx(np.mean(each))
    for end in ("fine-tuned", "fine-tuned, undecoded"):
        each = [s for d, _, s, m in rows if d == "calms21/task3" and m == "macro_f1" and s.endswith(f", {end}") and not s.startswith("all")]
        assert len(each) == 2
        mean = np.mean([rows["calms21/task3", "conv1d", s, "macro_f1"]["mean"] for s in each])
        assert rows["calms21/task3", "conv1d", f"all behaviors, {end}", "macro_f1"]["mean"] == pytest.approx(mean)
    published = {end: rows["calms21/task3", "conv1d", f"all behaviors, {end}", "macro_f1"]["published"] for end in TRANSFERS_OF_TASK3}
    assert published == {"fine-tuned": None, "fine-tuned, undecoded": 0.3378}  # theirs are of the most probable behavior of each frame
    head, lines = layout_summary(list(rows.values()))
    assert head[:4] == ["dataset", "model", "setting", "macro_f1"]
    assert "published 0.793" in next(line for line in lines if line[1:3] == ["conv1d", "baseline"])[3]


@pytest.mark.slow
def test_tasks_two_and_three_are_initialized_from_the_network_of_task_one(store):
    jobs = {key: store.job(key) for key in store.finished()}
    pretrained = {key for key, job in jobs.items() if job.setting == Setting("augmented")}
    for key, job in jobs.items():
        if job.dataset != "calms21/task1" and job.setting.transfer != "conditioned":
            assert job.initial_job in pretrained
            assert jobs[job.initial_job].seed == job.seed
        if job.setting.transfer == "zero-shot":
            assert job.params["epochs"] == job.params["head_epochs"] == 0
        if job.dataset == "calms21/task3":
            assert len(job.behaviors) == 2
            assert store.scores(key)["suites"]["calms21"]["state"]["behaviors"] == list(job.behaviors)


@pytest.mark.slow
def test_new_behaviors_by_frequency_and_length(store):
    rows = difficulty_table(store)
    assert len(rows) == 2
    for row in rows:
        assert 0 < row["share"] < 1
        assert row["seconds"] > 0
        assert row["bouts"] >= 1


@pytest.mark.slow
def test_differences_between_annotators_by_behavior(store):
    rows = styles_table(store)
    names = [name for name in make_dataset("pose", individuals=1, seconds=1.0).ethogram.names if name != "other"]
    assert {(row["annotator"], row["behavior"]) for row in rows} == {(person.name, name) for person in PEOPLE for name in names}
    errors = {(r["setting"], r["behavior"]): r["value"] for r in behaviors_table(store, ["onset_error"]) if r["suite"] == "ethobench"}
    for row in rows:
        late = errors[f"{row['annotator']}, zero-shot", row["behavior"]]
        assert row["later_onset"] == (None if late is None else -late)


def test_invalid_options_are_refused():
    with pytest.raises(NotFoundError, match="`tasks` must be 1, 2 or 3, got 4"):
        Calms21Options(tasks=(4,))
    with pytest.raises(EthobenchError, match="chance cannot be initialized"):
        list(Calms21(Calms21Options(tasks=(2,), models=("chance",))).jobs())
    with pytest.raises(EthobenchError, match="`recipe` must be code, paper or fast, got luck"):
        Calms21Options(recipe="luck")
    with pytest.raises(EthobenchError, match="`share` must be > 0 and <= 1, got 0"):
        Calms21Options(share=0.0)


def test_published_configurations_are_valid():
    for model, variants in VARIANTS.items():
        for params in variants.values():
            create_model(model, **params)
        assert "init" in models[model].Params.__dataclass_fields__
    published = Calms21.published()
    assert {key[1] for key in published} == set(Calms21.models)
    assert {key[2] for key in published if key[0] == "calms21/task1"} >= {s for v in VARIANTS.values() for s in v}


def test_tables_of_the_first_version_are_published_scores():
    published = Calms21.published()
    names = ("calms21/task1", "conv1d", "baseline, first version", "calms21")
    f1 = [published[(*names, f"f1 of {name}")].value for name in ("attack", "investigation", "mount")]
    assert np.mean(f1) == pytest.approx(0.7248, abs=5e-5)  # as the text says
    assert "printed as precision" in published[(*names, "recall of attack")].source
    annotators = {key[2].partition(",")[0] for key in published if key[0] == "calms21/task2" and key[2].endswith("first version")}
    assert annotators == {f"annotator-id_{number}" for number in range(1, 6)}


def test_a_share_keeps_what_is_rare():
    data = make_dataset("pose", individuals=10, seconds=30.0)
    data = replace(data, splits={r.id: "train" for r in data})
    kept = select_share(data, [r.id for r in data], 0.8, 42)
    assert len(kept) == 8
    assert kept == select_share(data, [r.id for r in data], 0.8, 42)
    assert kept != select_share(data, [r.id for r in data], 0.8, 43)


def first_jobs(task: int, recipe: str):
    """Return the pre-training jobs of a task, and the jobs that are initialized from them."""
    (plan,) = Calms21(Calms21Options(tasks=(task,), models=("conv1d",), seeds=(42,), recipe=recipe)).jobs()
    pretrained = next(plan)
    return pretrained, plan.send([Result(job, {}, "") for job in pretrained])


@pytest.mark.slow
def test_the_recipes_of_the_paper_and_of_its_code_differ(written):
    (coded,), behaviors = first_jobs(3, "code")
    assert (str(coded.setting), coded.params["past"], coded.params["frame_stride"], coded.params["augment"]) == (
        "augmented",
        50,
        1,
        ["published"],
    )
    assert {job.params["recipe"] for job in behaviors} == {"code"}
    (described,), weighed = first_jobs(3, "paper")
    assert str(described.setting) == "augmented, as in the paper"
    assert [described.params[name] for name in ("past", "future", "frame_stride")] == [100, 100, 2]
    assert described.params["augment"] == ["rotation", "translation", "reflection"]
    assert {job.params["class_weight"] for job in weighed} == {"balanced"}
    assert {job.params["decode"] for job in (*behaviors, *weighed)} == {"f1"}
    assert behavior_weight("behavior-4") == behavior_weight("mount_attempt") == 100.0


@pytest.mark.slow
def test_annotators_without_test_videos_are_skipped(written):
    data = load_dataset("calms21/task2")
    last = data.annotators[-1]
    kept = [r.id for r in data if not (last in r.annotations and data.splits[r.id] == "test")]
    with pytest.warns(UserWarning, match=f"{last}' of calms21/task2 has no test videos: skipped"):
        assert groups_with_both_splits(data.select(recordings=kept)) == [name for name in data.annotators if name != last]


def test_the_best_come_first_and_ties_go_to_precision():
    values = {
        ("d", "m", Setting(s)): {42: {"macro_f1": f, "macro_precision": p}}
        for s, f, p in (("a", 0.5, 0.1), ("b", 0.5, 0.9), ("c", np.nan, 1))
    }
    assert [setting.name for _, _, setting in rank(values)] == ["b", "a", "c"]


def test_the_fast_recipe_trains_conv1d_on_frames_in_a_row(written):
    fast = {"frames_per_example": 20, "batch": 64}
    task1, task2, _ = Calms21(Calms21Options(tasks=(1, 2), models=("conv1d", "dense"), seeds=(42,), recipe="fast")).jobs()
    jobs = next(task1)
    for job in jobs:
        is_fast = job.model == "conv1d"
        assert (job.setting.recipe, {name: job.params.get(name) for name in fast}) == (
            ("fast", fast) if is_fast else ("", dict.fromkeys(fast))
        )
        create_model(job.model, **job.params)
    (pretrained,) = next(task2)
    assert pretrained.key in {job.key for job in jobs}
    assert pretrained.keep == ("model",)
    transferred = task2.send([Result(pretrained, {})])
    assert {job.params["recipe"] for job in transferred} == {"code"}
    for job in transferred:
        assert job.setting.recipe == "fast"
        assert job.params.get("frames_per_example", 1) == (1 if job.params.get("condition") == "annotator" else 20)
    published = next(Calms21(Calms21Options(tasks=(1,), models=("conv1d",), seeds=(42,))).jobs())
    assert all(job.setting.recipe == "" and "frames_per_example" not in job.params for job in next(published))
