"""Measure the speed of scoring relative to other packages, as ratios of CPU time in one run.

    make bench

Prints one table; `--quick` uses a tenth of the frames. Needs the dev extras (banos, scikit-learn).
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import ethobench as eb
from ethobench import Annotation, Ethogram, Prediction, banos

NAMES = ["attack", "investigation", "mount", "other"]
ETHOGRAM = Ethogram(NAMES, "other")


def codes(n: int, seed: int, mean: int = 60) -> np.ndarray:
    generator = np.random.default_rng(seed)
    lengths = generator.geometric(1 / mean, 2 * n // mean + 10)
    return np.repeat(generator.integers(0, 4, len(lengths)).astype(np.uint8), lengths)[:n]


def noisy(truth: np.ndarray, seed: int) -> np.ndarray:
    """Shift every border by three frames, and replace some bouts."""
    generator = np.random.default_rng(seed)
    changed = np.roll(truth, 3)
    for start in generator.integers(0, len(truth) - 50, len(truth) // 600):
        changed[start : start + 40] = generator.integers(0, 4)
    return changed


def onehot(values: np.ndarray) -> np.ndarray:
    return (values[:, None] == np.arange(4)).astype(np.uint8)


def cpu(function, repeats: int = 3) -> float:
    """Return the minimum CPU time of several runs, without the garbage collector, like `timeit`."""
    best = float("inf")
    gc.collect()
    gc.disable()
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    gc.enable()
    return best


def all_of(scores) -> None:
    scores.overall  # noqa: B018 - scores are computed on access
    scores.behaviors  # noqa: B018


def row(name: str, mine: float, theirs: float | None, target: str) -> None:
    ratio = "" if theirs is None else f"{theirs / mine:,.0f}x"
    peer = "" if theirs is None else f"{theirs:9.3f} s"
    print(f"{name:72} {mine:9.4f} s  {peer:>11}  {ratio:>9}  {target}", flush=True)


def against_banos(n: int) -> None:
    import banos as original

    for mean in (60, 30, 15):
        truth = codes(n, 0, mean)
        tables = [pd.DataFrame(onehot(side), columns=NAMES) for side in (noisy(truth, 1), truth)]
        mine = cpu(lambda tables=tables: banos.score(*tables), 20)
        start = time.process_time()
        theirs = original.score(*tables)
        spent = time.process_time() - start
        assert banos.score(*tables) == theirs
        row(f"banos: four metrics, {n:.0e} frames x 4, uint8, bouts of {mean} frames", mine, spent, ">= 3,000x")


def against_banos_on_its_data() -> None:
    import banos as original

    folder = Path(os.environ.get("ETHOBENCH_DATA", "")) / "banos"
    pairs = {}
    for recording in sorted(folder.glob("Recording_*")):
        truth, pred = (pd.read_csv(recording / f"humanAnnotation_{k}.csv") for k in (1, 2))
        pairs[recording.name] = (pred, truth)
    if not pairs:
        print("banos on its ten recordings: skipped, since $ETHOBENCH_DATA has no banos folder")
        return
    mine = cpu(lambda: banos.score(pairs), 50)
    row("banos: its ten recordings, loaded DataFrames", mine, cpu(lambda: original.score(pairs), 3), ">= 300x")


def against_sklearn_frames(n: int) -> None:
    from sklearn import metrics as sk

    truth = codes(n, 0)
    pred = noisy(truth, 1)
    suite = ("frames.f1", "frames.mcc_all", "frames.kappa_all")

    def ours() -> None:
        a, b = (Annotation.from_frames(side, ETHOGRAM, 30) for side in (pred, truth))
        scored = eb.score(a, b, resamples=0)
        for measure in scored.suite.measures:
            if measure.metric in suite:
                scored.evaluate(measure)

    def sklearn() -> None:
        for k in range(4):
            sk.f1_score(truth == k, pred == k)
        sk.matthews_corrcoef(truth, pred)
        sk.cohen_kappa_score(truth, pred)
        sk.confusion_matrix(truth, pred)

    row(f"scikit-learn: frame counts, F1 x 4, MCC, kappa, {n:.0e} frames", cpu(ours), cpu(sklearn, 1), ">= 100x")
    a, b = (Annotation.from_frames(side, ETHOGRAM, 30) for side in (pred, truth))
    from_bouts = cpu(lambda: [eb.score(a, b, resamples=0).evaluate(m) for m in eb.score(a, b).suite.measures if m.metric in suite])
    row("  the same from bouts, as files contain them", from_bouts, None, "")


def against_sklearn_probabilities(n: int) -> None:
    from sklearn import metrics as sk

    truth = codes(n, 0)
    generator = np.random.default_rng(0)
    scores = generator.random((n, 4), dtype=np.float32)
    scores[np.arange(n), truth] += 0.3
    scores /= scores.sum(axis=1, keepdims=True)
    annotation = Annotation.from_frames(truth, ETHOGRAM, 30)
    prediction = Prediction(scores, ETHOGRAM, 30, annotation=annotation, exclusive=True)

    def ours() -> None:
        scored = eb.score(prediction, annotation, resamples=0)
        for measure in scored.suite.measures:
            if measure.metric in ("probabilities.average_precision", "probabilities.auroc"):
                scored.evaluate(measure)

    def sklearn() -> None:
        for k in range(4):
            sk.average_precision_score(truth == k, scores[:, k])
            sk.roc_auc_score(truth == k, scores[:, k])

    row(f"scikit-learn: AP and AUROC x 4, {n:.0e} frames, float32", cpu(ours, 2), cpu(sklearn, 1), ">= 10x")


def bootstrap() -> None:
    pairs = {}
    for i in range(100):
        truth = codes(9000, i)
        pairs[f"r{i}"] = tuple(Annotation.from_frames(side, ETHOGRAM, 30) for side in (noisy(truth, i + 1), truth))

    def intervals(kinds: tuple[str, ...]) -> float:
        scores = eb.score(pairs)
        chosen = [m for m in scores.suite.measures if m.metric.kind in kinds and not m.metric.probabilistic]
        for measure in chosen:
            scores.statistics(measure)
        from ethobench.metrics.bootstrap import confidence_interval

        def once() -> None:
            scores._aggregators.clear()
            for measure in chosen:
                confidence_interval(np.append(*scores.evaluate(measure)), scores.resampled(measure), 100, measure.metric.bounds)

        return cpu(once)

    row("10,000 resamples, 100 recordings, 4 behaviors: additive and per recording", intervals(("counts", "rows")), None, "< 0.5 s")
    from ethobench.metrics import probabilities
    from ethobench.metrics.base import Measure
    from ethobench.metrics.bootstrap import resampling_weights
    from ethobench.metrics.evaluation import Aggregator, Grouping

    histograms = np.random.default_rng(0).integers(0, 20, (100, 4, 3 * probabilities.BINS)).astype(float)
    sample = Grouping(np.eye(100), np.ones(4, dtype=bool), np.ones(4, dtype=bool))

    def once() -> None:
        resampler = Aggregator(sample, resampling_weights(100, 1000))
        for name in ("average_precision", "auroc", "calibration_error"):
            resampler.evaluate(Measure(name, f"probabilities.{name}"), histograms)

    row("1,000 resamples of 1,000-bin probability histograms: AP, AUROC, calibration", cpu(once), None, "< 1 s")


def growth() -> None:
    sizes = [10**5, 10**6, 10**7]
    times = []
    for n in sizes:
        truth = codes(n, 0)
        pred = noisy(truth, 1)
        times.append(
            cpu(
                lambda pred=pred, truth=truth: all_of(
                    eb.score(*(Annotation.from_frames(s, ETHOGRAM, 30) for s in (pred, truth)), resamples=0)
                ),
                2,
            )
        )
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    details = ", ".join(f"{t:.3f} s at {n:.0e}" for n, t in zip(sizes, times, strict=True))
    print(f"{'growth: all metrics of the default suite from frames':72} slope {slope:.2f} ({details})  <= 1.1", flush=True)


MEMORY = """
import sys
sys.path.insert(0, {here!r})
import speed
from ethobench import Annotation
import ethobench as eb

def peak():  # of this process; ru_maxrss starts with that of the parent
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

truth = speed.codes({n}, 0)
frames = [speed.onehot(speed.noisy(truth, 1)), speed.onehot(truth)]
del truth
size = sum(f.nbytes for f in frames)
open("/proc/self/clear_refs", "w").write("5")
before = peak()
a, b = (Annotation.from_frames(f, speed.ETHOGRAM, 30) for f in frames)
speed.all_of(eb.score(a, b, resamples=0))
print(size, before, peak())
"""


def memory(n: int) -> None:
    code = MEMORY.format(here=str(Path(__file__).parent), n=n)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    size, before, peak = map(int, done.stdout.split())
    name = f"memory: added by scoring to {n:.0e} x 4 uint8 frames on both sides"
    print(f"{name:72} {(peak - before) / size:.2f}x the input ({size / 1e6:.0f} MB)  <= 3x, input included")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the frames")
    scale = 10 if parser.parse_args().quick else 1
    print(f"{'case':72} {'ours':>11}  {'theirs':>11}  {'ratio':>9}  target")
    against_banos(10**6 // scale)
    against_banos_on_its_data()
    against_sklearn_frames(10**7 // scale)
    against_sklearn_probabilities(10**7 // scale)
    bootstrap()
    growth()
    memory(10**7 // scale)
    print(f"peak memory of this run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
