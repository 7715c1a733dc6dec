"""Held-out quality of few labels, and whether more would help."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.models.teaching_quality import BehaviorQuality, Quality, advise, compare_f1, thin_labels

RATE, N = 10, 1000
ETHOGRAM = Ethogram(["rest", "run"])


def _truth(seed: int) -> Annotation:
    codes = np.random.default_rng(seed).permutation(np.arange(20) % 2).repeat(50)
    return Annotation.from_frames(codes, ETHOGRAM, RATE)


def _prediction(truth: Annotation, wrong: int) -> Prediction:
    codes = truth.to_codes().copy()
    codes[:wrong] = 1 - codes[:wrong]
    return Prediction(np.eye(2)[codes], ETHOGRAM, RATE, exclusive=True)


@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_labels_has_all_behaviors(seed):
    truths = {f"r{i}": _truth(i) for i in range(4)}
    rare = Annotation.from_bouts([20], [40], ["groom"], ["rest", "run", "groom"], RATE, N, observed=iv.intervals([0], [300]))
    truths["rare"] = rare
    truths = {name: truth.with_ethogram(rare.ethogram) for name, truth in truths.items()}
    thinned = thin_labels(truths, seed)
    before, after = (sum(iv.total(t.observed.frames) for t in side.values()) for side in (truths, thinned))
    assert 0.4 * before < after < 0.75 * before
    assert (thinned["rare"].behavior == 2).any()
    for name, truth in thinned.items():
        kept, former = truth.to_codes(), truths[name].to_codes()
        np.testing.assert_array_equal(kept[kept >= 0], former[kept >= 0])


def test_the_gain_is_the_difference_in_f1():
    truths = {f"r{i}": _truth(i) for i in range(6)}
    groups = {name: name for name in truths}
    good = {name: _prediction(truth, 20) for name, truth in truths.items()}
    bad = {name: _prediction(truth, 200) for name, truth in truths.items()}
    gain, (low, high) = compare_f1(good, [bad], truths, groups, ["rest", "run"])
    assert gain == pytest.approx(0.98 - 0.8, abs=0.02)
    assert 0 < low <= gain <= high
    none, interval = compare_f1(good, [good, good], truths, groups, ["rest", "run"])
    assert none == 0
    assert interval == (0, 0)


def test_unobserved_frames_do_not_count():
    truth = _truth(0).mark_unobserved(iv.intervals([0], [500]))
    wrong_where_unobserved = _prediction(_truth(0), 500)
    perfect = _prediction(_truth(0), 0)
    gain, _ = compare_f1({"a": perfect}, [{"a": wrong_where_unobserved}], {"a": truth}, {"a": "a"}, ["rest", "run"])
    assert gain == 0


def test_the_card_has_only_scores_that_are_not_withheld():
    rows = (BehaviorQuality("rest", 9, 0.5, 0.4), BehaviorQuality("run", 1, withheld="few"))
    quality = Quality(1, "recording", 3, 10, 60.0, f1=0.5, bout_f1=0.4, behaviors=rows)
    assert quality.to_evaluation()["behaviors"] == {"rest": {"f1": 0.5, "bout_f1": 0.4}}
    assert Quality(1, "recording", 1, 10, 60.0, withheld="one recording").to_evaluation() == {}
    assert "out_of_fold" not in quality.to_dict()


@pytest.mark.parametrize(
    ("interval", "helps", "words"),
    [
        ((0.02, 0.1), True, "more labels would help"),
        ((-0.03, 0.005), False, "more labels of this kind would hardly help"),
        ((0.001, 0.005), False, "more labels of this kind would hardly help"),  # certain, but negligible
        ((-0.01, 0.05), None, "not clear yet"),
        ((float("nan"), float("nan")), None, "too few labels to tell"),
    ],
)
def test_advice_says_in_words_whether_more_labels_help(interval, helps, words):
    more_labels_help, advice = advise(sum(interval) / 2, interval)
    assert more_labels_help is helps
    assert advice.startswith(words)


def test_whether_more_labels_help_is_in_the_answer_of_the_viewer():
    assert Quality(1, "recording", 3, 10, 60.0, more_labels_help=False).to_dict()["more_labels_help"] is False
