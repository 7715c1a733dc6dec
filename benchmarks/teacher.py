"""How many labels the teacher needs: simulated annotators who label what it suggests, random bouts, or one recording after the other.

Run it from the root of a checkout::

    python benchmarks/teacher.py --time                      # duration of features and of a training, for ten recordings
    python benchmarks/teacher.py --data synthetic rats seals --seeds 3 --advice --out benchmarks/results/teacher

Half of the individuals of rats and seals are for development (``--individuals development``): settings may be chosen by their scores. The
reported scores are of the other half, ``test``; synthetic data are simulated with other seeds. In each half, individuals are divided at
random, once per seed, into those that are labeled and those that are held out. A step of a simulated annotator is one bout, or a few
seconds without any: the annotator goes to a frame, labels the bout that is there from its start to its stop, and everything that happens
within one second before and after it. A bout counts as labeled if any of its frames are. Strategies differ only in the frame:

- ``suggested``: the bouts that `Teacher.suggest` ranks first, after the first 10 bouts, which are random; trained again every few bouts;
- ``random``: random frames of random recordings;
- ``sequential``: from the beginning of the first recording to its end, then the next one.

The model of each strategy is the same and is scored on the held-out individuals, when 5, 10 and 20 % of all bouts are labeled. The first
row of each seed has all labels. With ``--advice``, the rows of ``suggested`` say whether the teacher expects more labels to help.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from ethobench import Annotation, Dataset, Teacher, load_dataset, score
from ethobench.core import Recording
from ethobench.core.errors import EthobenchError
from ethobench.features.cache import feature_cache
from ethobench.models.teaching_quality import Quality

BUDGET_SHARES = (0.05, 0.1, 0.2)  # of all bouts
DIVISION_SEED = 2021  # of the individuals into development and test
ROW_RATE = 5.0  # half of the default of the teacher, to save time
FIRST_BOUTS = 10
CONTEXT_SECONDS = 1.0
EMPTY_SECONDS = 4.0  # labeled where there is no bout
MAX_RECORDINGS = 14  # that are labeled, and that are scored
MAX_BOUT_SECONDS = 30.0  # of a long bout, only this much around the frame is labeled
STRATEGIES = ("suggested", "random", "sequential")
HEADER = """# Labels that the teacher needs

Simulated annotators label what the teacher suggests, random bouts, or one recording after the other. Scores are on individuals that
were not labeled, as mean ± standard deviation over seeds; relative scores are relative to the model with all labels. Produced by
`benchmarks/teacher.py`, which explains the strategies and how individuals are divided.

The seeds of rats and seals divide the same test individuals in different ways, so they are not independent, and the spread is too small.
The present ranking and settings are from before the division into development and test: they were chosen by scores on splits of all
individuals, so the scores of rats and seals may still be optimistic. What was tried since is in `teacher_development.md`.
"""


class Annotator:
    """A person who knows the truth and labels what they are shown.

    Parameters
    ----------
    data : Dataset
        With the true annotations.
    """

    def __init__(self, data: Dataset) -> None:
        self.truths = {recording.id: recording.annotation() for recording in data}
        self.observed = {name: np.zeros(truth.n_frames, dtype=bool) for name, truth in self.truths.items()}
        self.bouts = {name: set() for name in self.truths}

    @property
    def n_bouts(self) -> int:
        """Labeled bouts, without the background."""
        return sum(map(len, self.bouts.values()))

    @property
    def seconds(self) -> float:
        """Labeled time."""
        return sum(mask.sum() / self.truths[name].rate for name, mask in self.observed.items())

    def labels(self) -> dict[str, Annotation]:
        """Return the labels so far."""
        return {name: self.truths[name].mark_unobserved(~mask) for name, mask in self.observed.items() if mask.any()}

    def label(self, name: str, start: int, stop: int) -> None:
        """Label the bouts that overlap some frames, and everything within a second of them."""
        truth = self.truths[name]
        context, longest = round(CONTEXT_SECONDS * truth.rate), round(MAX_BOUT_SECONDS * truth.rate)
        stop = min(stop, start + longest)
        for i in self._overlapping(truth, start, stop):
            start, stop = min(start, max(int(truth.start[i]), start - longest)), max(stop, min(int(truth.stop[i]), stop + longest))
        self.observe(name, max(start - context, 0), min(stop + context, truth.n_frames))

    def observe(self, name: str, start: int, stop: int) -> None:
        """Label everything in some frames."""
        self.observed[name][start:stop] = True
        self.bouts[name] |= {*self._overlapping(self.truths[name], start, stop)}

    def _overlapping(self, truth: Annotation, start: int, stop: int) -> list[int]:
        background = -1 if truth.ethogram.background is None else truth.ethogram.background
        return np.flatnonzero((truth.start < stop) & (truth.stop > start) & (truth.behavior != background)).tolist()


def label_random(annotator: Annotator, random: np.random.Generator) -> Iterator[None]:
    """Label the bout at a random frame, again and again."""
    names = list(annotator.truths)
    lengths = np.array([annotator.truths[name].n_frames for name in names], dtype=float)
    while not all(mask.all() for mask in annotator.observed.values()):
        name = names[random.choice(len(names), p=lengths / lengths.sum())]
        free = np.flatnonzero(~annotator.observed[name])
        if len(free):
            half = round(EMPTY_SECONDS / 2 * annotator.truths[name].rate)
            frame = int(random.choice(free))
            truth = annotator.truths[name]
            if annotator._overlapping(truth, frame, frame + 1):
                annotator.label(name, frame, frame + 1)
            else:
                annotator.observe(name, max(frame - half, 0), min(frame + half, truth.n_frames))
            yield


def label_in_order(annotator: Annotator, random: np.random.Generator) -> Iterator[None]:
    """Label one recording after the other, a few seconds at a time."""
    names = list(annotator.truths)
    for name in random.permutation(names):
        truth = annotator.truths[name]
        step = round(EMPTY_SECONDS * truth.rate)
        for start in range(0, truth.n_frames, step):
            annotator.observe(name, start, min(start + step, truth.n_frames))
            yield


def label_suggested(annotator: Annotator, random: np.random.Generator, teacher: Teacher) -> Iterator[None]:
    """Label random bouts first, then what the teacher suggests; train it again when the labels have grown by a fifth."""
    for _ in label_random(annotator, random):
        yield
        if annotator.n_bouts >= FIRST_BOUTS and len({b for a in annotator.labels().values() for b in a.behavior.tolist()}) > 1:
            break
    while True:
        teacher.fit(annotator.labels())
        suggestions = teacher.suggest(max(4, annotator.n_bouts // 5))
        if not suggestions:
            yield from label_random(annotator, random)
            return
        for candidate in suggestions:
            annotator.label(candidate.recording, candidate.start, candidate.stop)
            yield


def load(name: str, seed: int, individuals: str = "test") -> tuple[Dataset, Dataset]:
    """Return recordings to label and recordings of other individuals to score, drawn at random from one half of the individuals."""
    test = individuals == "test"
    if name == "synthetic":
        data = load_dataset("synthetic/pose", individuals=16, seconds=300, seed=(500 if test else 900) + seed, spread=0.4)
    elif name == "rats":
        data = load_dataset(Path(os.environ["ETHOBENCH_DATA"]) / "rats")
    else:
        data = load_dataset("bebe/ladds_seals")
        data = data.select(recordings=[r.id for r in data if len(r.annotation()) > 20])
    groups = data.groups()
    half = sorted({*groups.values()})
    if name != "synthetic":
        half = [str(group) for group in np.random.default_rng(DIVISION_SEED).permutation(half)][int(test) :: 2]
    order = [str(group) for group in np.random.default_rng([seed, 5]).permutation(half)]
    labeled, held_out = ([r.id for group in order[first::2] for r in data if groups[r.id] == group] for first in (0, 1))
    return data.select(recordings=labeled[:MAX_RECORDINGS]), data.select(recordings=held_out[:MAX_RECORDINGS])


def evaluate(teacher: Teacher, scored: Sequence[Recording], cache: Path) -> Mapping[str, float]:
    """Score the model of the last training on held-out recordings."""
    with feature_cache(cache):
        predictions = {r.id: teacher.model.predict(r).annotation for r in scored}
    return score(predictions, {r.id: r.annotation() for r in scored}, resamples=0).overall


def simulate(
    name: str,
    seed: int,
    cache: Path,
    strategies: Sequence[str] = STRATEGIES,
    *,
    individuals: str = "test",
    shares: Sequence[float] = BUDGET_SHARES,
    advice: bool = False,
) -> Iterator[dict]:
    """Yield a row for all labels, and one for each strategy and budget."""
    pool, held_out = load(name, seed, individuals)
    scored = [r.copy(annotations={"truth": r.annotation()}) for r in held_out]
    complete = Annotator(pool)
    for recording, truth in complete.truths.items():
        complete.observe(recording, 0, truth.n_frames)
    teacher = Teacher(pool, cache=cache, seed=seed, row_rate=ROW_RATE).fit(complete.labels())
    yield {
        "data": name,
        "seed": seed,
        "strategy": "all",
        "budget": 1.0,
        "bouts": complete.n_bouts,
        "seconds": complete.seconds,
        "share_bouts": 1.0,
        "share_time": 1.0,
    } | _values(evaluate(teacher, scored, cache))
    for strategy in strategies:
        annotator, random = Annotator(pool), np.random.default_rng([seed, 1])
        teacher = Teacher(pool, cache=cache, seed=seed, row_rate=ROW_RATE)
        steps = {
            "random": lambda a=annotator, r=random: label_random(a, r),
            "sequential": lambda a=annotator, r=random: label_in_order(a, r),
            "suggested": lambda a=annotator, r=random, t=teacher: label_suggested(a, r, t),
        }[strategy]()
        budgets = [*shares]
        for _ in steps:
            share = annotator.n_bouts / complete.n_bouts
            if not budgets or share < budgets[0]:
                if not budgets:
                    break
                continue
            while budgets and share >= budgets[0]:
                budget = budgets.pop(0)
            values = {"f1": float("nan"), "bout_f1": float("nan")}
            evaluated = Teacher(pool, cache=cache, seed=seed, row_rate=ROW_RATE)
            try:
                values = _values(evaluate(evaluated.fit(annotator.labels()), scored, cache))
            except EthobenchError as error:
                print(f"{name}, seed {seed}, {strategy}, {budget:.0%} of the bouts: {error}")
            if advice and strategy == "suggested" and evaluated.model is not None:
                quality = evaluated.evaluate()
                values |= {"held_out_f1": quality.f1, "gain": quality.gain, "more_labels_help": _verdict(quality)}
            yield {
                "data": name,
                "seed": seed,
                "strategy": strategy,
                "budget": budget,
                "bouts": annotator.n_bouts,
                "seconds": annotator.seconds,
                "share_bouts": share,
                "share_time": annotator.seconds / complete.seconds,
            } | values


def _verdict(quality: Quality) -> str:
    """Return what the teacher says about more labels, in a word."""
    if quality.gain is None:
        return "withheld"
    return {True: "help", False: "hardly help", None: "not clear"}[quality.more_labels_help]


def _values(overall: Mapping[str, float]) -> dict[str, float]:
    return {name: float(np.nan_to_num(overall[name])) for name in ("f1", "bout_f1")}


def summarize(table: pd.DataFrame) -> str:
    """Return the mean scores over seeds as Markdown, relative to those of all labels."""
    lines = []
    for name, rows in table.groupby("data", sort=False):
        full = rows[rows.strategy == "all"].set_index("seed")
        lines += [
            f"## {name}",
            "",
            f"All labels ({full.bouts.mean():.0f} bouts, {full.seconds.mean() / 60:.0f} min; seeds: {len(full)}): "
            f"frame F1 {_spread(full.f1)}, bout F1 {_spread(full.bout_f1)}.",
            "",
            "| bouts | strategy | seeds | number | minutes | frame F1 | bout F1 | relative frame F1 | relative bout F1 |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        labeled = rows[rows.strategy != "all"].copy()
        for measure in ("f1", "bout_f1"):
            labeled[f"relative_{measure}"] = labeled[measure] / full[measure].reindex(labeled.seed).to_numpy()
        for budget, same in labeled.groupby("budget"):
            for strategy in STRATEGIES:
                s = same[same.strategy == strategy]
                if len(s):
                    effort = f"{s.bouts.mean():.0f} | {s.seconds.mean() / 60:.1f} ({s.share_time.mean():.0%})"
                    relative = f"{_spread(s.relative_f1, percent=True)} | {_spread(s.relative_bout_f1, percent=True)}"
                    scores = f"{_spread(s.f1)} | {_spread(s.bout_f1)} | {relative}"
                    lines.append(f"| {budget:.0%} | {strategy} | {len(s)} | {effort} | {scores} |")
        lines.append("")
    return "\n".join([*lines, *_summarize_advice(table)])


def _summarize_advice(table: pd.DataFrame) -> list[str]:
    """Return, for what the teacher said about more labels, what more labels changed, as lines of Markdown."""
    if "more_labels_help" not in table:
        return []
    full = table[table.strategy == "all"].set_index(["data", "seed"]).f1
    judged = table[table.more_labels_help.notna()].sort_values(["data", "seed", "budget"]).copy()
    judged["next_gain"] = judged.groupby(["data", "seed"]).f1.shift(-1) - judged.f1
    judged["full_gain"] = full.reindex(pd.MultiIndex.from_frame(judged[["data", "seed"]])).to_numpy() - judged.f1
    lines = [
        "## What the teacher says about more labels",
        "",
        "By cross-validation of the labels of `suggested`, and the change of the frame F1 on held-out individuals that followed: at the",
        "next budget, which is a doubling, and with all labels. Mean (minimum to maximum).",
        "",
        "| more labels would | cases | expected from the last doubling | change at the next doubling | change with all labels |",
        "|---|---|---|---|---|",
    ]
    for verdict, rows in judged.groupby("more_labels_help"):
        ranges = " | ".join(_range(rows[column]) for column in ("gain", "next_gain", "full_gain"))
        lines.append(f"| {verdict} | {len(rows)} | {ranges} |")
    return [*lines, ""]


def _range(values: pd.Series) -> str:
    values = values.astype(float).dropna()
    return f"{values.mean():+.3f} ({values.min():+.3f} to {values.max():+.3f}; n = {len(values)})" if len(values) else "none"


def _spread(values: pd.Series, *, percent: bool = False) -> str:
    """Return mean and standard deviation, or the value alone if there is one."""
    mean, deviation = values.mean(), values.std()
    text = f"{mean:.0%}" if percent else f"{mean:.3f}"
    if len(values) < 2:
        return text
    return f"{text} ± {deviation:.0%}" if percent else f"{text} ± {deviation:.3f}"


def write_results(table: pd.DataFrame, out: Path) -> None:
    """Write the table as CSV, and its summary as Markdown."""
    table.to_csv(out.with_suffix(".csv"), index=False, float_format="%.4f")
    out.with_suffix(".md").write_text(f"{HEADER}\n{summarize(table)}", encoding="utf-8")


def measure_time() -> None:
    """Print the duration of features and of a training for ten recordings of ten minutes with two animals at 30 Hz."""
    data = load_dataset("synthetic/pose", individuals=10, seconds=600)
    for recording in data:
        assert recording.signals is not None
    annotator = Annotator(data)
    for name in list(annotator.truths)[:5]:
        annotator.observe(name, 0, 3000)
    with tempfile.TemporaryDirectory() as folder:
        teacher = Teacher(data, cache=folder)
        for what, run, limit in (
            ("features of ten recordings", teacher.prepare, 30),
            ("first training and predictions", lambda: teacher.fit(annotator.labels()), 5),
            ("second training and predictions", lambda: teacher.fit(annotator.labels()), 5),
            ("held-out quality (in the background)", teacher.evaluate, None),
            ("20 suggestions", lambda: teacher.suggest(20), None),
            ("20 similar segments", lambda: teacher.find_similar("animal01", 100, 200, 20), None),
            ("12 clusters", lambda: teacher.clusters(12), None),
        ):
            wall, processor = time.perf_counter(), time.process_time()
            run()
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            aim = "" if limit is None else f" (aim: {limit} s)"
            load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
            print(
                f"{what}: {wall:.1f} s by the clock, {processor:.1f} s of processor time, {load} on {os.cpu_count()} cores{aim}", flush=True
            )


def main() -> None:
    """Simulate annotators, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--time", action="store_true", help="only measure durations")
    parser.add_argument("--data", nargs="+", default=["synthetic"], choices=["synthetic", "rats", "seals"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--individuals", default="test", choices=["development", "test"])
    parser.add_argument("--strategies", nargs="+", default=[*STRATEGIES], choices=STRATEGIES)
    parser.add_argument("--budgets", nargs="+", type=float, default=[*BUDGET_SHARES], help="shares of all bouts that are labeled")
    parser.add_argument("--advice", action="store_true", help="also measure whether more labels would help, as the teacher says")
    parser.add_argument("--cache", type=Path, help="folder for features; by default a temporary one")
    parser.add_argument("--out", type=Path, help="write OUT.csv and OUT.md; data and seeds that OUT.csv has are not simulated again")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.time:
        measure_time()
        return
    rows = []
    if arguments.out and arguments.out.with_suffix(".csv").exists():
        rows = pd.read_csv(arguments.out.with_suffix(".csv")).to_dict("records")
    with tempfile.TemporaryDirectory() as folder:
        for name, seed in product(arguments.data, range(arguments.seeds)):
            if any((row["data"], row["seed"]) == (name, seed) for row in rows):
                continue
            options = {"individuals": arguments.individuals, "shares": sorted(arguments.budgets), "advice": arguments.advice}
            simulated = []
            for row in simulate(name, seed, arguments.cache or Path(folder), arguments.strategies, **options):
                print({k: round(float(v), 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
                simulated.append(row)
            rows += simulated
            if arguments.out:
                write_results(pd.DataFrame(rows), arguments.out)
    print(summarize(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
