"""Time budgets in long form, transitions and bouts, against counts of frames."""

from __future__ import annotations

import itertools
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording
from ethobench.analysis.budgets import mean_budgets
from ethobench.analysis.time_bins import TimeBins
from ethobench.core import intervals as iv
from ethobench.metrics.budgets import time_budget

NAMES = ["rest", "walk", "eat"]
PAIRS = {"n_bouts": "bouts", "total_s": "seconds", "share": "share", "mean_duration_s": "mean", "median_duration_s": "median"}


def random_annotation(seed: int, n_frames: int = 200, rate: float = 10.0, background: str | None = None) -> Annotation:
    random = np.random.default_rng(seed)
    codes = np.repeat(random.integers(0, 4, size=n_frames), random.integers(1, 12, size=n_frames))[:n_frames]
    unobserved = np.repeat(random.random(n_frames // 10) < 0.15, 10)
    return Annotation.from_frames(codes, Ethogram(NAMES, background), rate, unobserved=unobserved)


@pytest.mark.parametrize("background", [None, "rest"])
@given(seed=st.integers(0, 2**32 - 1))
def test_without_bins_the_table_equals_the_time_budget(seed, background):
    annotations = [random_annotation(seed, background=background), random_annotation(seed + 1, 150, background=background)]
    recordings = [Recording(f"r{k}", individual="m", annotations={"a": a}) for k, a in enumerate(annotations)]
    table = eb.budgets(recordings, by="individual")
    assert table["n_recordings"].tolist() == [2] * 3
    assert table["recording"].tolist() == [""] * 3
    for row, expected in zip(table.to_dict("records"), time_budget(*annotations), strict=True):
        for name, old in {**PAIRS, "latency_s": "latency"}.items():
            assert row[name] == pytest.approx(np.nan if expected[old] is None else expected[old], nan_ok=True)


@given(seed=st.integers(0, 2**32 - 1), seconds=st.sampled_from([1.0, 2.5, 7.0, 30.0]))
def test_bins_equal_counts_of_frames(seed, seconds):
    annotation = random_annotation(seed)
    table = eb.budgets(annotation, bin=seconds)
    frames, observed = annotation.to_frames(), iv.to_mask(annotation.observed.frames, 200)
    size = round(seconds * 10)
    assert table["bin"].nunique() == -(-200 // size)
    for row in table.itertuples():
        inside = slice(int(row.bin) * size, (int(row.bin) + 1) * size)
        present = frames[:, NAMES.index(row.behavior)]
        assert row.total_s == pytest.approx(present[inside].sum() / 10)
        assert row.observed_s == pytest.approx(observed[inside].sum() / 10)
        assert row.coverage == pytest.approx(observed[inside].mean())
        starts = np.flatnonzero(np.diff(np.concatenate(([0], present))) == 1)
        within = starts[(starts >= inside.start) & (starts < inside.stop)]
        assert row.n_bouts == len(within)
        assert np.isnan(row.latency_s) if not len(within) else row.latency_s == pytest.approx((within[0] - inside.start) / 10)
    full_range = eb.budgets(annotation).set_index("behavior")
    for name in ("n_bouts", "total_s", "observed_s"):
        assert table.groupby("behavior")[name].sum().to_dict() == pytest.approx(full_range[name].to_dict())


def test_parts_have_equal_lengths_whatever_the_recording():
    data = [Recording(name, annotations={"a": random_annotation(1, n)}) for name, n in (("long", 200), ("short", 100))]
    table = eb.budgets(data, bin="thirds")
    assert table.groupby("recording")["bin"].nunique().to_dict() == {"long": 3, "short": 3}
    lengths = (table["bin_stop"] - table["bin_start"]).groupby(table["recording"]).max()
    assert lengths["long"] == pytest.approx(6.7)
    assert lengths["short"] == pytest.approx(3.4)


def test_time_of_day_pools_days_and_needs_a_start():
    annotation = Annotation.from_bouts([0, 24], [2, 25], ["rest", "rest"], ["rest"], rate=1 / 3600, n_frames=48)
    recording = Recording("tag", annotations={"a": annotation}, start_time=datetime(2024, 5, 1, 22, 0))
    table = eb.budgets(recording, bin="clock:1h").set_index("bin")
    assert len(table) == 24
    assert table.loc[22, "total_s"] == 2 * 3600  # the first hour of both days
    assert table.loc[23, "total_s"] == 3600
    assert table.loc[22, "bin_start"] == 22 * 3600
    with pytest.raises(eb.EthobenchError, match="no date and time of its first frame"):
        eb.budgets(recording.copy(start_time=None), bin="clock:1h")


def test_bins_relative_to_an_event():
    ethogram = Ethogram([eb.Behavior("injection", point=True), "walk"])
    annotation = Annotation.from_bouts([50, 40, 60], [50, 45, 80], ["injection", "walk", "walk"], ethogram, rate=10, n_frames=100)
    without = Annotation.from_bouts([0], [10], ["walk"], ethogram, rate=10, n_frames=100)
    table = eb.budgets({"a": annotation, "b": without}, bin="event:injection:2s")
    walk = table[table["behavior"] == "walk"].set_index("bin")
    assert set(table["recording"]) == {"a"}
    assert walk["total_s"].to_dict() == pytest.approx({-3: 0, -2: 0, -1: 0.5, 0: 1, 1: 1, 2: 0})
    assert walk.loc[-1, "bin_start"] == -2
    assert walk.loc[2, "coverage"] == 1
    with pytest.raises(eb.NotFoundError, match="no behavior 'shot'"):
        eb.budgets(annotation, bin="event:shot:2s")


@pytest.mark.parametrize("text", ["", "5 parsecs", "-3s", "0s", "clock:7h", "parts:0", "event:5m", "1e5"])
def test_invalid_bins_are_refused(text):
    with pytest.raises(eb.ParameterError, match="time bins"):
        TimeBins.parse(text)


def test_too_many_bins_are_refused():
    annotation = Annotation.from_bouts([], [], [], ["rest"], rate=1, n_frames=10_000_000)
    with pytest.raises(eb.ParameterError, match="choose longer ones"):
        eb.budgets(annotation, bin="1s")


def test_every_scalar_column_travels_along():
    metadata = {"treatment": "drug", "dose": 2.5, "units": {"x": "g"}}
    data = [
        Recording("r1", "m1", annotations={"a": random_annotation(1)}, metadata=metadata),
        Recording("r2", "m1", annotations={"a": random_annotation(2)}, metadata={**metadata, "dose": 3.0}),
        Recording("r3", "m2", annotations={"a": random_annotation(3)}),
    ]
    table = eb.budgets(Dataset(tuple(data), Ethogram(NAMES)))
    assert table.drop_duplicates("recording").set_index("recording")["treatment"].to_dict() == {"r1": "drug", "r2": "drug", "r3": ""}
    assert "units" not in table
    pooled = eb.budgets(data, by=("individual", "treatment")).drop_duplicates("individual").set_index("individual")
    assert pooled.loc["m1", "treatment"] == "drug"
    assert pooled.loc["m1", "dose"] == ""
    with pytest.raises(eb.NotFoundError, match=r"no column 'sex'; available: .*treatment"):
        eb.budgets(data, by="sex")
    with pytest.raises(eb.NotFoundError, match="no annotator 'zoe'"):
        eb.budgets(data, annotator="zoe")
    with pytest.raises(eb.ParameterError, match="got str"):
        eb.budgets(["r1"])


def test_metadata_named_like_a_measure_does_not_replace_it():
    table = eb.budgets(Recording("r1", annotations={"a": random_annotation(1)}, metadata={"share": "half", "zone": 3}))
    assert table["share_"].tolist() == ["half"] * 3
    assert table["zone_"].tolist() == [3] * 3
    assert table.columns.is_unique
    assert table["share"].dtype == float


def test_group_means_are_over_individuals_not_recordings():
    annotations = [random_annotation(k) for k in range(4)]
    individuals, groups = ["m1", "m1", "m2", "m3"], ["a", "a", "a", "b"]
    data = [
        Recording(f"r{k}", i, annotations={"x": a}, metadata={"g": g})
        for k, (i, g, a) in enumerate(zip(individuals, groups, annotations, strict=True))
    ]
    means = mean_budgets(eb.budgets(data, by=("individual", "g")), "g").set_index(["g", "behavior"])
    shares = [{row["behavior"]: row["share"] for row in time_budget(*a)} for a in (annotations[:2], annotations[2:3], annotations[3:])]
    for name in NAMES:
        assert means.loc[("a", name), "n_individuals"] == 2
        assert means.loc[("a", name), "share"] == pytest.approx((shares[0][name] + shares[1][name]) / 2)
        assert means.loc[("a", name), "share_sd"] == pytest.approx(np.std([shares[0][name], shares[1][name]], ddof=1))
        assert means.loc[("b", name), "share"] == pytest.approx(shares[2][name])
        assert np.isnan(means.loc[("b", name), "share_sd"])


def test_an_animal_without_bouts_has_zeros():
    annotation = Annotation.from_bouts([], [], [], NAMES, rate=10, n_frames=100, subjects=["m1", "m2"])
    table = eb.budgets(annotation)
    assert set(table["subject"]) == {"m1", "m2"}
    assert (table["share"] == 0).all()
    assert table["latency_s"].isna().all()


@given(seed=st.integers(0, 2**32 - 1))
def test_transitions_equal_a_walk_through_the_frames(seed):
    annotation = random_annotation(seed, background="rest")
    codes = annotation.to_codes()
    expected = dict.fromkeys(((a, b) for a in NAMES for b in NAMES if a != b), 0)
    for before, after in itertools.pairwise(codes):
        if before != after and before >= 0 and after >= 0:
            expected[NAMES[before], NAMES[after]] += 1
    table = eb.transitions(annotation)
    assert {(r.behavior, r.next_behavior): r.n_transitions for r in table.itertuples()} == expected
    sums = table.groupby("behavior")["probability"].sum(min_count=1).dropna()
    assert np.allclose(sums, 1)
    assert table["coverage"].iloc[0] == pytest.approx((codes >= 0).mean())


@given(seed=st.integers(0, 2**32 - 1))
def test_single_bouts_sum_to_the_budget(seed):
    annotation = random_annotation(seed)
    bouts, table = eb.bout_table(annotation), eb.budgets(annotation).set_index("behavior")
    for name in NAMES:
        chosen = bouts[bouts["behavior"] == name]
        assert len(chosen) == table.loc[name, "n_bouts"]
        assert chosen["duration_s"].sum() == pytest.approx(table.loc[name, "total_s"])
        assert chosen["inter_bout_s"].median() == pytest.approx(table.loc[name, "inter_bout_s"], nan_ok=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_aggression_of_rats_by_thirds_equals_counts_of_frames(data):
    rats = eb.load_dataset(data / "rats")
    table = eb.budgets(rats, bin="thirds")
    chosen = table[table["behavior"] == "aggression"].set_index(["recording", "bin"])
    assert len(chosen) == 3 * len(rats)
    for recording in rats:
        annotation = recording.annotation()
        frames = annotation.to_frames()[:, annotation.ethogram.code("aggression")]
        edges = np.round(np.linspace(0, len(frames), 4)).astype(int)
        for k in range(3):
            row = chosen.loc[(recording.id, k)]
            assert row["total_s"] == pytest.approx(frames[edges[k] : edges[k + 1]].sum() / annotation.rate)
            assert row["coverage"] == 1


@pytest.mark.slow
def test_budgets_of_seals_exclude_unobserved_time(data):
    seals = eb.load_dataset("bebe/ladds_seals")
    table = eb.budgets(seals, by="individual")
    shares = table.groupby("individual")["share"].sum()
    assert shares.to_dict() == pytest.approx(dict.fromkeys(seals.individuals, 1.0))
    for name, rows in table.groupby("individual"):
        codes = np.concatenate([r.annotation().to_codes() for r in seals if r.individual == name])
        assert rows["coverage"].iloc[0] == pytest.approx((codes >= 0).mean())
        for row in rows.itertuples():
            assert row.share == pytest.approx((codes == seals.ethogram.code(row.behavior)).sum() / (codes >= 0).sum())
