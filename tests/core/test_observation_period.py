"""Observation periods: studies in which every recording was labeled for the same time."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Ethogram
from ethobench.core.observation_period import ObservationPeriod

NAMES = ("base", "run", "rest")
WITH_BACKGROUND = Ethogram(NAMES, background="base")


def annotate(first: int, seconds: int = 100, n_frames: int = 1500, rate: float = 10.0, seed: int = 0) -> Annotation:
    """Return an annotation whose bouts fill a time of `seconds` from frame `first` on."""
    rng = np.random.default_rng(seed)
    stop = first + round(seconds * rate)
    inner = np.sort(rng.choice(np.arange(first + 1, stop), 11, replace=False))
    edges = np.array([0, first, *inner, stop, n_frames])
    behaviors = ["base", *(NAMES[1 + number % 2] for number in range(12)), "base"]
    return Annotation.from_bouts(edges[:-1], edges[1:], behaviors, WITH_BACKGROUND, rate, n_frames)


def study(n: int = 8, **options: int) -> list[Annotation]:
    return [annotate(first=17 * number, seed=number, **options) for number in range(n)]


def test_the_time_is_found_whenever_the_first_bout_begins() -> None:
    period = ObservationPeriod.fit(study())
    assert period == ObservationPeriod(100.0, 150.0, 8, pytest.approx(sum(1500 - 1000 - 17 * n for n in range(8)) / 12_000))
    assert "8 recordings have labels for 100 s from the first bout" in period.description


def test_without_a_named_background_the_time_is_the_same() -> None:
    annotations = [annotation.restrict(["run", "rest"]) for annotation in study()]
    assert ObservationPeriod.fit(annotations).seconds == 100.0


@pytest.mark.parametrize(
    "annotations",
    [
        study(4),  # too few recordings
        [annotate(0, seconds=90 + 2 * n, seed=n) for n in range(8)],  # labeled for different times
        [annotate(0, n_frames=1000, seed=n) for n in range(8)],  # labeled to the end
        [a.mark_unobserved(np.arange(1500) >= 1000 + 17 * n) for n, a in enumerate(study())],  # the rest is known to be unlabeled
        [Annotation.from_bouts([5 * n], [5 * n + 300], ["run"], WITH_BACKGROUND, 10, 1500) for n in range(8)],  # one stimulus in each
        [a.restrict(["run"]) for a in study()],  # bouts do not fill the time, so nobody knows when labeling stopped
        [Annotation.from_bouts([], [], [], WITH_BACKGROUND, 10, 1500) for _ in range(8)],
        [],
    ],
    ids=["few", "different", "to the end", "unobserved", "stimulus", "sparse", "no bouts", "no recordings"],
)
def test_other_studies_have_no_observation_period(annotations: list[Annotation]) -> None:
    assert ObservationPeriod.fit(annotations) is None


def test_one_recording_in_ten_may_differ() -> None:
    assert ObservationPeriod.fit([*study(9), annotate(0, seconds=60)]).n_recordings == 9
    assert ObservationPeriod.fit([*study(8), annotate(0, seconds=60), annotate(0, seconds=50)]) is None


def test_the_rest_of_a_reference_annotation_is_unobserved() -> None:
    period, annotation = ObservationPeriod.fit(study()), annotate(200, seed=3)
    excluded = period.exclude_rest(annotation)
    observed = excluded.observed.of_any()
    assert (observed.start.tolist(), observed.stop.tolist()) == ([0], [1200])
    assert np.array_equal(excluded.to_codes()[:1200], annotation.to_codes()[:1200])


def test_labels_after_the_period_are_kept() -> None:
    """One recording in ten may have been labeled for longer."""
    period, annotation = ObservationPeriod.fit(study()), annotate(200, seconds=120)
    assert period.exclude_rest(annotation).observed.of_any().stop.tolist() == [1400]


@given(first=st.integers(0, 400), seed=st.integers(0, 99), early=st.integers(0, 20), late=st.integers(0, 60))
def test_a_prediction_is_limited_to_the_time_around_its_bouts(first: int, seed: int, early: int, late: int) -> None:
    """Bouts go on after the labeled time, as in a prediction, and a false bout comes before it."""
    truth, period = annotate(first, seed=seed), ObservationPeriod.fit(study())
    codes = truth.to_codes()
    codes[first + 1000 :] = 1
    begin = max(first - 60, 0)
    if first >= 60:
        codes[begin : begin + early] = 2
    limited = period.limit(Annotation.from_frames(codes, WITH_BACKGROUND, 10.0))
    assert np.array_equal(limited.to_codes(), truth.to_codes())
    assert limited.observed.is_complete(1500)


@given(codes=st.lists(st.integers(0, 2), min_size=1, max_size=300))
def test_limiting_keeps_what_is_inside_and_leaves_only_background_outside(codes: list[int]) -> None:
    annotation = Annotation.from_frames(np.array(codes), WITH_BACKGROUND, 1.0)
    period = ObservationPeriod(100.0, 300.0, 8, 0.3)
    (start,), (stop,) = period.find(annotation)
    limited = period.limit(annotation)
    assert stop - start == min(100, len(codes))
    assert np.array_equal(limited.to_codes()[start:stop], np.array(codes)[start:stop])
    assert not limited.to_codes()[:start].any()
    assert not limited.to_codes()[stop:].any()
    assert np.array_equal(period.limit(limited).to_codes(), limited.to_codes())


def test_labels_may_begin_later_than_the_predicted_behavior() -> None:
    """Annotators react two seconds late; the median over recordings decides, so that one odd recording does not matter."""
    period = ObservationPeriod.fit(study())
    early = [Annotation.from_frames(np.roll(a.to_codes(), -20), WITH_BACKGROUND, 10.0) for a in study()[2:]]
    pairs = [*zip(early, study()[2:], strict=True), (study()[7], study()[0])]
    delayed = period.with_delay(pairs)
    assert (delayed.delay, delayed.seconds) == (2.0, period.seconds)
    (start,), (stop,) = delayed.find(early[3])
    assert (start, stop) == (5 * 17, 5 * 17 + 1000)
    assert delayed.with_delay([]) == delayed
    at_the_end = Annotation.from_frames(np.r_[np.zeros(500, int), np.ones(1000, int)], WITH_BACKGROUND, 10.0)
    assert delayed.find(at_the_end).stop.tolist() == [1500]


def test_only_recordings_as_long_as_those_that_were_labeled_are_limited() -> None:
    period = ObservationPeriod(100.0, 150.0, 8, 0.3)
    applies = {n: period.applies_to(Annotation.from_frames(np.zeros(n, int), WITH_BACKGROUND, 1.0)) for n in (100, 101, 165, 166)}
    assert applies == {100: False, 101: True, 165: True, 166: False}


def test_it_survives_json_and_refuses_impossible_values() -> None:
    period = ObservationPeriod.fit(study())
    saved = json.loads(json.dumps(asdict(period)))
    assert ObservationPeriod.from_dict(saved) == period
    for seconds in (0, -1, 151, float("nan")):
        with pytest.raises(ValueError, match="not possible"):
            ObservationPeriod.from_dict({**saved, "seconds": seconds})
