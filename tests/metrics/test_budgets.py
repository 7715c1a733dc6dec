"""Conclusions: time budgets, durations, transitions, latencies, corrections."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

import ethobench as eb
from ethobench import Annotation, Behavior, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.observed import Observed, Track
from ethobench.metrics.budgets import correct_time_budget, corrected_shares, time_budget
from ethobench.metrics.suites.rodentbench import entropy_weighted_mcc

NAMES = ["a", "b", "other"]


def of(codes, rate=10) -> Annotation:
    return Annotation.from_frames(np.array(codes), Ethogram(NAMES, "other"), rate)


def test_time_and_count_errors():
    truth = of([0] * 20 + [2] * 30 + [0] * 10 + [1] * 40)
    pred = of([0] * 25 + [2] * 35 + [1] * 40)
    figures = eb.score(pred, truth).behaviors
    assert figures["a"]["time_error"] == pytest.approx(0.05)
    assert figures["b"]["time_error"] == 0
    assert figures["a"]["count_error"] == 0.5
    assert eb.score(pred, truth).overall["time_error"] == pytest.approx(0.025)


def test_duration_distance_is_kolmogorov_smirnov():
    generator = np.random.default_rng(0)

    def bouts(mean):
        lengths = generator.geometric(1 / mean, 400)
        codes = np.concatenate([np.concatenate([np.zeros(n, dtype=int), [2]]) for n in lengths])
        return codes, lengths

    (truth, long), (pred, short) = bouts(40), bouts(15)
    n = max(len(truth), len(pred))
    truth, pred = (np.concatenate([c, np.full(n - len(c), 2)]) for c in (truth, pred))
    mine = eb.score(of(pred), of(truth)).behaviors["a"]["duration_distance"]
    assert mine == pytest.approx(ks_2samp(long, short).statistic, abs=0.03)


def test_transition_distance():
    truth = of(([0] * 5 + [1] * 5) * 10)
    same = of(([0] * 3 + [1] * 7) * 10)
    other = of(([0] * 5 + [2] * 5) * 10)
    assert eb.score(same, truth).overall["transition_distance"] == 0
    assert eb.score(other, truth).overall["transition_distance"] == pytest.approx(1)


def test_latency_of_an_absent_behavior_is_the_duration_of_the_recording():
    truth, pred = of([2] * 30 + [0] * 70), of([2] * 45 + [0] * 55)
    assert eb.score(pred, truth).behaviors["a"]["latency_error"] == pytest.approx(1.5)
    assert eb.score(of([2] * 100), truth).behaviors["a"]["latency_error"] == pytest.approx(7.0)
    assert np.isnan(eb.score(pred, truth).behaviors["b"]["latency_error"])


def test_shares_are_corrected_by_the_confusion():
    confusion = np.array([[[80.0, 20, 0], [10, 90, 0], [0, 0, 100]]])
    true = np.array([0.5, 0.2, 0.3])
    predicted = true @ (confusion[0] / confusion[0].sum(axis=1, keepdims=True))
    value, low, high = corrected_shares(predicted, confusion)
    assert value == pytest.approx(true)
    assert np.isnan(low).all()
    assert np.isnan(corrected_shares(predicted, np.concatenate([confusion] * 4))[1]).all()
    several = np.concatenate([confusion * k for k in (1, 2, 3, 4, 5)]) + np.random.default_rng(0).integers(0, 10, (5, 3, 3))
    value, low, high = corrected_shares(predicted, several)
    assert (low <= value + 1e-9).all()
    assert (value <= high + 1e-9).all()
    with pytest.raises(MismatchError):
        corrected_shares(np.array([0.5, 0.5]), confusion)


def test_entropy_weighted_mcc_weights_by_labels_and_seconds():
    def dataset(codes, shift):
        truth = Annotation.from_frames(np.array(codes), Ethogram(["x", "y"]), 1)
        return eb.score(
            {"r": (truth.crop(0, len(codes)), truth) if not shift else (of_two(np.roll(codes, shift)), truth)}, suite="rodentbench"
        )

    def of_two(codes):
        return Annotation.from_frames(np.array(codes), Ethogram(["x", "y"]), 1)

    rich, plain = dataset(([0] * 5 + [1] * 5) * 6, 2), dataset([0] * 59 + [1], 0)
    combined = entropy_weighted_mcc({"rich": rich, "plain": plain})
    values = sorted([rich.overall["mcc"], plain.overall["mcc"]])
    assert values[0] <= combined <= values[1]
    assert abs(combined - rich.overall["mcc"]) < abs(combined - plain.overall["mcc"])
    assert entropy_weighted_mcc({"rich": rich}) == pytest.approx(rich.overall["mcc"])


def test_transitions_in_unobserved_frames_do_not_matter():
    codes = np.tile([0, 0, 0, 1, 1, 2], 5)
    truth = Annotation.from_frames(codes, ["A", "B", "C"], 1, unobserved=np.arange(30) >= 15)
    other = codes.copy()
    other[15:] = np.tile([0, 2, 1], 5)
    values = [eb.score(Annotation.from_frames(c, ["A", "B", "C"], 1), truth).overall["transition_distance"] for c in (codes, other)]
    assert values[0] == values[1]


def test_the_budget_of_several_recordings_is_that_of_them_joined():
    rng = np.random.default_rng(0)
    names = Ethogram(["a", "b", "none"], "none")
    recordings = [
        Annotation.from_frames(np.repeat(rng.integers(0, 3, 12), 5), names, 10, unobserved=rng.random(60) < 0.1) for _ in range(3)
    ]
    together, single = time_budget(*recordings), [time_budget(annotation) for annotation in recordings]
    for k, row in enumerate(together):
        rows = [budget[k] for budget in single]
        spans = [annotation.observed.of(row["behavior"]) for annotation in recordings]
        observed = sum(int((span.stop - span.start).sum()) for span in spans) / 10
        assert row["bouts"] == sum(r["bouts"] for r in rows)
        assert row["seconds"] == pytest.approx(sum(r["seconds"] for r in rows))
        assert row["share"] == pytest.approx(row["seconds"] / observed)
        assert row["mean"] == pytest.approx(row["seconds"] / row["bouts"])
        assert row["latency"] == np.median([r["latency"] for r in rows if r["latency"] is not None])


def test_a_behavior_of_one_recording_only_is_a_share_of_the_time_in_which_it_was_observed():
    both = Annotation.from_bouts([0, 20], [10, 30], ["a", "b"], ["a", "b"], rate=10, n_frames=100)
    one = Annotation.from_bouts([0], [50], ["a"], ["a"], rate=10, n_frames=100)
    rows = {row["behavior"]: row for row in time_budget(both, one)}
    assert rows["a"]["share"] == pytest.approx(6 / 20)
    assert rows["b"]["share"] == pytest.approx(1 / 10)


def test_the_share_of_a_subject_is_that_of_the_time_in_which_it_was_observed():
    observed = Observed(iv.full(100), {Track(subject="m2"): iv.intervals([0], [50])})
    both = Annotation.from_bouts([0, 0], [10, 10], ["a", "a"], Ethogram(["a"]), 10, 100, subject=["m1", "m2"], observed=observed)
    assert {row["subject"]: row["share"] for row in time_budget(both)} == pytest.approx({"m1": 0.1, "m2": 0.2})


def frames_in(spans):
    return {frame for start, stop in zip(*(column.tolist() for column in spans), strict=True) for frame in range(start, stop)}


def runs_of(frames):
    """Return the runs of consecutive frames, as (start, length)."""
    starts = [frame for frame in sorted(frames) if frame - 1 not in frames]
    return [(start, next(n for n in range(1, 999) if start + n not in frames)) for start in starts]


@given(st.integers(0, 10**6), st.sampled_from([None, "none"]), st.booleans())
def test_time_budgets_equal_counts_of_frames(seed, background, has_subjects):
    rng = np.random.default_rng(seed)
    ethogram = Ethogram([Behavior("a"), Behavior("b"), Behavior("p", point=True), Behavior("none")], background)
    n_frames, n = 30, int(rng.integers(0, 9))
    start, behavior = rng.integers(0, n_frames + 1, n), rng.integers(0, 3, n)
    stop = np.where(behavior == 2, start, np.minimum(start + rng.integers(1, 8, n), n_frames))
    start = np.where((behavior != 2) & (start == stop), start - 1, start)
    subject = [["m1", "m2", None][k] for k in rng.integers(0, 3, n)] if has_subjects else None
    observed = Observed(iv.from_mask(rng.random(n_frames) < 0.9), {Track("a"): iv.from_mask(rng.random(n_frames) < 0.8)})
    annotation = Annotation.from_bouts(start, stop, behavior, ethogram, 5, n_frames, subject=subject, observed=observed)
    rows = time_budget(annotation)
    named = annotation.names(annotation.subject)
    unnamed = [""] if None in named or not any(named) else []
    assert [(row["subject"], row["behavior"]) for row in rows] == [
        (who, b.name) for who in [*(annotation.subjects if any(named) else ()), *unnamed] for b in ethogram
    ]
    for row in rows:
        counted = frames_in(observed.of(row["behavior"]))
        bouts = annotation.select(subject=row["subject"])
        spans = bouts.spans(row["behavior"])
        if row["behavior"] == "p":
            runs = [(at, 0) for at in spans.start.tolist() if min(at, n_frames - 1) in counted]
        else:
            frames = frames_in(spans)
            if row["behavior"] == background:
                frames = {*range(n_frames)} - frames_in((bouts.start, bouts.stop))
            runs = runs_of(frames & counted)
        lengths = [length / 5 for _, length in runs]
        has_lengths = bool(runs) and row["behavior"] != "p"
        assert row["bouts"] == len(runs)
        assert row["seconds"] == pytest.approx(sum(lengths))
        assert row["share"] == pytest.approx(sum(lengths) * 5 / len(counted))
        assert row["mean"] == (pytest.approx(np.mean(lengths)) if has_lengths else None)
        assert row["median"] == (pytest.approx(np.median(lengths)) if has_lengths else None)
        assert row["latency"] == (runs[0][0] / 5 if runs else None)


def test_time_budgets_are_corrected_for_each_subject():
    confusion = np.array([[[80.0, 20, 0], [10, 90, 0], [0, 0, 100]]])
    rates = confusion[0] / confusion[0].sum(axis=1, keepdims=True)
    true = {"m1": np.array([0.5, 0.2, 0.3]), "m2": np.array([0.1, 0.6, 0.3])}
    rows = [
        {"subject": who, "behavior": name, "share": share}
        for who, shares in true.items()
        for name, share in zip(("a", "b"), shares @ rates, strict=False)
    ]
    rows.append({"subject": "m1", "behavior": "c", "share": None})
    corrected = correct_time_budget(rows, ["a", "b", ""], confusion)
    assert [row["corrected"] for row in corrected] == pytest.approx([0.5, 0.2, None, 0.1, 0.6])
    assert all(row["low"] is None and row["high"] is None for row in corrected)
    several = np.concatenate([confusion * k for k in (1, 2, 3, 4, 5)]) + np.random.default_rng(0).integers(0, 10, (5, 3, 3))
    by_subject = [row for row in correct_time_budget(rows, ["a", "b", ""], several) if row["subject"] == "m2"]
    value, low, high = corrected_shares(np.array([*(true["m2"] @ rates)[:2], 0.3]), several)
    for k, row in enumerate(by_subject):
        assert (row["corrected"], row["low"], row["high"]) == pytest.approx((value[k], low[k], high[k]))
    with pytest.raises(MismatchError, match="lacks: b"):
        correct_time_budget(rows, ["a", ""], confusion[:, :2, :2])


def test_behaviors_without_true_frames_are_not_corrected():
    value, _, _ = corrected_shares(np.array([0.25, 0.75]), np.array([[[0.0, 0], [0, 10]]]))
    assert value == pytest.approx([0.25, 0.75])
    assert corrected_shares(np.zeros(2), np.array([[[5.0, 1], [0, 10]]]))[0].tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(6))
def test_budget_errors_equal_their_definitions(seed):
    rng = np.random.default_rng(seed)
    n_frames, rate = 60, 5
    names, subjects = ["a", "b"], ["m1", "m2"]

    def annotate():
        rows = []
        for who in range(2):
            codes = np.repeat(rng.integers(0, 3, 12), 5)
            rows += [(k.start, k.stop, k.values, who) for k in [iv.encode_runs(codes)]]
        start, stop = (np.concatenate([row[k] for row in rows]) for k in (0, 1))
        code = np.concatenate([row[2] for row in rows])
        who = np.concatenate([np.full(len(row[0]), row[3]) for row in rows])
        keep = code < 2
        named = [subjects[k] for k in who[keep]]
        return Annotation.from_bouts(start[keep], stop[keep], code[keep], names, rate, n_frames, subject=named, subjects=subjects)

    truth, pred = annotate(), annotate()
    scores = eb.score(pred, truth, resamples=0)
    transitions = np.zeros((2, 2, 2))
    for k, side in enumerate((truth, pred)):
        for who in subjects:
            order = side.select(subject=who).behavior.tolist()
            for first, second in itertools.pairwise(order):
                transitions[k, first, second] += first != second
    shares = [[row / row.sum() if row.sum() else row for row in counts] for counts in transitions]
    distances = [abs(shares[0][b] - shares[1][b]).sum() / 2 for b in (0, 1)]
    distances = [1.0 if transitions[0, b].any() and not transitions[1, b].any() else distance for b, distance in enumerate(distances)]
    weights = transitions[0].sum(axis=1)
    expected = weights @ distances / weights.sum() if weights.sum() else np.nan
    assert scores.overall["transition_distance"] == pytest.approx(expected, nan_ok=True)
    for code, name in enumerate(names):
        spans = [side.spans(code) for side in (truth, pred)]
        counts, seconds = [len(s.start) for s in spans], [iv.total(s) / rate for s in spans]
        values = scores.behaviors[name]
        assert values["count_error"] == pytest.approx(abs(counts[1] - counts[0]) / counts[0] if counts[0] else np.nan, nan_ok=True)
        share = abs(seconds[1] - seconds[0]) / (2 * n_frames / rate) if any(counts) else np.nan
        assert values["time_error"] == pytest.approx(share, nan_ok=True)
        first = [min(s.start.tolist(), default=n_frames) / rate for s in spans]
        assert values["latency_error"] == pytest.approx(abs(first[0] - first[1]) if any(counts) else np.nan, nan_ok=True)


def test_transitions_from_a_behavior_that_is_not_predicted_differ_completely():
    truth = Annotation.from_frames(np.repeat([0, 1, 2], 10), ["a", "b", "c"], 10)
    pred = Annotation.from_frames(np.repeat([1, 2], [20, 10]), ["a", "b", "c"], 10)
    assert eb.score(pred, truth, resamples=0).overall["transition_distance"] == pytest.approx(0.5)  # 1 from a, 0 from b
