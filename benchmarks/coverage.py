"""Simulate the coverage of 95 % intervals, and how often equally good models are called different.

Run: ``python benchmarks/coverage.py`` (about five minutes on one core); writes ``benchmarks/results/coverage.csv`` and ``coverage.md``.

The population of animals is simulated as the sufficient statistics of the scorer (correct, false and missed frames and bouts of three
behaviors of different frequency), from beta-distributed recall and precision of each animal, numbers of bouts that differ between
animals, and recordings of different lengths. The true value of a score is that of 200,000 animals. Studies of n animals are sampled from
it, and the metrics of the package compute their scores, resamples and intervals.
"""

from __future__ import annotations

import csv
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri, stdtrit

from ethobench.metrics import all_metrics
from ethobench.metrics.base import Array, nanmean
from ethobench.metrics.bootstrap import MIN_GROUPS, Resampled, confidence_interval, has_spread, probability_higher
from ethobench.metrics.bouts import FINE_WIDTH, N_BINS, N_COARSE, N_FINE

RESULTS = Path(__file__).parent / "results"
SIZES = (2, 3, 4, 5, 7, 10, 30)
STUDIES = 2_000
RESAMPLES = 1_000
BATCH = 250
POPULATION = 200_000
METRICS = all_metrics()
BOUTS = np.array([40.0, 15.0, 6.0])  # mean number of bouts of the three behaviors in a recording of mean length
SHIFT_RESAMPLES, SHIFT_BATCH = 400, 20


@dataclass(frozen=True)
class Population:
    """Differences between animals.

    Attributes
    ----------
    mean, concentration : float
        Parameters of the beta distribution of how well the behavior of an animal is recognized.
    size : float
        Standard deviation of the logarithm of the recordings' lengths.
    failing : float
        Share of animals on which the model fails (mean 0.2).
    showing : float
        Share of animals that show a behavior.
    """

    mean: float
    concentration: float
    size: float = 0.5
    failing: float = 0.0
    showing: float = 1.0


POPULATIONS = {
    "similar animals": Population(0.75, 60, size=0.2),
    "typical": Population(0.75, 10),
    "very different animals": Population(0.70, 3, size=0.8),
    "nearly perfect": Population(0.96, 12),
    "poor": Population(0.30, 8),
    "each behavior in half of the animals": Population(0.75, 10, showing=0.5),
    "fails on one animal in five": Population(0.90, 30, failing=0.2),
}
SCORES = {  # statistics, metric, behaviors averaged (pooled counts), or mean over individuals
    "f1": ("frames", "frames.f1", (0, 1, 2)),
    "kappa": ("frames", "frames.kappa", (0, 1, 2)),
    "precision of the first behavior": ("frames", "frames.precision", (0,)),
    "f1 of the rarest behavior": ("frames", "frames.f1", (2,)),
    "bout_f1": ("bouts", "bouts.f1", (0, 1, 2)),
    "so": ("bouts", "bouts.overlap", (0, 1, 2)),
    "time_error": ("times", "budgets.time_error", (0, 1, 2)),
    "f1 of bebe (mean over individuals)": ("bebe", "bebe.f1", ()),
}
METHODS = ("percentile", "expanded percentile", "BCa", "t", "ethobench")


def draw_ability(population: Population, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Sample how well the behavior of animals is recognized; shape (..., 1)."""
    a, b = population.mean * population.concentration, (1 - population.mean) * population.concentration
    ability = np.where(random.random(shape) < population.failing, random.beta(2, 8, shape), random.beta(a, b, shape))
    return np.clip(ability, 0.02, 0.98)[..., None]


def draw_truth(population: Population, shape: tuple[int, ...], random: np.random.Generator) -> tuple[Array, Array]:
    """Sample the lengths of recordings (..., 1) and the number of true bouts of each behavior (..., 3)."""
    length = np.exp(random.normal(0, population.size, shape))[..., None]
    bouts = random.poisson(BOUTS * length * random.gamma(2, 0.5, (*shape, 3)))
    return length, np.where(random.random(bouts.shape) < population.showing, bouts, 0)


def draw_statistics(ability: Array, length: Array, bouts: Array, random: np.random.Generator) -> dict[str, Array]:
    """Sample the statistics of a model's predictions in the columns of the scorer; shape (..., 3 behaviors, columns)."""
    recall, precision = (random.beta(20 * ability, 20 * (1 - ability), bouts.shape) for _ in range(2))
    overlap = random.beta(10 * np.minimum(ability + 0.1, 0.97), 10 * (1 - np.minimum(ability + 0.1, 0.97)), bouts.shape)
    detected = random.binomial(bouts, recall)
    false = random.poisson(detected * (1 - precision) / np.maximum(precision, 0.05) + 0.3 * (1 - precision) * (bouts > 0))
    in_detected, in_missed, in_false = (
        random.gamma(1.5 * np.maximum(count, 1e-9), 20) * (count > 0) for count in (detected, bouts - detected, false)
    )
    right, missed = in_detected * overlap, in_detected * (1 - overlap) + in_missed
    wrong = in_false + in_detected * (1 - overlap) * random.random(bouts.shape)
    rest = np.maximum(9000 * length - right - missed - wrong, 0)
    counts = np.zeros((*bouts.shape, 14))
    counts[..., 0], counts[..., 1], counts[..., 2], counts[..., 13], counts[..., 3] = (
        bouts, detected + false, detected, detected, detected * overlap
    )  # fmt: skip
    times = np.stack([right + missed + wrong + rest, right + missed, right + wrong, bouts, detected + false], axis=-1)
    return {
        "frames": np.stack([right, wrong, missed, rest], axis=-1),
        "bebe": np.stack([right, wrong, missed], axis=-1),
        "bouts": counts,
        "times": times,
    }


def draw_shifts(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Sample onset errors of matched bouts at 30 Hz, biased by animal, as histograms of the scorer; shape (..., 1, columns)."""
    bias, count = random.normal(0.1, 0.15, shape), random.poisson(25 * np.exp(random.normal(0, 0.5, shape))) + 1
    frames = np.arange(-60, 61)
    ends = np.append(frames - 0.5, 60.5) / 30
    share = np.diff(stats.norm.cdf(ends, bias[..., None], 0.2), axis=-1)
    histogram = random.multinomial(count, share / share.sum(axis=-1, keepdims=True))
    table = np.zeros((*shape, 1, 2 * N_BINS))
    bins = N_FINE + N_COARSE + np.floor(np.abs(frames / 30) / FINE_WIDTH + 0.5).astype(int) * np.sign(frames)
    table[..., 0, bins], table[..., 0, N_BINS + bins] = histogram, histogram * frames / 30
    return table


def evaluate(metric: str, behaviors: tuple[int, ...], statistics: Array, weights: Array) -> Array:
    """Return a score for every study (first axis) and row of weights; statistics are (studies, animals, behaviors, columns)."""
    value = METRICS[metric].value
    if not behaviors:
        return np.asarray(nanmean(value(statistics)) @ weights.T / weights.sum(axis=1))
    flat = statistics.reshape(*statistics.shape[:2], -1)
    return nanmean(value((weights @ flat).reshape(len(flat), len(weights), *statistics.shape[2:]))[..., list(behaviors)])


def resample(metric: str, behaviors: tuple[int, ...], statistics: Array, resamples: int) -> Resampled:
    """Return the bootstrap distribution of a score of every study (last axis)."""
    return Resampled.evaluate(lambda weights: evaluate(metric, behaviors, statistics, weights).T, statistics.shape[1], resamples)


def contributing(metric: str, behaviors: tuple[int, ...], statistics: Array) -> Array:
    """Count the animals of each study in which a score is defined."""
    values = METRICS[metric].value(statistics)
    return np.asarray((~np.isnan(values[..., list(behaviors)] if behaviors else values)).any(axis=-1).sum(axis=1))


def intervals_by(metric: str, value: Array, resampled: Resampled, n: Array) -> Iterator[tuple[str, Array, Array]]:
    """Yield the lower and upper ends of the intervals of each study by every method.

    Parameters
    ----------
    metric : str
    value : array (n_studies,)
    resampled : Resampled (..., n_studies)
    n : array (n_studies,)
        Number of animals in which the score is defined.
    """
    definition = METRICS[metric]
    ordered, without = _ordered(resampled, value), resampled.jackknife.T
    normal, wider = ndtri(0.975), np.sqrt(n / np.maximum(n - 1, 1)) * stdtrit(np.maximum(n - 1, 1), 0.975)
    yield "percentile", _at(ordered, np.full(len(n), 0.025)), _at(ordered, np.full(len(n), 0.975))
    yield "expanded percentile", _at(ordered, ndtr(-wider)), _at(ordered, ndtr(wider))
    below = ((ordered < value[:, None]).mean(axis=1) + (ordered == value[:, None]).mean(axis=1) / 2).clip(1e-4, 1 - 1e-4)
    apart = nanmean(without)[:, None] - without
    skew = np.nansum(apart**3, axis=1) / np.maximum(6 * np.nansum(apart**2, axis=1) ** 1.5, 1e-300)
    ends = [ndtri(below) + (ndtri(below) + z) / (1 - skew * (ndtri(below) + z)) for z in (-normal, normal)]
    yield "BCa", _at(ordered, ndtr(ends[0])), _at(ordered, ndtr(ends[1]))
    reach = stdtrit(np.maximum(n - 1, 1), 0.975) * resampled.standard_error(n)
    yield "t", np.clip(value - reach, *definition.bounds), np.clip(value + reach, *definition.bounds)
    yield "ethobench", *confidence_interval(value, resampled, n, definition.bounds, on_logit=definition.on_logit, min_groups=0)


def _ordered(resampled: Resampled, value: Array) -> Array:
    """Sort the resamples of each study; undefined ones are replaced by its value."""
    return np.sort(np.where(np.isnan(resampled.bootstrap), value, resampled.bootstrap).T, axis=1)


def _at(ordered: Array, share: Array) -> Array:
    index = np.clip(np.round(share * (ordered.shape[1] - 1)), 0, ordered.shape[1] - 1).astype(int)
    return np.take_along_axis(ordered, index[:, None], axis=1)[:, 0]


def cover(metric: str, behaviors: tuple[int, ...], batches: Iterator[Array], truth: float, resamples: int) -> dict[str, tuple[float, ...]]:
    """Return coverage, median width, and share of studies without an interval (too few animals or no spread), by method."""
    rows: dict[str, list[Array]] = {}
    for statistics in batches:
        size = statistics.shape[1]
        value = evaluate(metric, behaviors, statistics, np.ones((1, size)))[:, 0]
        resampled = resample(metric, behaviors, statistics, resamples)
        n = contributing(metric, behaviors, statistics)
        has_interval = np.isfinite(value) & (n >= min(size, MIN_GROUPS)) & has_spread(value, resampled.standard_error(n))
        for method, low, high in intervals_by(metric, value, resampled, n):
            holds = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
            rows.setdefault(method, []).append(
                np.stack([has_interval, np.where(has_interval, holds, np.nan), np.where(has_interval, high - low, np.nan)])
            )
    result = {}
    for method, parts in rows.items():
        has_interval, holds, width = np.concatenate(parts, axis=1)
        result[method] = (
            (float(np.nanmean(holds)), float(np.nanmedian(width)), float(1 - has_interval.mean()))
            if has_interval.any()
            else (np.nan, np.nan, 1.0)
        )
    return result


def simulate(studies: int) -> Iterator[dict[str, object]]:
    """Yield rows of population, score, n, method, coverage, width and withheld."""
    for name, population in POPULATIONS.items():
        random = np.random.default_rng(0)
        everyone = draw_statistics(
            draw_ability(population, (1, POPULATION), random), *draw_truth(population, (1, POPULATION), random), random
        )
        for size in SIZES:
            batches = [
                draw_statistics(draw_ability(population, (BATCH, size), random), *draw_truth(population, (BATCH, size), random), random)
                for _ in range(studies // BATCH)
            ]
            for score, (kind, metric, behaviors) in SCORES.items():
                truth = float(evaluate(metric, behaviors, everyone[kind], np.ones((1, POPULATION)))[0, 0])
                intervals = cover(metric, behaviors, (batch[kind] for batch in batches), truth, RESAMPLES)
                yield from _rows(name, score, size, truth, intervals)
    random = np.random.default_rng(0)
    truth = float(evaluate("bouts.onset_error", (0,), draw_shifts((1, 20_000), random), np.ones((1, 20_000)))[0, 0])
    for size in SIZES:
        shifts = (draw_shifts((SHIFT_BATCH, size), random) for _ in range(studies // 2 // SHIFT_BATCH))
        yield from _rows("typical", "onset_error (median)", size, truth, cover("bouts.onset_error", (0,), shifts, truth, SHIFT_RESAMPLES))


def _rows(population: str, score: str, size: int, truth: float, intervals: dict[str, tuple[float, ...]]) -> Iterator[dict[str, object]]:
    for method, (coverage, width, withheld) in intervals.items():
        numbers = {"coverage": coverage, "median_width": width, "without_interval": withheld}
        yield {
            "population": population,
            "score": score,
            "true_value": round(truth, 4),
            "n": size,
            "method": method,
            **{key: round(v, 4) for key, v in numbers.items()},
        }


def compare_equals(studies: int) -> Iterator[dict[str, object]]:
    """Yield how often two equally good models are called different on the same animals."""
    for name, population in POPULATIONS.items():
        random = np.random.default_rng(1)
        for size in SIZES:
            tallies = []
            for _ in range(studies // BATCH):
                level, (length, bouts) = draw_ability(population, (BATCH, size), random), draw_truth(population, (BATCH, size), random)
                both = [draw_statistics(_around(level, random), length, bouts, random)["frames"] for _ in range(2)]
                difference = np.subtract(*(evaluate(*NULL_SCORE, s, np.ones((1, size)))[:, 0] for s in both))
                resampled = resample(*NULL_SCORE, both[0], RESAMPLES) - resample(*NULL_SCORE, both[1], RESAMPLES)
                n = np.minimum(*(contributing(*NULL_SCORE, s) for s in both))
                low, high = confidence_interval(difference, resampled, n)
                better = np.array([probability_higher(difference[k], resampled.column(k), int(n[k])) for k in range(BATCH)])
                ordered = _ordered(resampled, difference)
                outside = (_at(ordered, np.full(BATCH, 0.025)) > 0) | (_at(ordered, np.full(BATCH, 0.975)) < 0)
                extreme = (ordered > 0).all(axis=1) | (ordered <= 0).all(axis=1)
                columns = (outside, extreme, (low > 0) | (high < 0), (better > 0.95) | (better < 0.05))
                defined = (np.isfinite(difference),) * 2 + (np.isfinite(low), np.isfinite(better))
                tallies.append(np.where(defined, columns, np.nan))
            table = np.concatenate(tallies, axis=1)
            means = [round(float(np.nanmean(row)), 4) if np.isfinite(row).any() else "" for row in table]
            yield {"population": name, "n": size, **dict(zip(NULL_COLUMNS, means, strict=True))}


NULL_SCORE = ("frames.f1", (0, 1, 2))
NULL_COLUMNS = ("percentile_excludes_0", "share_of_resamples_is_0_or_1", "interval_excludes_0", "better_beyond_95")


def _around(level: Array, random: np.random.Generator) -> Array:
    """Sample the ability of one model on each animal around that animal's level."""
    return np.clip(random.beta(15 * level, 15 * (1 - level)), 0.02, 0.98)


def write_csv(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def as_markdown(rows: list[dict[str, object]], nulls: list[dict[str, object]], seconds: float) -> str:
    """Return the results as Markdown: by method, by population, by score, and for equal models."""
    sizes = sorted({int(str(row["n"])) for row in rows})

    def cells(chosen: list[dict[str, object]], column: str = "coverage") -> list[str]:
        parts = []
        for size in sizes:
            values = np.array([float(str(row[column])) for row in chosen if row["n"] == size])
            values = values[np.isfinite(values)]
            parts.append(f"{np.median(values):.3f} ({values.min():.2f})" if len(values) else "-")
        return parts

    def table(first: str, lines: dict[str, list[str]]) -> list[str]:
        head = [f"| {first} | " + " | ".join(f"n = {n}" for n in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
        return [*head, *(f"| {name} | {' | '.join(line)} |" for name, line in lines.items()), ""]

    ours = [row for row in rows if row["method"] == "ethobench"]
    every = {method: cells([r for r in rows if r["method"] == method]) for method in METHODS}
    widths = {m: cells([r for r in rows if r["method"] == m and r["score"] == "f1"], "median_width") for m in ("percentile", "ethobench")}
    populations = {name: cells([r for r in ours if r["population"] == name]) for name in POPULATIONS}
    scores = {name: cells([r for r in ours if r["score"] == name]) for name in dict.fromkeys(str(r["score"]) for r in ours)}
    null_sizes = {
        column: [
            " to ".join(f"{edge:.3f}" for edge in (min(values), max(values))) if values else "-"
            for values in ([float(str(r[column])) for r in nulls if r["n"] == n and r[column] != ""] for n in sizes)
        ]
        for column in NULL_COLUMNS
    }
    return "\n".join(
        [
            "# Coverage of 95 % intervals",
            "",
            f"Command: `python benchmarks/coverage.py`; {STUDIES:,} simulated studies per cell ({STUDIES // 2:,} for the median), "
            f"{RESAMPLES:,} resamples, Python {platform.python_version()}, {seconds / 60:.0f} min of processor time. All cells are in "
            "`coverage.csv` and `coverage_equal_models.csv`.",
            "",
            "Share of studies whose interval contains the true value: median over populations and scores, and the lowest in brackets.",
            f"`ethobench` is the interval of the package; below n = {MIN_GROUPS} it is withheld, and the columns show what it would be.",
            "",
            *table("method", every),
            "Median width of the interval of F1 (median over populations, lowest in brackets):",
            "",
            *table("method", widths),
            "By population (ethobench):",
            "",
            *table("population", populations),
            "By score (ethobench):",
            "",
            *table("score", scores),
            "## Equal models",
            "",
            "Two models of the same quality on the same animals: how often the paired comparison of F1 finds a difference (nominal 0.05; "
            "`better_beyond_95` nominal 0.10), lowest to highest over populations. The first two rows are simpler methods: a "
            "percentile interval, and the share of resamples.",
            "",
            *table("", null_sizes),
        ]
    )


def main() -> None:
    """Simulate, and write both tables."""
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else RESULTS
    start = time.process_time()
    rows = list(simulate(studies))
    nulls = list(compare_equals(studies))
    write_csv(folder / "coverage.csv", rows)
    write_csv(folder / "coverage_equal_models.csv", nulls)
    (folder / "coverage.md").write_text(as_markdown(rows, nulls, time.process_time() - start), encoding="utf-8")
    print((folder / "coverage.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
