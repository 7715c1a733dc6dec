"""How many labels the teacher needs: simulated annotators who label what it suggests, random bouts, or one recording after the other.

Run it from the root of a checkout::

    python benchmarks/teacher.py --time                      # duration of features and of a training, for ten recordings
    python benchmarks/teacher.py --data synthetic rats seals --seeds 3 --out benchmarks/results/teacher

Individuals are divided at random into those that are labelled and those that are held out. A step of a simulated annotator is one bout,
or a few seconds without any: the annotator goes to a frame, labels the bout that is there from its start to its stop, and everything
that happens within one second before and after it. Strategies differ only in the frame:

- ``suggested``: the bouts that `Teacher.suggest` ranks first, after the first 10 bouts, which are random; trained again every few bouts;
- ``random``: random frames of random recordings;
- ``sequential``: from the beginning of the first recording to its end, then the next one.

The model of each strategy is the same and is scored on the held-out individuals. The last row of each seed has all labels.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ethobench import Annotation, Dataset, Teacher, load_dataset, score
from ethobench.core import Recording
from ethobench.features.cache import feature_cache

BUDGETS = (20, 40, 80, 160)
ROW_RATE = 5.0  # half of the default of the teacher, to save time
FIRST_BOUTS = 10
CONTEXT_SECONDS = 1.0
EMPTY_SECONDS = 4.0  # labelled where there is no bout
MAX_BOUT_SECONDS = 30.0  # of a long bout, only this much around the frame is labelled
STRATEGIES = ("suggested", "random", "sequential")
HEADER = """# Labels that the teacher needs

Simulated annotators label what the teacher suggests, random bouts, or one recording after the other. Scores are on individuals that
were not labelled; relative scores are relative to the model with all labels. Produced by `benchmarks/teacher.py`, which explains the
strategies. A row with one seed says little about the difference between two strategies. The ranking of suggestions and the settings of the
model were chosen by scores on the held-out individuals of the same splits (seeds 0 to 2 of rats and seals), so the numbers of these two
are somewhat optimistic.
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
        """Labelled bouts, without the background."""
        return sum(map(len, self.bouts.values()))

    @property
    def seconds(self) -> float:
        """Labelled time."""
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


def load(name: str, seed: int) -> tuple[Dataset, Dataset]:
    """Return recordings to label and recordings of other individuals to score, drawn at random."""
    random = np.random.default_rng(seed)
    if name == "synthetic":
        data = load_dataset("synthetic/pose", individuals=16, seconds=300, seed=100 + seed, spread=0.4)
        size, n_scored = 8, 8
    elif name == "rats":
        data = load_dataset(Path(os.environ["ETHOBENCH_DATA"]) / "rats")
        size, n_scored = 10, 10
    else:
        data = load_dataset("bebe/ladds_seals")
        data = data.select(recordings=[r.id for r in data if len(r.annotation()) > 20])
        size, n_scored = 14, 14
    groups = data.groups()
    order = [str(g) for g in random.permutation(sorted({*groups.values()}))]
    chosen: tuple[list[str], list[str]] = ([], [])
    for number, group in enumerate(order):
        chosen[number % 2].extend(r.id for r in data if groups[r.id] == group)
    return data.select(recordings=chosen[0][:size]), data.select(recordings=chosen[1][:n_scored])


def evaluate(teacher: Teacher, scored: Sequence[Recording], cache: Path) -> Mapping[str, float]:
    """Score the model of the last training on held-out recordings."""
    with feature_cache(cache, persistent=True):
        predictions = {r.id: teacher.model.predict(r).annotation for r in scored}
    return score(predictions, {r.id: r.annotation() for r in scored}, resamples=0).overall


def simulate(name: str, seed: int, cache: Path, strategies: Sequence[str] = STRATEGIES) -> Iterator[dict]:
    """Yield a row for each strategy and budget, and one for all labels."""
    pool, held_out = load(name, seed)
    scored = [r.copy(annotations={"truth": r.annotation()}) for r in held_out]
    complete = Annotator(pool)
    for recording, truth in complete.truths.items():
        complete.observe(recording, 0, truth.n_frames)
    teacher = Teacher(pool, cache=cache, seed=seed, row_rate=ROW_RATE).fit(complete.labels())
    full = {"data": name, "seed": seed, "strategy": "all", "bouts": complete.n_bouts, "seconds": complete.seconds}
    total = full | {"share_bouts": 1.0, "share_time": 1.0}
    yield total | _values(evaluate(teacher, scored, cache))
    for strategy in strategies:
        annotator, random = Annotator(pool), np.random.default_rng([seed, 1])
        teacher = Teacher(pool, cache=cache, seed=seed, row_rate=ROW_RATE)
        steps = {
            "random": lambda a=annotator, r=random: label_random(a, r),
            "sequential": lambda a=annotator, r=random: label_in_order(a, r),
            "suggested": lambda a=annotator, r=random, t=teacher: label_suggested(a, r, t),
        }[strategy]()
        budgets = [*BUDGETS]
        for _ in steps:
            if not budgets:
                break
            if annotator.n_bouts < budgets[0]:
                continue
            while budgets and annotator.n_bouts >= budgets[0]:
                budget = budgets.pop(0)
            values = {"f1": float("nan"), "bout_f1": float("nan")}
            evaluated = Teacher(pool, cache=cache, seed=seed, row_rate=ROW_RATE)
            try:
                values = _values(evaluate(evaluated.fit(annotator.labels()), scored, cache))
            except Exception as error:
                print(f"{name}, seed {seed}, {strategy}, {budget} bouts: {error}")
            yield {
                "data": name,
                "seed": seed,
                "strategy": strategy,
                "budget": budget,
                "bouts": annotator.n_bouts,
                "seconds": annotator.seconds,
                "share_bouts": annotator.n_bouts / complete.n_bouts,
                "share_time": annotator.seconds / complete.seconds,
            } | values


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
            f"frame F1 {full.f1.mean():.3f}, bout F1 {full.bout_f1.mean():.3f}.",
            "",
            "| bouts | strategy | seeds | share of bouts | share of time | frame F1 | bout F1 | relative frame F1 | relative bout F1 |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        labelled = rows[rows.strategy != "all"].copy()
        for measure in ("f1", "bout_f1"):
            labelled[f"relative_{measure}"] = labelled[measure] / full[measure].reindex(labelled.seed).to_numpy()
        for budget, same in labelled.groupby("budget"):
            for strategy in STRATEGIES:
                s = same[same.strategy == strategy]
                if len(s):
                    shares = f"{s.share_bouts.mean():.0%} | {s.share_time.mean():.0%}"
                    scores = f"{s.f1.mean():.3f} | {s.bout_f1.mean():.3f} | {s.relative_f1.mean():.0%} | {s.relative_bout_f1.mean():.0%}"
                    lines.append(f"| {budget:.0f} | {strategy} | {len(s)} | {shares} | {scores} |")
        lines.append("")
    return "\n".join(lines)


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
            print(f"{what}: {wall:.1f} s, {processor:.1f} s of processor time{aim}", flush=True)


def main() -> None:
    """Simulate annotators, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--time", action="store_true", help="only measure durations")
    parser.add_argument("--data", nargs="+", default=["synthetic"], choices=["synthetic", "rats", "seals"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strategies", nargs="+", default=[*STRATEGIES], choices=STRATEGIES)
    parser.add_argument("--out", type=Path, help="write OUT.csv and OUT.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.time:
        measure_time()
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.data:
            for seed in range(arguments.seeds):
                for row in simulate(name, seed, Path(folder), arguments.strategies):
                    print({k: round(float(v), 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
                    rows.append(row)
                    if arguments.out:  # after each row, so that an interrupted run has a result
                        write_results(pd.DataFrame(rows), arguments.out)
    print(summarize(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
