"""The published suites against their rules, written out literally."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import ethobench as eb
from ethobench import Annotation, Behavior, Dataset, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.metrics.suites import suites
from ethobench.metrics.suites.banos import continuity
from ethobench.metrics.suites.rodentbench import entropy_weighted_mcc

NAMES = ["a", "b", "c"]
codes = st.integers(1, 50).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 2))


def close(value: float, expected: float) -> bool:
    return value == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_names_under_overall():
    truth = Annotation.from_frames([0, 1, 2, 0], Ethogram(NAMES, "c"), 10)
    expected = {
        "banos": {"precision", "recall", "f1_score", "so", "tp", "ic"},
        "bebe": {"f1", "precision", "recall", "f1_std", "f1_pooled", "f1_present", "time_scale_ratio", "homogeneity"},
        "calms21": {"macro_f1", "macro_precision", "macro_recall", "map", "map_binned"},
        "mabe2025": {"f1", "f1_labeled", "precision", "recall"},
        "rodentbench": {"accuracy", "macro_f1", "map", "mutual_information", "mcc"},
    }
    for name, names in expected.items():
        assert {*eb.score(truth, truth, suite=name).overall} == names
    assert {*expected, "ethobench"} == {*suites.names()}


@given(st.lists(codes, min_size=1, max_size=4), st.data())
def test_bebe_is_scikit_learn_by_individual(recordings, data):
    """Labels 1..C with 0 = unknown; a prediction of 0 becomes 1; zero_division = 1; mean over individuals."""
    who = [data.draw(st.sampled_from(["x", "y"])) for _ in recordings]
    pairs, individuals = {}, {}
    for i, (pred, truth) in enumerate(recordings):
        sides = [Annotation.from_frames(np.array(v) - 1, Ethogram(NAMES), 10, unobserved=-1) for v in (pred, truth)]
        pairs[f"r{i}"], individuals[f"r{i}"] = tuple(sides), who[i]
    if not any(np.any(truth) for _, truth in recordings):
        return
    scores = eb.score(pairs, suite="bebe", individuals=individuals, resamples=0)
    values = {"f1": [], "precision": [], "recall": []}
    for individual in dict.fromkeys(who):
        truth = np.concatenate([recordings[i][1] for i in range(len(recordings)) if who[i] == individual])
        pred = np.concatenate([recordings[i][0] for i in range(len(recordings)) if who[i] == individual])
        pred = np.where(pred == 0, 1, pred)[truth > 0]
        truth = truth[truth > 0]
        if len(truth) == 0:
            p = r = f = np.ones(3)
        else:
            p, r, f, _ = sk.precision_recall_fscore_support(truth, pred, labels=[1, 2, 3], zero_division=1)
        for name, per_class in (("precision", p), ("recall", r), ("f1", f)):
            values[name].append(per_class.mean())
    if scores.grouping.scored.all():
        for name, individuals_ in values.items():
            assert close(scores.overall[name], np.mean(individuals_)), name
        assert scores.overall["f1_std"] == pytest.approx(np.std(values["f1"]), abs=1e-7)


def test_bebe_of_absent_classes():
    truth = Annotation.from_frames([0, 0, 0, 0], Ethogram(NAMES), 10)
    pred = Annotation.from_frames([0, 0, 1, 1], Ethogram(NAMES), 10)
    scores = eb.score(pred, truth, suite="bebe").behaviors
    assert (scores["c"]["precision"], scores["c"]["recall"], scores["c"]["f1"]) == (1, 1, 1)
    assert (scores["b"]["precision"], scores["b"]["recall"], scores["b"]["f1"]) == (0, 1, 0)
    missed = eb.score(Annotation.from_frames([1, 1, 1, 1], Ethogram(NAMES), 10), truth, suite="bebe").behaviors["a"]
    assert (missed["precision"], missed["recall"], missed["f1"]) == (1, 0, 0)


def test_bebe_time_scale_ratio():
    truth = Annotation.from_frames(np.arange(100) // 20 % 2, Ethogram(NAMES), 10)
    pred = Annotation.from_frames(np.arange(100) // 10 % 2, Ethogram(NAMES), 10)
    assert close(eb.score(pred, truth, suite="bebe").overall["time_scale_ratio"], 0.5)


@given(codes)
def test_calms21_pools_frames_and_excludes_other(pair):
    pred, truth = (np.array(v) % 3 for v in pair)
    sides = [Annotation.from_frames(v, Ethogram(NAMES, "c"), 10) for v in (pred, truth)]
    overall = eb.score(*sides, suite="calms21", resamples=0).overall
    present = [k for k in (0, 1) if k in truth or k in pred]
    if not present:
        assert np.isnan(overall["macro_f1"])
        return
    for name, function in (("macro_f1", sk.f1_score), ("macro_precision", sk.precision_score), ("macro_recall", sk.recall_score)):
        expected = function(truth, pred, labels=present, average="macro", zero_division=0)
        assert close(overall[name], expected), name


segments = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.sampled_from(["x", "y", "background"])), max_size=8)


def literal(truth, pred):
    """Return the scores of Rodent-Bench, computed literally from lists of (start, end, label) in seconds."""
    last = max(int(max((e for _, e, _ in side), default=0)) for side in (truth, pred))

    def label(side, second):
        return next((name for start, end, name in side if start <= second < end), "background")

    y = [label(truth, s) for s in range(last + 1)]
    p = [label(pred, s) for s in range(last + 1)]
    labels = sorted({*y, *p} - {"background"})
    f1 = []
    for name in labels:
        tp = sum(a == b == name for a, b in zip(y, p, strict=True))
        fp = sum(b == name != a for a, b in zip(y, p, strict=True))
        fn = sum(a == name != b for a, b in zip(y, p, strict=True))
        precision = tp / (tp + fp) if tp + fp else 0
        recall = tp / (tp + fn) if tp + fn else 0
        f1.append(2 * precision * recall / (precision + recall) if precision + recall else 0)
    total, previous = 0.0, 0.0
    for k in range(1, 10):
        used = set()
        for start, end, name in truth:
            for j, (a, b, other) in enumerate(pred):
                inside = max(0, min(end, b) - max(start, a))
                union = (end - start) + (b - a) - inside
                if j not in used and other == name and union > 0 and inside / union >= k / 10:
                    used.add(j)
                    break
        precision = len(used) / len(pred) if pred else 0
        recall = len(used) / len(truth) if truth else 0
        total += precision * (recall - previous)
        previous = recall
    return {
        "accuracy": np.mean([a == b for a, b in zip(y, p, strict=True)]),
        "macro_f1": np.mean(f1) if f1 else 0.0,
        "mutual_information": sk.mutual_info_score(y, p),
        "mcc": sk.matthews_corrcoef(y, p) if len({*y, *p}) > 1 else 0.0,
        "map": total,
    }


def from_segments(rows, rate=4):
    rows = [(a, a + b, name) for a, b, name in rows]
    names = sorted({name for *_, name in rows})
    length = max([e for _, e, _ in rows], default=0) * rate
    return Annotation.from_bouts([a * rate for a, *_ in rows], [b * rate for _, b, _ in rows], [n for *_, n in rows], names, rate, length)


@given(segments, segments)
def test_rodentbench_equals_its_evaluator(truth, pred):
    expected = literal(*([(a, a + b, name) for a, b, name in side] for side in (truth, pred)))
    overall = eb.score(from_segments(pred), from_segments(truth), suite="rodentbench", resamples=0).overall
    for name, value in expected.items():
        assert close(overall[name], value), (name, overall[name], value)


def test_rodentbench_map_of_the_worked_examples():
    def annotation(rows):
        return Annotation.from_bouts([a for a, _ in rows], [b for _, b in rows], [0] * len(rows), ["x"], 100, 100_000)

    truth = annotation([(0, 100), (1000, 1100)])
    all_55 = annotation([(0, 55), (1000, 1055)])
    assert close(eb.score(all_55, truth, suite="rodentbench").overall["map"], 1.0)
    mixed = annotation([(0, 95), (1000, 1045)])
    assert close(eb.score(mixed, truth, suite="rodentbench").overall["map"], 0.75)


def test_rodentbench_counts_one_second_if_nothing_is_longer():
    half_a_second = Annotation.from_bouts([0], [2], ["x"], ["x"], 4, 4)
    nothing = Annotation.from_bouts([], [], [], ["x"], 4, 4)
    assert eb.score(nothing, half_a_second, suite="rodentbench", resamples=0).overall["accuracy"] == 0
    assert eb.score(half_a_second, nothing, suite="rodentbench", resamples=0).overall["accuracy"] == 0


def published_weight(recordings) -> float:
    """Return entropy times seconds, where the first segment that contains a second, both ends included, labels it."""
    labels = []
    for rows in recordings:
        seconds = range(max([a + b for a, b, _ in rows], default=0) + 1)
        labels += [next((name for a, b, name in rows if a <= second <= a + b), "filler") for second in seconds]
    shares = np.array([labels.count(name) / len(labels) for name in {*labels}])
    return (-(shares * np.log(shares)).sum() + 1e-8) * len(labels)


def test_rodentbench_weights_of_datasets():
    """Segments that overlap, touch, leave gaps, and a recording without any."""
    recordings = {
        "mixed": [[(0, 4, "x"), (3, 4, "y"), (10, 2, "x")], [(2, 1, "y"), (3, 5, "x")]],
        "sparse": [[(1, 6, "x")], []],
    }
    scores = {}
    for name, truths in recordings.items():
        pairs = {str(k): (from_segments([(0, 3, "x"), (4, 4, "y")]), from_segments(rows)) for k, rows in enumerate(truths)}
        scores[name] = eb.score(pairs, suite="rodentbench", resamples=0)
    values = {name: one.overall["mcc"] for name, one in scores.items()}
    assert len({*values.values()}) == 2
    weights = [published_weight(recordings[name]) for name in values]
    assert entropy_weighted_mcc(scores) == pytest.approx(np.average([*values.values()], weights=weights), abs=1e-12)


def test_rodentbench_resolves_overlaps_by_order():
    ethogram = ["x", "y"]
    first_x = Annotation.from_bouts([0, 0], [40, 40], ["x", "y"], ethogram, 10, 40)
    first_y = Annotation.from_bouts([0, 0], [40, 40], ["y", "x"], ethogram, 10, 40)
    only_x = Annotation.from_bouts([0], [40], ["x"], ethogram, 10, 40)
    assert eb.score(first_x, only_x, suite="rodentbench").overall["accuracy"] == 1
    assert eb.score(first_y, only_x, suite="rodentbench").overall["accuracy"] == pytest.approx(0.2)


def test_different_lengths_are_refused_unless_the_publication_allows_them():
    a, b = (Annotation.from_frames([0] * n, NAMES, 10) for n in (10, 12))
    for name in ("ethobench", "bebe", "calms21"):
        with pytest.raises(MismatchError, match="10 frames, the truth 12"):
            eb.score(a, b, suite=name)
    for name in ("banos", "rodentbench"):
        eb.score(a, b, suite=name)


def test_a_longer_prediction_adds_bouts_in_banos():
    truth = Annotation.from_frames([0, 0, 3, 3], NAMES, 10)
    pred = Annotation.from_frames([0, 0, 3, 3, 3, 0], NAMES, 10)
    assert eb.score(pred, truth, suite="banos").behaviors["a"]["precision"] == 0.5


@pytest.mark.data
def test_humans_against_each_other_by_frames(data):
    dataset = eb.load_dataset("banos")
    scores = eb.score({r.id: r.annotation("human2") for r in dataset}, dataset, annotator="human1", suite="calms21")
    assert {b: round(f["macro_f1"], 3) for b, f in scores.behaviors.items() if b != "other"} == {
        "attack": 0.740, "investigation": 0.812, "mount": 0.925,
    }  # fmt: skip


def test_individuals_and_truth_come_from_a_dataset():
    annotations = [Annotation.from_frames(np.roll(np.arange(40) // 5 % 3, i), NAMES, 10) for i in range(3)]
    recordings = tuple(
        Recording(f"r{i}", individual=w, annotations={"me": a}) for i, (w, a) in enumerate(zip("xxy", annotations, strict=True))
    )
    data = Dataset(recordings, Ethogram(NAMES))
    scores = eb.score({f"r{i}": annotations[0] for i in range(3)}, data)
    assert scores.individuals == ("x", "y")
    assert (
        scores.per("individual")["x"]["overall"]["f1"]
        == eb.score({"a": (annotations[0], annotations[0]), "b": (annotations[0], annotations[1])}).overall["f1"]
    )


def test_bebe_excludes_points_and_counts_missing_predictions_as_the_first_class():
    ethogram = Ethogram(["w", "r", Behavior("bite", point=True)])
    t = Annotation.from_bouts([0, 4], [4, 8], [0, 1], ethogram, 1, 8)
    p = Annotation.from_bouts([0], [8], [0], ethogram, 1, 8)
    scores = eb.score(p, t, suite="bebe")
    assert scores.overall["f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert np.isnan(scores.behaviors["bite"]["f1"])
    named = Ethogram(["w", "other"], "other")
    silent = Annotation.from_bouts([], [], [], named, 1, 4, observed=iv.empty())
    assert eb.score(silent, Annotation.from_bouts([0], [4], [0], named, 1, 4), suite="bebe").overall["f1_present"] == 1


def test_suite_banos_does_not_fill_the_background():
    import pandas as pd

    ethogram = Ethogram(["a", "other"], "other")
    pred, truth = np.array([[0, 1], [0, 0], [0, 1], [1, 0]]), np.array([[0, 1], [0, 1], [0, 1], [1, 0]])
    suite = eb.score(*(Annotation.from_frames(s, ethogram, 1) for s in (pred, truth)), suite="banos").behaviors
    package = eb.banos.score(*(pd.DataFrame(s, columns=["a", "other"]) for s in (pred, truth)))
    assert suite["other"]["precision"] == package["other"]["precision"] == 0.5


def test_default_suite_differs_from_banos_in_its_known_deviations():
    ethogram = Ethogram(["a"])

    def bouts(start, stop):
        return Annotation.from_bouts(start, stop, [0] * len(start), ethogram, 10, 100)

    truth = bouts([10, 40], [20, 50])
    miss = eb.score(bouts([60], [70]), truth), eb.score(bouts([60], [70]), truth, suite="banos")
    assert miss[0].behaviors["a"]["bout_f1"] == 0
    assert np.isnan(miss[1].behaviors["a"]["f1_score"])
    assert np.isnan(miss[0].behaviors["a"]["ic"])
    assert miss[1].behaviors["a"]["ic"] == 1
    spanning = eb.score(bouts([10], [50]), truth), eb.score(bouts([10], [50]), truth, suite="banos")
    assert spanning[0].behaviors["a"]["so"] == pytest.approx(10 / 40)
    assert spanning[0].behaviors["a"]["merged"] == 1
    split = eb.score(bouts([10, 16], [15, 20]), bouts([10], [20]))
    assert split.behaviors["a"]["fragmented"] == 1
    assert split.behaviors["a"]["so"] == pytest.approx(0.5)
    assert split.behaviors["a"]["ic"] == pytest.approx(1 - 2 / 9)


def test_bebe_requires_one_behavior_at_a_time():
    overlapping = Annotation.from_frames(np.ones((10, 2), dtype=bool), ["a", "b"], 1)
    with pytest.raises(MismatchError, match="behaviors overlap, but the suite bebe"):
        _ = eb.score(overlapping, overlapping, suite="bebe").overall


def test_bebe_time_scale_ratio_of_one_predicted_bout():
    truth = Annotation.from_frames(np.repeat([0, 1], 10), NAMES, 1)
    assert close(eb.score(Annotation.from_frames([0] * 20, NAMES, 1), truth, suite="bebe").overall["time_scale_ratio"], 2.0)


@given(codes)
def test_banos_continuity_counts_switches_in_true_bouts(pair):
    """The mean over true bouts of more than one frame of 1 - switches / (length - 1)."""
    pred, truth = (iv.from_mask(np.array(values) == 1) for values in pair)
    frames = [value == 1 for value in pair[0]]
    values = []
    for start, stop in zip(truth.start.tolist(), truth.stop.tolist(), strict=True):
        if stop - start > 1:
            switches = sum(frames[k] != frames[k + 1] for k in range(start, stop - 1))
            values.append(1 - switches / (stop - start - 1))
    assert close(continuity(truth, pred), np.mean(values) if values else np.nan)
