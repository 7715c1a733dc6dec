"""Rodent-Bench from answers to table, compared with an independent implementation of its published rules."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef, mutual_info_score
from tests.datasets.test_rodentbench import write_segments
from tests.mllm.drawing import plain_video
from tests.mllm.stubs import GeminiStub, Say

from ethobench import load_dataset
from ethobench.benchmarks import results_table
from ethobench.benchmarks.results import final_jobs
from ethobench.benchmarks.rodentbench import RodentBench, RodentBenchOptions, request_answers
from ethobench.benchmarks.rodentbench_tables import as_markdown, draw_label_shares, standard_error, summarize
from ethobench.core.errors import EthobenchError, MissingDataError, NotFoundError
from ethobench.mllm.cost import BudgetError
from ethobench.runs import Engine, Store
from ethobench.runs.plan import plan_at_once
from ethobench.runs.worker import load_cached

TRUTHS = {
    "freezing": {
        "v1": [(0, 20, "Not Freezing"), (20, 40, "Freezing"), (40, 60, "Not Freezing")],
        "v2": [(0, 30, "Freezing"), (30, 50, "Not Freezing")],
        "v3": [(0, 45, "Not Freezing"), (45, 70, "Freezing")],
    },
    "grooming": {"g1": [(0, 10, "other"), (10, 30, "grooming")], "g2": [(0, 25, "grooming"), (25, 90, "other")]},
}
ANSWERS = {
    "freezing": {
        "v1": [(0, 25, "Not Freezing"), (25, 40, "Freezing"), (40, 60, "Not Freezing")],
        "v2": "I cannot watch videos.",
        "v3": [(0, 50, "not freezing"), (50, 70, "FREEZING")],
    },
    "grooming": {"g1": [(0, 12, "other"), (12, 30, "grooming")], "g2": [(0, 90, "other")]},
}


def text_of(rows) -> str:
    if isinstance(rows, str):
        return rows
    return json.dumps({"segments": [{"start_time": a, "end_time": b, "behavior": name} for a, b, name in rows]})


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Path:
    """Return a folder with annotations in ``data/`` and answers in ``answers/``."""
    load_cached.cache_clear()
    monkeypatch.setenv("ETHOBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GEMINI_API_KEY", "not-a-real-key")
    for name, videos in TRUTHS.items():
        for video, rows in videos.items():
            write_segments(tmp_path / "data/rodentbench" / name / "annotations" / f"{video}.json", *rows)
            path = tmp_path / "answers" / name / f"{video}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text_of(ANSWERS[name][video]), encoding="utf-8")
    return tmp_path


def run(store: Store, planned):
    return Engine(store, lambda: ThreadPoolExecutor(1), 1).run(planned)


def benchmark(**options) -> RodentBench:
    return RodentBench(RodentBenchOptions(**options))


def by_second(rows, n: int) -> list[str]:
    """Label seconds as the published evaluator does."""
    return [next((name for a, b, name in rows if a <= second < b), "background") for second in range(n)]


def oracle(truth, pred) -> dict[str, float]:
    """Score one video as the published evaluator does."""
    n = max(int(max(b for _, b, _ in truth)), int(max((b for _, b, _ in pred), default=0))) + 1
    gt, guess = by_second(truth, n), by_second(pred, n)
    labels = sorted({*gt, *guess} - {"background"})
    f1 = []
    for label in labels:
        tp = sum(a == b == label for a, b in zip(gt, guess, strict=True))
        either = sum(a == label for a in gt) + sum(b == label for b in guess)
        f1.append(2 * tp / either if either else 0.0)
    return {
        "accuracy": float(np.mean([a == b for a, b in zip(gt, guess, strict=True)])),
        "macro_f1": float(np.mean(f1)),
        "mcc": float(matthews_corrcoef(gt, guess)),
        "mutual_information": float(mutual_info_score(gt, guess)),
    }


def parsed_answer(name: str, video: str) -> list[tuple[float, float, str]]:
    answer = ANSWERS[name][video]
    if isinstance(answer, str):
        return []
    labels = {label.lower(): label for label in ("Freezing", "Not Freezing", "grooming", "other")}
    return [(a, b, labels[label.lower()]) for a, b, label in answer]


@pytest.mark.slow
def test_replayed_answers_are_scored_as_published(bench):
    store = Store(bench / "store")
    result = run(store, benchmark(provider="replay", answers=bench / "answers").jobs())
    assert (result.done, result.failed) == (2 * 5 * (1 + 1 + 5 + 5), {})
    lines = as_markdown(summarize(store)).splitlines()
    assert len(lines) == 2 + 2 * 2 * 4 + 2 * 4
    assert "1 (33%) | label 2 |" in next(line for line in lines if "freezing | short, replay" in line)
    rows = {(r["dataset"], r["setting"], r["metric"]): r for r in summarize(store)}
    for version in ("short", "long"):
        for name, videos in TRUTHS.items():
            each = [oracle(truth, parsed_answer(name, video)) for video, truth in videos.items()]
            for metric in each[0]:
                row = rows[f"rodentbench/{name}", f"{version}, replay", metric]
                values = [figures[metric] for figures in each]
                assert row["mean"] == pytest.approx(np.mean(values)), metric
                assert row["se"] == pytest.approx(np.std(values) / np.sqrt(len(values) - 1))
                assert row["n"] == len(videos)
    freezing = rows["rodentbench/freezing", "short, replay", "mcc"]
    assert (freezing["failed"], freezing["failure_rate"]) == (1, pytest.approx(1 / 3))
    assert freezing["repairs"] == {"label": 2}
    assert {f"short, chance: {kind}" for kind in ("majority", "random", "renewal")} <= {setting for _, setting, _ in rows}
    draws: dict[int, list[tuple[str, float]]] = {}
    for _, job, scores in final_jobs(store):
        if (job.dataset, str(job.setting)) == ("rodentbench/freezing", "short, chance: renewal"):
            accuracy = scores["suites"]["rodentbench"]["overall"]["accuracy"]
            draws.setdefault(job.seed, []).append((job.test[0], accuracy))
    assert sorted(draws) == [0, 1, 2, 3, 4]
    videos = np.mean([[f for _, f in sorted(each)] for each in draws.values()], axis=0)
    row = rows["rodentbench/freezing", "short, chance: renewal", "accuracy"]
    assert (row["mean"], row["se"]) == (pytest.approx(videos.mean()), pytest.approx(videos.std() / np.sqrt(2)))
    table = {(r["dataset"], r["setting"], r["suite"], r["metric"]): r for r in results_table(store)}
    same = table["rodentbench/freezing", "short, replay", "rodentbench", "mcc"]
    assert same["mean"] == pytest.approx(freezing["mean"])
    assert ("rodentbench/freezing", "short, replay", "ethobench", "f1") in table

    weights = {}
    for name, videos in TRUTHS.items():
        seconds = [label for truth in videos.values() for label in by_inclusive_second(truth)]
        share = np.array([seconds.count(label) / len(seconds) for label in {*seconds}])
        weights[name] = (-(share * np.log(share)).sum() + 1e-8) * len(seconds)
    total = sum(weights.values())
    expected = sum(w / total * rows[f"rodentbench/{name}", "short, replay", "mcc"]["mean"] for name, w in weights.items())
    assert rows["(all, weighted by entropy)", "short, replay", "mcc"]["mean"] == pytest.approx(expected)

    dropped = {(r["dataset"], r["setting"], r["metric"]): r for r in summarize(store, failures="drop")}
    kept = [oracle(TRUTHS["freezing"][v], parsed_answer("freezing", v))["mcc"] for v in ("v1", "v3")]
    assert dropped["rodentbench/freezing", "short, replay", "mcc"]["mean"] == pytest.approx(np.mean(kept))
    assert dropped["rodentbench/freezing", "short, replay", "mcc"]["failed"] == 1


def by_inclusive_second(rows) -> list[str]:
    """Label seconds as the published weights do: a segment's last second is its own."""
    last = int(max(b for _, b, _ in rows))
    return [next((name for a, b, name in rows if a <= second <= b), "background") for second in range(last + 1)]


@pytest.mark.slow
def test_the_published_parsing_of_answers(bench):
    store = Store(bench / "store")
    options = {"datasets": ("freezing",), "versions": ("short",), "provider": "replay", "answers": bench / "answers"}
    jobs = benchmark(**options, reading="published").plan_jobs()
    run(store, [plan_at_once([job for job in jobs if job.model == "mllm"])])
    row = next(r for r in summarize(store, failures="drop") if r["metric"] == "mcc" and r["dataset"] != "(all, weighted by entropy)")
    raw = [oracle(TRUTHS["freezing"][v], ANSWERS["freezing"][v])["mcc"] for v in ("v1", "v3")]  # labels count as they are written
    assert row["mean"] == pytest.approx(np.mean(raw))
    assert row["setting"] == "short, replay, published reading"


@pytest.mark.slow
def test_human_agreement_where_two_people_annotated(bench):
    folder = bench / "data/rodentbench/freezing/annotations"
    for video, rows in TRUTHS["freezing"].items():
        (folder / f"{video}.json").unlink()
        for person, late in (("anna", 0), ("ben", 3)):
            write_segments(folder / person / f"{video}.json", *[(a + late * (a > 0), b + late * (b < rows[-1][1]), n) for a, b, n in rows])
    store = Store(bench / "store")
    options = {"datasets": ("freezing",), "versions": ("long",), "provider": "replay", "answers": bench / "answers"}
    run(store, benchmark(**options, annotator="anna").jobs())
    rows = {(r["setting"], r["metric"]): r for r in summarize(store)}
    row = rows["long, replay", "kappa beside people"]
    assert 0.7 < row["human"] < 1
    assert row["mean"] < row["human"]
    with pytest.raises(EthobenchError, match="choose one of: anna, ben"):
        benchmark(datasets=("freezing",)).plan_jobs()


def test_jobs_never_train_on_test_animals_and_depend_on_their_answers(bench):
    options = {"datasets": ("freezing",), "versions": ("long",), "provider": "replay", "models": ("a", "b"), "answers": bench / "models"}
    for model in ("a", "b"):
        (bench / "models" / model).mkdir(parents=True)
        (bench / "models" / model / "freezing.jsonl").write_text('{"recording": "v1", "text": "[]"}\n', encoding="utf-8")
    planned = benchmark(**options).plan_jobs()
    assert len(planned) == 3 * (2 + 1 + 5 + 5)
    assert len({job.key for job in planned}) == len(planned)
    assert all(len(job.test) == 1 and not {*job.train} & {*job.test} for job in planned)
    assert {str(job.setting) for job in planned if job.model == "mllm"} == {"long, a", "long, b"}
    (bench / "models/a/freezing.jsonl").write_text('{"recording": "v1", "text": "{}"}\n', encoding="utf-8")
    changed = {job.key for job in benchmark(**options).plan_jobs()} ^ {job.key for job in planned}
    assert len(changed) == 2 * 3  # those of model a, before and after


def test_invalid_options_are_refused(bench, tmp_path, monkeypatch):
    with pytest.raises(NotFoundError, match="no dataset rodentbench/cats"):
        benchmark(datasets=("cats",)).plan_jobs()
    with pytest.raises(EthobenchError, match="`versions` must be long or short, got tiny"):
        benchmark(versions=("tiny",))
    with pytest.raises(EthobenchError, match="need a `provider`"):
        benchmark(models=("gemini-2.5-flash",))
    with pytest.raises(EthobenchError, match="`answers` needs provider 'replay'"):
        benchmark(provider="gemini", answers=tmp_path)
    with pytest.raises(EthobenchError, match=r"freezing does not exist: put the answers on rodentbench/freezing there"):
        benchmark(datasets=("freezing",), provider="replay", answers=tmp_path / "nowhere").plan_jobs()
    with pytest.raises(EthobenchError, match="`failures` must be count or drop"):
        summarize(Store(tmp_path / "s"), failures="hide")
    monkeypatch.setenv("ETHOBENCH_DATA", str(tmp_path / "empty"))
    with pytest.raises(MissingDataError, match="put videos into"):
        benchmark().plan_jobs()


@pytest.mark.slow
def test_requests_are_sent_first_within_a_budget_and_jobs_read_the_answers(bench):
    (bench / "data/rodentbench/freezing/videos").mkdir()
    for video, rows in TRUTHS["freezing"].items():
        plain_video(bench / f"data/rodentbench/freezing/videos/{video}.mp4", seconds=rows[-1][1], rate=2)
    store = Store(bench / "store")
    with GeminiStub(always=Say(text_of([(0, 60, "Freezing")]))) as stub:
        options = {"datasets": ("freezing",), "versions": ("short",), "provider": "gemini", "models": ("gemini-2.5-flash",)}
        jobs = benchmark(**options, base_url=stub.url).plan_jobs()
        planned = [job for job in jobs if job.model == "mllm"]
        with pytest.raises(BudgetError, match="stopped before"):
            request_answers(planned, max_cost=0.01)
        assert not stub.questions
        lines: list[str] = []
        assert request_answers(planned, max_cost=5.0, report=lines.append) == pytest.approx(3 * (1000 * 0.3 + 250 * 2.5) / 1e6)
        assert len(stub.questions) == len(lines) == 3
        result = run(store, [plan_at_once(planned)])
        assert (result.done, result.failed, len(stub.questions)) == (3, {}, 3)
    assert next(r for r in summarize(store) if r["metric"] == "accuracy")["setting"] == "short, gemini-2.5-flash"


@pytest.mark.slow
def test_error_bars_and_charts(bench, tmp_path):
    assert standard_error([1.0, 2.0, 4.0]) == pytest.approx(np.std([1, 2, 4]) / np.sqrt(2))
    data = [load_dataset(f"rodentbench/{name}") for name in TRUTHS]
    draw_label_shares(data, tmp_path / "shares.svg")
    drawn = (tmp_path / "shares.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    with pytest.raises(EthobenchError, match="already exists"):
        draw_label_shares(data, tmp_path / "shares.svg")


@pytest.mark.slow
def test_supervised_baseline_on_motion_features(tmp_path, monkeypatch):
    """Videos in which an animal freezes and runs: a model trained on the other videos beats every kind of chance."""
    from tests.training.test_video_embedding import draw

    load_cached.cache_clear()
    monkeypatch.setenv("ETHOBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "data/rodentbench/freezing"
    (root / "videos").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(4):
        durations = rng.integers(3, 8, size=8)
        stops = np.cumsum(durations)
        labels = ["Freezing", "Not Freezing"] * 4
        rows = [(int(stop - n), int(stop), label) for stop, n, label in zip(stops, durations, labels, strict=True)]
        write_segments(root / "annotations" / f"v{number}.json", *rows)
        draw(root / "videos" / f"v{number}.mp4", [3 * (i % 2) for i, n in enumerate(durations) for _ in range(10 * n)], seed=number)
    store = Store(tmp_path / "store")
    run(store, benchmark(supervised="boost", versions=("short",)).jobs(store))
    rows = [row for row in summarize(store) if row["dataset"] == "rodentbench/freezing" and row["metric"] == "mcc"]
    supervised = [row["mean"] for row in rows if "boost on motion features" in str(row["setting"])]
    others = [row["mean"] for row in rows if "chance" in str(row["setting"])]
    assert len(supervised) == 1
    assert len(others) == 3
    assert supervised[0] > max(0.5, *others)
    data = load_dataset("rodentbench/freezing", features="motion")
    assert data.recordings[0].signals.is_features


def test_supervised_baseline_needs_videos(bench):
    with pytest.raises(EthobenchError, match="needs the video of 'v1'"):
        list(benchmark(datasets=("freezing",), supervised="boost").jobs())
