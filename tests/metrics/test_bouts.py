"""Bout scores: point events, onset and offset errors; all scores equal their definitions, applied to all possible matchings."""

from __future__ import annotations

from itertools import combinations, groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench as eb
from ethobench import Annotation, Behavior, Ethogram
from ethobench.core import intervals as iv
from ethobench.metrics import all_metrics
from ethobench.metrics.pairs import AlignedPair

of = Annotation.from_bouts


def test_onset_and_offset_errors_are_signed_medians_in_seconds():
    ethogram = Ethogram(["a"])
    truth = Annotation.from_bouts([30, 90, 150], [60, 120, 180], [0] * 3, ethogram, 30, 300)
    pred = Annotation.from_bouts([33, 92, 151], [55, 119, 190], [0] * 3, ethogram, 30, 300)
    values = eb.score(pred, truth).behaviors["a"]
    assert values["onset_error"] == pytest.approx(2 / 30)
    assert values["offset_error"] == pytest.approx(-1 / 30)
    assert values["onset_distance"] == pytest.approx(6 / 3 / 30)
    even = eb.score(pred.take([0, 1]), truth.take([0, 1])).behaviors["a"]
    assert even["onset_error"] == pytest.approx(2.5 / 30)


def test_point_events_are_matched_within_a_tolerance_and_have_no_frames():
    ethogram = Ethogram([Behavior("bite", point=True), "a"])

    def of(points, n=100):
        frames = [*points, 50]
        return Annotation.from_bouts(frames, [*points, 60], [0] * len(points) + [1], ethogram, 10, n)

    scores = eb.score(of([7, 30, 99]), of([5, 40, 100]))
    bite = scores.behaviors["bite"]
    assert (bite["bout_precision"], bite["bout_recall"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert bite["onset_distance"] == pytest.approx((0.2 + 0.1) / 2)
    assert np.isnan(bite["f1"])
    assert np.isnan(bite["so"])
    assert scores.overall["f1"] == scores.behaviors["a"]["f1"] == 1
    assert scores.overall["so"] == 1
    assert "bite" in " ".join(map(str, scores.notes))
    partly = eb.score(of([7, 90]), of([7]).with_observed(iv.intervals([0], [80])))
    assert partly.behaviors["bite"]["bout_precision"] == 1


def test_medians_of_large_errors():
    t = of([100, 300, 500], [200, 400, 640], ["a"] * 3, ["a"], 1, 1000)
    p = of([106, 307, 600], [200, 400, 640], ["a"] * 3, ["a"], 1, 1000)
    assert eb.score(p, t).overall["onset_error"] == pytest.approx(7)
    early = of([50, 293, 400], [200, 390, 640], ["a"] * 3, ["a"], 1, 1000)
    assert eb.score(early, t).overall["onset_error"] == pytest.approx(-50)


@given(st.lists(st.integers(0, 59), min_size=1, max_size=9), st.sampled_from([1, -1]))
def test_medians_of_small_and_large_errors(errors, sign):
    """Bins are exact for whole seconds up to 5 s, and 2 % wide beyond."""
    starts = [100 + 300 * k for k in range(len(errors))]
    truth = of(starts, [s + 100 for s in starts], ["a"] * len(starts), ["a"], 1, 3000)
    onset = of([s + sign * e for s, e in zip(starts, errors, strict=True)], [s + 100 for s in starts], ["a"] * len(starts), ["a"], 1, 3000)
    offset = of(starts, [s + 100 + sign * e for s, e in zip(starts, errors, strict=True)], ["a"] * len(starts), ["a"], 1, 3000)
    for pred, name in ((onset, "onset_error"), (offset, "offset_error")):
        assert eb.score(pred, truth, resamples=0).overall[name] == pytest.approx(sign * np.median(errors), rel=0.021)


def runs(frames: list[bool]) -> list[range]:
    """Return the bouts of a frame array as ranges of frames."""
    groups = [[k for k, _ in group] for value, group in groupby(enumerate(frames), key=lambda item: item[1]) if value]
    return [range(group[0], group[-1] + 1) for group in groups]


def most(sets: list[list], weight) -> list[list]:
    """Return the sets of pairs of which no bout occurs twice, as many pairs as possible and of the greatest weight; several if tied."""
    valid = [s for s in sets if len({i for i, _ in s}) == len(s) == len({j for _, j in s})]
    best = max((len(s), round(sum(map(weight, s)), 9)) for s in valid)
    return [s for s in valid if (len(s), round(sum(map(weight, s)), 9)) == best]


def scores_by_definition(truth: list[bool], pred: list[bool], rate: float):
    """Yield the bout scores for each of the best matchings."""
    a, b = runs(truth), runs(pred)
    iou = {(i, j): len({*x} & {*y}) / len({*x} | {*y}) for i, x in enumerate(a) for j, y in enumerate(b) if {*x} & {*y}}
    subsets = [[*c] for k in range(min(len(a), len(b)) + 1) for c in combinations(iou, k)]
    half = most([s for s in subsets if all(iou[pair] >= 0.5 for pair in s)], iou.get)[0]
    entered = [x for x in a if len(x) > 1 and any(pred[k] for k in x)]
    steady = [1 - sum(pred[k] != pred[k + 1] for k in x[:-1]) / (len(x) - 1) for x in entered]
    for matched in most(subsets, iou.get):
        onset = [b[j].start - a[i].start for i, j in matched]
        offset = [b[j].stop - a[i].stop for i, j in matched]
        errors = [abs(x) + abs(y) for x, y in zip(onset, offset, strict=True)]
        yield {
            "precision": share(len(matched), len(b)),
            "recall": share(len(matched), len(a)),
            "f1": share(2 * len(matched), len(a) + len(b)),
            "f1_50": share(2 * len(half), len(a) + len(b)),
            "overlap": mean([iou[pair] for pair in matched]),
            "temporal_precision_frames": mean([1 / (1 + e) for e in errors]),
            "temporal_precision": mean([1 / (1 + e / rate) for e in errors]),
            "continuity": mean(steady),
            "fragmented": share(sum(sum(i == k for i, _ in iou) > 1 for k in range(len(a))), len(a)),
            "merged": share(sum(sum(j == k for _, j in iou) > 1 for k in range(len(b))), len(b)),
            "onset_error": float(np.median(onset)) / rate if onset else np.nan,
            "offset_error": float(np.median(offset)) / rate if offset else np.nan,
            "onset_distance": mean([abs(x) / rate for x in onset]),
            "offset_distance": mean([abs(x) / rate for x in offset]),
        }


def share(count: int, total: int) -> float:
    return count / total if total else np.nan


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else np.nan


frame_arrays = st.lists(st.booleans(), min_size=18, max_size=18)


@given(frame_arrays, frame_arrays)
def test_scores_equal_their_definitions(truth, pred):
    sides = (Annotation.from_frames(np.array(side)[:, None], ["a"], 10) for side in (pred, truth))
    pair = AlignedPair("r", "r", *sides)
    metrics = {name.partition(".")[2]: metric for name, metric in all_metrics().items() if metric.family == "bouts"}
    values = {name: float(metric.value(metric.statistics(pair))[0]) for name, metric in metrics.items()}
    assert any(values == pytest.approx(expected, nan_ok=True) for expected in scores_by_definition(truth, pred, 10))
