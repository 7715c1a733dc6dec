"""Coverage of the intervals of ``ethobench compare``, false positives of its tests, and comparisons of real recordings.

Run it from the root of a checkout, with recordings under ``$ETHOBENCH_DATA`` for the real ones::

    python benchmarks/groups.py simulate                       # about five minutes of one core
    python benchmarks/groups.py false_positives                # only the last sections of it
    python benchmarks/groups.py unequal_spread                 # only the last section
    python benchmarks/groups.py real --predictions FOLDER      # FOLDER: out-of-fold predictions of the seals; made if it is missing

Writes ``benchmarks/results/groups.csv`` and ``groups.md`` (simulations), and ``groups_real.md``.

Design of the simulated studies
-------------------------------
Two groups of animals. The true share of time of each animal is beta distributed, with means of 0.20 and 0.30 (difference 0.10) and standard
deviations of about 0.11 and 0.13 between animals. A person labels n animals of each group, chosen at random; a model labels all animals:
five times as many (main design), or twice as many. The model's share of an animal is the logistic function of

- good: the logit of the true share + 0.10 + 0.15 in the second group + noise (0.2); correlation about 0.96
- biased: 0.8 times the logit + 0.8 - 0.6 in the second group + noise (0.3): it hides the effect
- noisy: 0.3 times the logit - 0.6 + noise (0.8); correlation about 0.25
- empty: the model never predicts the behavior
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

import ethobench as eb
from ethobench.analysis import permutation
from ethobench.analysis.permutation import compare_adjusted, compare_independent, compare_repeated
from ethobench.analysis.prediction_powered import Estimate, IndependentGroups, RepeatedMeasures, ratio_interval
from ethobench.core.observation_period import ObservationPeriod

RESULTS = Path(__file__).parent / "results"
STUDIES = 1_000
NULL_STUDIES = {5: 10_000, 8: 5_000, 20: 5_000}
"""Number of studies without an effect, by number of animals."""
SPREAD_STUDIES = 4_000
SIZES = (5, 8, 20)
MEANS = np.array([0.20, 0.30])
MODELS = ("good", "biased", "noisy", "empty")
SOURCES = ("human labels", "model labels", "both")


def true_shares(random: np.random.Generator, codes: np.ndarray, concentration: float = 12.0) -> np.ndarray:
    """Draw the share of time of each animal."""
    mean = MEANS[codes]
    return np.clip(random.beta(mean * concentration, (1 - mean) * concentration), 1e-6, 1 - 1e-6)


def model_shares(random: np.random.Generator, shares: np.ndarray, codes: np.ndarray, model: str) -> np.ndarray:
    """Draw the share of time that a model predicts for each animal."""
    scale, offset, in_second, noise = {
        "good": (1.0, 0.1, 0.15, 0.2), "biased": (0.8, 0.8, -0.6, 0.3), "noisy": (0.3, -0.6, 0.0, 0.8), "empty": (0.0, 0.0, 0.0, 0.0)
    }[model]  # fmt: skip
    if model == "empty":
        return np.zeros(len(shares))
    return expit(scale * logit(shares) + offset + in_second * codes + random.normal(0, noise, len(shares)))


def coverage_of_sources(random: np.random.Generator, n: int, times: int, model: str) -> Iterator[dict]:
    """Simulate studies; yield coverage and width of the interval of the difference and of the ratio for each source of labels."""
    codes = np.repeat([0, 1], n * times)
    is_labeled = np.tile(np.arange(n * times) < n, 2)
    inside, widths, ratio_inside = np.zeros(3), np.zeros(3), np.zeros(3)
    for _ in range(STUDIES):
        shares = true_shares(random, codes)
        predicted = model_shares(random, shares, codes, model)
        samples = (
            IndependentGroups(codes[is_labeled], shares[is_labeled]),
            IndependentGroups(codes, predicted),
            IndependentGroups(codes, np.where(is_labeled, shares, np.nan), None, predicted),
        )
        for k, sample in enumerate(samples):
            low, high = sample.estimate([-1, 1]).interval((-1.0, 1.0))
            inside[k] += low <= 0.1 <= high
            widths[k] += high - low
            ratio_inside[k] += times == 5 and _covers(ratio_interval(sample.estimate, [0, 1], [1, 0])[1:], 1.5)
    for k, source in enumerate(SOURCES):
        yield {
            "study": "difference", "n": n, "animals": n * times, "model": model, "labels": source, "coverage": inside[k] / STUDIES,
            "width": widths[k] / STUDIES, "relative_width": widths[k] / widths[0], "coverage_of_ratio": ratio_inside[k] / STUDIES,
        }  # fmt: skip


def _covers(interval: Sequence[float], value: float) -> bool:
    low, high = interval
    return not np.isnan(low) and low <= value <= high


def partly_labeled(random: np.random.Generator, n: int, model: str, n_recordings: int = 8) -> dict:
    """Simulate that one of several recordings of each animal is labeled by hand; all animals are labeled."""
    inside, widths = np.zeros(3), np.zeros(3)
    codes = np.repeat([0, 1], n)
    for _ in range(STUDIES):
        animals = true_shares(random, codes)
        days = expit(logit(animals)[:, None] + random.normal(0, 0.6, (2 * n, n_recordings)))
        flat = model_shares(random, days.ravel(), np.repeat(codes, n_recordings), model).reshape(days.shape)
        human, predicted = days[:, 0], flat.mean(axis=1)
        samples = (
            IndependentGroups(codes, human), IndependentGroups(codes, predicted),
            IndependentGroups(codes, human, None, predicted, flat[:, 0]),
        )  # fmt: skip
        for k, sample in enumerate(samples):
            low, high = sample.estimate([-1, 1]).interval()
            inside[k] += low <= _true_day_difference() <= high
            widths[k] += high - low
    return {"n": n, "model": model, "coverage": inside / STUDIES, "relative_width": widths / widths[0]}


def _true_day_difference(cache: list[float] = []) -> float:  # noqa: B006
    if not cache:
        random = np.random.default_rng(99)
        codes = np.repeat([0, 1], 2_000_000)
        days = expit(logit(true_shares(random, codes)) + random.normal(0, 0.6, len(codes)))
        cache.append(float(days[codes == 1].mean() - days[codes == 0].mean()))
    return cache[0]


def repeated_coverage(random: np.random.Generator, n: int, model: str, times: int = 5) -> dict:
    """Simulate two conditions of the same animals, n of them labeled by hand."""
    inside, widths = np.zeros(3), np.zeros(3)
    codes = np.tile([0, 1], n * times)
    for _ in range(STUDIES):
        level = random.normal(0, 0.5, (n * times, 1))
        shares = expit(logit(MEANS) + level + random.normal(0, 0.3, (n * times, 2)))
        predicted = model_shares(random, shares.ravel(), codes, model).reshape(shares.shape)
        samples = (
            RepeatedMeasures(shares[:n]), RepeatedMeasures(predicted),
            RepeatedMeasures(np.where(np.arange(n * times)[:, None] < n, shares, np.nan), predicted),
        )  # fmt: skip
        for k, sample in enumerate(samples):
            low, high = sample.estimate([-1, 1]).interval()
            inside[k] += low <= _true_repeated_difference() <= high
            widths[k] += high - low
    return {"n": n, "model": model, "coverage": inside / STUDIES, "relative_width": widths / widths[0]}


def _true_repeated_difference(cache: list[float] = []) -> float:  # noqa: B006
    if not cache:
        spread = np.random.default_rng(98).normal(0, np.hypot(0.5, 0.3), 4_000_000)
        cache.append(float(expit(logit(MEANS[1]) + spread).mean() - expit(logit(MEANS[0]) + spread).mean()))
    return cache[0]


def interval_choice(random: np.random.Generator, n: int, kind: str) -> dict:
    """Coverage of three intervals of the difference of two groups, from human labels alone."""
    draw, true = {
        "shares of 0.20 and 0.30": (lambda c: true_shares(random, c), 0.1),
        "rare behavior (0.02 and 0.05)": (lambda c: random.beta(np.array([0.4, 1.0])[c], np.array([19.6, 19.0])[c]), 0.03),
        "log-normal durations, unequal spread": (
            lambda c: np.exp(random.normal(np.array([0.0, 0.5])[c], np.array([0.4, 0.8])[c])),
            float(np.exp(0.5 + 0.32) - np.exp(0.08)),
        ),
    }[kind]  # fmt: skip
    codes = np.repeat([0, 1], n)
    inside = np.zeros(3)
    for _ in range(STUDIES):
        values = draw(codes)
        estimate = IndependentGroups(codes, values).estimate([-1, 1])
        low, high = estimate.interval()
        inside[0] += low <= true <= high
        pooled = Estimate(estimate.value, float(values[:n].var(ddof=1) + values[n:].var(ddof=1)) / n, 2 * n - 2)
        low, high = pooled.interval()
        inside[1] += low <= true <= high
        low, high = studentized_bootstrap(values, n, random)
        inside[2] += low <= true <= high
    return {"n": n, "values": kind, "coverage": inside / STUDIES}


def studentized_bootstrap(values: np.ndarray, n: int, random: np.random.Generator, resamples: int = 499) -> tuple[float, float]:
    """Return the bootstrap-t interval of the difference of two groups."""
    a, b = values[:n], values[n:]
    x, y = a[random.integers(0, n, (resamples, n))], b[random.integers(0, n, (resamples, n))]
    errors = np.sqrt((x.var(axis=1, ddof=1) + y.var(axis=1, ddof=1)) / n)
    difference, error = b.mean() - a.mean(), np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / n)
    pivots = np.divide(y.mean(axis=1) - x.mean(axis=1) - difference, errors, out=np.full(resamples, np.inf), where=errors > 0)
    low, high = np.quantile(pivots, [0.975, 0.025], method="nearest")
    return difference - low * error, difference - high * error


def false_positives(random: np.random.Generator, n: int) -> dict:
    """Return the share of studies without an effect in which p is at most 0.05, by test; at most 999 random permutations."""
    permutation.RESAMPLES = 999
    codes = np.repeat([0, 1], n)
    hits = dict.fromkeys(
        ("same distribution", "unequal spread", "three groups", "repeated measures", "covariate", "both labels, t test"), 0
    )
    n_studies = NULL_STUDIES[n]
    for _ in range(n_studies):
        same = true_shares(random, np.zeros(2 * n, dtype=int))
        hits["same distribution"] += compare_independent(same, codes).p <= 0.05
        unequal = random.normal(0, np.array([1.0, 3.0])[codes])
        hits["unequal spread"] += compare_independent(unequal, codes).p <= 0.05
        three = true_shares(random, np.zeros(3 * n, dtype=int))
        hits["three groups"] += compare_independent(three, np.repeat([0, 1, 2], n)).p <= 0.05
        level = random.normal(0, 1, (n, 1))
        hits["repeated measures"] += compare_repeated(level + random.normal(0, 1, (n, 2))).p <= 0.05
        age = random.normal(0, 1, 2 * n) + codes
        hits["covariate"] += compare_adjusted(0.7 * age + random.normal(0, 1, 2 * n), codes, age[:, None]).p <= 0.05
        many = np.repeat([0, 1], 5 * n)
        shares = true_shares(random, np.zeros(10 * n, dtype=int))
        labeled = np.where(np.tile(np.arange(5 * n) < n, 2), shares, np.nan)
        powered = IndependentGroups(many, labeled, None, model_shares(random, shares, many, "good"))
        hits["both labels, t test"] += powered.estimate([-1, 1]).p_value() <= 0.05
    return {"n": n, **{name: count / n_studies for name, count in hits.items()}}


def violated(random: np.random.Generator, n: int) -> list[dict]:
    """Coverage if an assumption does not hold: labeled animals are the most active ones, or the model was trained on them."""
    codes = np.repeat([0, 1], 5 * n)
    inside = np.zeros(2)
    for _ in range(STUDIES):
        shares = true_shares(random, codes)
        predicted = model_shares(random, shares, codes, "biased")
        chosen = np.zeros(len(codes), dtype=bool)
        second = np.flatnonzero(codes == 1)
        chosen[second[np.argsort(-shares[second])[:n]]] = chosen[:n] = True
        low, high = IndependentGroups(codes, np.where(chosen, shares, np.nan), None, predicted).estimate([-1, 1]).interval()
        inside[0] += low <= 0.1 <= high
        labeled = np.tile(np.arange(5 * n) < n, 2)
        trained = np.where(labeled, shares + random.normal(0, 0.005, len(shares)), predicted)
        low, high = IndependentGroups(codes, np.where(labeled, shares, np.nan), None, trained).estimate([-1, 1]).interval()
        inside[1] += low <= 0.1 <= high
    return [
        {"n": n, "violation": "labeled: the most active of the second group", "coverage": inside[0] / STUDIES},
        {"n": n, "violation": "the model was trained on the labeled animals", "coverage": inside[1] / STUDIES},
    ]


def simulate() -> None:
    """Run all simulations and write the tables."""
    started = time.process_time()
    random = np.random.default_rng(23)
    rows = [row for n in SIZES for times in (5, 2) for model in MODELS for row in coverage_of_sources(random, n, times, model)]
    with (RESULTS / "groups.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    lines = [
        "# Comparisons of groups: coverage of intervals and false positives", "",
        f"Command: `python benchmarks/groups.py simulate`; {STUDIES:,} simulated studies per cell, commit {_commit()}, Python "
        f"{platform.python_version()}. The design is described at the top of the script; all cells are in [groups.csv](groups.csv).", "",
        f"The standard error of a coverage of 0.95 is {np.sqrt(0.95 * 0.05 / STUDIES):.3f}.", "",
        "## Difference of two groups", "",
        "Share of 95 % intervals that hold the true difference, mean width in brackets; n animals of each group have human labels, five "
        "times as many have model labels.", "",
    ]  # fmt: skip
    lines += _coverage_table([row for row in rows if row["animals"] == 5 * row["n"]])
    lines += ["", "Harder: only twice as many animals have model labels.", ""]
    lines += _coverage_table([row for row in rows if row["animals"] == 2 * row["n"]])
    ratios = [row["coverage_of_ratio"] for row in rows if row["labels"] != "model labels" and row["animals"] == 5 * row["n"]]
    lines += ["", f"Ratio of the means (1.5), human labels and both: coverage {min(ratios):.3f} to {max(ratios):.3f}, "
              f"median {np.median(ratios):.3f}.", ""]  # fmt: skip
    lines += ["## Other designs", "", "One of eight recordings of each animal has human labels, all have model labels:", ""]
    lines += _design_table([partly_labeled(random, n, model) for n in SIZES for model in MODELS[:3]])
    lines += ["", "Two conditions of the same animals (n with human labels, five times as many with model labels):", ""]
    lines += _repeated_table()
    lines += ["", "## If an assumption does not hold", "",
              "Labels of both kinds. `compare` warns about both where it can see them (the second from the log of `predict`).", "",
              "| n | violation | coverage |", "|---|---|---|"]  # fmt: skip
    lines += [f"| {r['n']} | {r['violation']} | {r['coverage']:.3f} |" for n in SIZES for r in violated(random, n)]
    lines += _choice_lines(random)
    lines += [
        "",
        f"{(time.process_time() - started) / 60:.1f} min of processor time.",
        *_false_positive_lines(),
        *_unequal_spread_lines(),
        "",
    ]
    (RESULTS / "groups.md").write_text("\n".join(lines), encoding="utf-8")


def _repeated_table() -> list[str]:
    random = np.random.default_rng(25)
    return _design_table([repeated_coverage(random, n, model) for n in SIZES for model in MODELS[:3]])


def _choice_lines(random: np.random.Generator) -> list[str]:
    kinds = ("shares of 0.20 and 0.30", "rare behavior (0.02 and 0.05)", "log-normal durations, unequal spread")
    lines = ["", "## Which interval", "", "Coverage with human labels alone. `compare` uses the first.", "",
             "| values | n | Welch-Satterthwaite | pooled degrees of freedom | studentized bootstrap |",
             "|---|---|---|---|---|"]  # fmt: skip
    for kind in kinds:
        for n in SIZES:
            row = interval_choice(random, n, kind)
            lines.append(f"| {kind} | {n} | " + " | ".join(f"{value:.3f}" for value in row["coverage"]) + " |")
    return lines


def _false_positive_lines() -> list[str]:
    random = np.random.default_rng(24)
    rows = [false_positives(random, n) for n in SIZES]
    names = [name for name in rows[0] if name != "n"]
    return [
        "", "## False positives", "",
        "Share of studies without an effect (10,000 of n = 5, 5,000 of 8 and 20) with p of at most 0.05; standard error 0.002 to 0.003. "
        "The exact test of five animals per group cannot have a level above 12 / 252 = 0.048. With five animals in two conditions, a test "
        "of signs cannot give p below 0.0625.", "",
        f"| n | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|",
        *(f"| {row['n']} | {' | '.join(f'{row[name]:.3f}' for name in names)} |" for row in rows),
    ]  # fmt: skip


def _difference_test(values: np.ndarray, n: int) -> float:
    """Return the exact p value of the permutation test of the difference of means, which is not studentized."""
    chosen = values[np.array(list(combinations(range(len(values)), n)))].sum(axis=1)
    differences = np.abs(chosen / n - (values.sum() - chosen) / (len(values) - n))
    return float((differences >= differences[0] * (1 - 1e-9)).mean())


def _unequal_spread_lines() -> list[str]:
    """Compare the studentized statistic with the difference of means where the groups have the same mean and different spread."""
    random = np.random.default_rng(25)
    lines = [
        "", "## Unequal spread", "",
        f"Normal values with the same mean; {SPREAD_STUDIES:,} studies, all arrangements. `compare` permutes the studentized difference "
        "(Welch's t); the other column permutes the difference of the means.", "",
        "| n | standard deviations | studentized | difference of means |", "|---|---|---|---|",
    ]  # fmt: skip
    for sizes, spreads in (((5, 5), (1, 1)), ((5, 5), (1, 3)), ((8, 8), (1, 3)), ((5, 10), (1, 3)), ((5, 10), (3, 1))):
        codes, hits = np.repeat([0, 1], sizes), np.zeros(2)
        for _ in range(SPREAD_STUDIES):
            values = random.normal(0, np.repeat(spreads, sizes))
            hits += (compare_independent(values, codes).p <= 0.05, _difference_test(values, sizes[0]) <= 0.05)
        lines.append(
            f"| {sizes[0]}, {sizes[1]} | {spreads[0]}, {spreads[1]} | {hits[0] / SPREAD_STUDIES:.3f} | {hits[1] / SPREAD_STUDIES:.3f} |"
        )
    return lines


def update_unequal_spread() -> None:
    """Repeat only the comparison of test statistics."""
    path = RESULTS / "groups.md"
    before = path.read_text(encoding="utf-8").partition("\n## Unequal spread")[0].rstrip()
    path.write_text("\n".join([before, *_unequal_spread_lines(), ""]), encoding="utf-8")


def update_false_positives() -> None:
    """Repeat only the simulations without an effect, and replace their section of the results."""
    path = RESULTS / "groups.md"
    before = path.read_text(encoding="utf-8").partition("\n## False positives")[0].rstrip()
    path.write_text("\n".join([before, *_false_positive_lines(), *_unequal_spread_lines(), ""]), encoding="utf-8")


def _coverage_table(rows: Sequence[dict]) -> list[str]:
    lines = ["| n | model | human labels | model labels | both | width of both / human |", "|---|---|---|---|---|---|"]
    for n in SIZES:
        for model in MODELS:
            cells = {row["labels"]: row for row in rows if row["n"] == n and row["model"] == model}
            values = " | ".join(f"{cells[s]['coverage']:.3f} ({cells[s]['width']:.3f})" for s in SOURCES)
            lines.append(f"| {n} | {model} | {values} | {cells['both']['relative_width']:.2f} |")
    return lines


def _design_table(rows: Sequence[dict]) -> list[str]:
    lines = ["| n | model | human labels | model labels | both | width of both / human |", "|---|---|---|---|---|---|"]
    for row in rows:
        values = " | ".join(f"{value:.3f}" for value in row["coverage"])
        lines.append(f"| {row['n']} | {row['model']} | {values} | {row['relative_width'][2]:.2f} |")
    return lines


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def observed_time(recording: eb.Recording, period: ObservationPeriod) -> eb.Recording:
    """Return the labels of a recording in its observation period."""
    labels = recording.annotation()
    start = int(labels.start[labels.behavior != labels.ethogram.background].min())
    stop = start + round(period.seconds * labels.rate)
    return eb.Recording(recording.id, individual=recording.individual, annotations={"expert": labels.crop(start, stop)})


def rats() -> list[str]:
    """Compare the thirds of the observation periods of rats within recordings."""
    data = eb.load_dataset(Path(os.environ["ETHOBENCH_DATA"]) / "rats")
    period = ObservationPeriod.fit(recording.annotation() for recording in data)
    observed = [observed_time(recording, period) for recording in data]
    result = eb.compare_groups(observed, "bin", bin="thirds", measures=("share", "rate_per_min"))
    lines = [
        "## Rats: behavior by thirds of the observation period", "",
        f"{result['n']['bin 1']['individuals']} recordings, each of which the manifest counts as an individual, cropped to the "
        f"{period.seconds:g} s from the first bout for which they are labeled; {result['design']}: thirds are compared within recordings. "
        "Corrected over behaviors and pairs (Holm).", "",
        "| measure | behavior | third 1 | third 2 | third 3 | 3 - 1 (95 %) | g | p of 3 - 1 | p of all thirds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in result["rows"]:
        scale = 100 if row["measure"] == "share" else 1
        unit = "% of time" if row["measure"] == "share" else "bouts / min"
        means = " | ".join(f"{scale * group['mean']:.2f}" for group in row["groups"].values())
        pair = next(pair for pair in row["pairs"] if pair["groups"] == ["bin 1", "bin 3"])
        lines.append(
            f"| {unit} | {row['behavior']} | {means} | {scale * pair['difference']:+.2f} ({scale * pair['low']:.2f} to "
            f"{scale * pair['high']:.2f}) | {pair['effect_size']:.2f} | {pair['p_corrected']:.4f} | {row['p_corrected']:.4f} |"
        )
    return lines


def predict_seals(folder: Path) -> None:
    """Write out-of-fold predictions of a boosted model, in three folds by animal."""
    from ethobench.core import Dataset
    from ethobench.core.folds import assign_folds

    data = eb.load_dataset("bebe/ladds_seals")
    folds = assign_folds(data, 3)
    folder.mkdir(parents=True, exist_ok=True)
    for fold in range(3):
        model = eb.create_model("boost").fit(Dataset(tuple(r for r in data if folds[r.id] != fold), data.ethogram))
        for recording in data:
            if folds[recording.id] == fold:
                eb.write_annotation(model.predict(recording).annotation, folder / f"{recording.id}.csv")


def seals(folder: Path, repeats: int = 200) -> list[str]:
    """Estimate mean budgets of seals from one labeled recording per animal and model labels of all, against all human labels."""
    data = eb.load_dataset("bebe/ladds_seals")
    predictions = {r.id: eb.read_annotation(folder / f"{r.id}.csv", rate=r.rate) for r in data}
    random = np.random.default_rng(4)
    by_animal: dict[str, list] = {}
    for recording in data:
        by_animal.setdefault(recording.individual, []).append(recording)
    tables = {
        name: eb.budgets([r.copy(annotations={"a": labels[r.id]}) for r in data]).set_index(["recording", "behavior"])[
            ["total_s", "observed_s"]
        ]
        for name, labels in (("human", {r.id: r.annotation() for r in data}), ("model", predictions))
    }
    lines = [
        "", "## Seals: budgets from few human labels and model labels", "",
        f"{len(by_animal)} animals, {len(data)} recordings ({min(map(len, by_animal.values()))} to "
        f"{max(map(len, by_animal.values()))} per animal), {sum(r.annotation().duration for r in data) / 3600:.1f} h. Model: `boost`, "
        "out-of-fold in three folds by animal. Human labels of one "
        f"recording per animal, drawn at random {repeats} times; all others are left out. Reference: the mean share over animals from all "
        "human labels. Error: root mean square over the draws, in percent of time. Inside: share of the draws whose 95 % interval "
        "holds the reference (the interval is for the population of animals, so that it should do so more often than in 95 %).", "",
        "| behavior | reference | model alone | error: one recording by hand | error: model alone | error: both | width: by hand | "
        "width: both | inside: by hand | inside: both |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [_seal_line(behavior, by_animal, tables, random, repeats) for behavior in data.ethogram.names]
    return lines + _seal_animals(data.ethogram.names, by_animal, tables, random, repeats)


def _shares(table, recordings, behavior: str) -> float:
    rows = table.loc[[(r.id, behavior) for r in recordings]].sum()
    return float(rows["total_s"] / rows["observed_s"])


def _seal_line(behavior: str, by_animal: dict, tables: dict, random: np.random.Generator, repeats: int) -> str:
    reference = float(np.mean([_shares(tables["human"], rs, behavior) for rs in by_animal.values()]))
    model_all = np.array([_shares(tables["model"], rs, behavior) for rs in by_animal.values()])
    human_of = {r.id: _shares(tables["human"], [r], behavior) for rs in by_animal.values() for r in rs}
    model_of = {r.id: _shares(tables["model"], [r], behavior) for rs in by_animal.values() for r in rs}
    codes = np.zeros(len(by_animal), dtype=int)
    values, widths, inside = [], [], []
    for _ in range(repeats):
        picked = [rs[random.integers(len(rs))].id for rs in by_animal.values()]
        human, model = np.array([human_of[k] for k in picked]), np.array([model_of[k] for k in picked])
        estimates = (IndependentGroups(codes, human).estimate([1]), IndependentGroups(codes, human, None, model_all, model).estimate([1]))
        values.append([e.value for e in estimates])
        widths.append([2 * e.half_width() for e in estimates])
        inside.append([abs(e.value - reference) <= e.half_width() for e in estimates])
    error = 100 * np.sqrt(np.mean((np.array(values) - reference) ** 2, axis=0))
    width = 100 * np.nanmean(widths, axis=0)
    covered = np.mean(inside, axis=0)
    return (
        f"| {behavior} | {100 * reference:.1f} | {100 * model_all.mean():.1f} | {error[0]:.1f} | "
        f"{100 * abs(model_all.mean() - reference):.1f} | {error[1]:.1f} | "
        f"{width[0]:.1f} | {width[1]:.1f} | {covered[0]:.2f} | {covered[1]:.2f} |"
    )


def _seal_animals(names: Sequence[str], by_animal: dict, tables: dict, random: np.random.Generator, repeats: int) -> list[str]:
    """Return errors of the budgets of animals: one labeled recording, model labels, and those corrected by the mean error on others."""
    lines = [
        "", "Budget of each animal, root mean square error over animals and draws, in percent of time:", "",
        "| behavior | one recording by hand | model alone | model, corrected by the other animals' labels |", "|---|---|---|---|",
    ]  # fmt: skip
    for behavior in names:
        errors = []
        reference = {a: _shares(tables["human"], rs, behavior) for a, rs in by_animal.items()}
        model = {a: _shares(tables["model"], rs, behavior) for a, rs in by_animal.items()}
        human_of = {r.id: _shares(tables["human"], [r], behavior) for rs in by_animal.values() for r in rs}
        model_of = {r.id: _shares(tables["model"], [r], behavior) for rs in by_animal.values() for r in rs}
        for _ in range(repeats):
            picked = {a: rs[random.integers(len(rs))].id for a, rs in by_animal.items()}
            for animal in by_animal:
                others = [picked[a] for a in by_animal if a != animal]
                bias = np.mean([human_of[k] - model_of[k] for k in others])
                corrected = min(max(model[animal] + bias, 0.0), 1.0)
                errors.append([value - reference[animal] for value in (human_of[picked[animal]], model[animal], corrected)])
        rms = 100 * np.sqrt(np.mean(np.array(errors) ** 2, axis=0))
        lines.append(f"| {behavior} | {rms[0]:.1f} | {rms[1]:.1f} | {rms[2]:.1f} |")
    return lines


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["simulate", "false_positives", "unequal_spread", "real"])
    parser.add_argument("--predictions", type=Path, help="folder with out-of-fold predictions of the seals, one file for each recording")
    arguments = parser.parse_args()
    simulations = {"simulate": simulate, "false_positives": update_false_positives, "unequal_spread": update_unequal_spread}
    if arguments.task in simulations:
        simulations[arguments.task]()
        return
    if arguments.predictions is None:
        parser.error("real needs --predictions FOLDER")
    if not arguments.predictions.is_dir():
        predict_seals(arguments.predictions)
    lines = ["# Comparisons of groups: real recordings", "",
             f"Command: `python benchmarks/groups.py real --predictions FOLDER`, commit {_commit()}.", "",
             *rats(), *seals(arguments.predictions), ""]  # fmt: skip
    (RESULTS / "groups_real.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
