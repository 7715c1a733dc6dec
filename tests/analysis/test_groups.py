"""Comparison of groups of individuals."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import ethobench as eb
from ethobench.analysis.group_values import MEASURES
from ethobench.core import intervals as iv

RATE = 10.0
N_FRAMES = 1000


def annotation(share: float, *, n_bouts: int = 4, behaviors=("groom", "rear"), n_frames: int = N_FRAMES) -> eb.Annotation:
    """Bouts of the first behavior that take a share of the time, at equal distances."""
    length = int(share * n_frames / n_bouts)
    start = [k * n_frames // n_bouts for k in range(n_bouts)] if length else []
    return eb.Annotation.from_bouts(
        start, [s + length for s in start], [behaviors[0]] * len(start), list(behaviors), rate=RATE, n_frames=n_frames
    )


def recording(name, individual, share, annotator="anna", **metadata) -> eb.Recording:
    return eb.Recording(name, individual, annotations={} if share is None else {annotator: annotation(share)}, metadata=metadata)


def study(shares: dict[str, list[float]], **metadata) -> list[eb.Recording]:
    """One recording of each individual of each group."""
    return [
        recording(f"{group}{k}", f"{group}{k}", share, treatment=group, **{name: values[k] for name, values in metadata.items()})
        for group, several in shares.items()
        for k, share in enumerate(several)
    ]


CONTROL, DRUG = [0.2, 0.24, 0.32, 0.28, 0.36], [0.4, 0.52, 0.36, 0.6, 0.48]


def only_pair(result, measure="share", behavior="groom"):
    (row,) = [row for row in result["rows"] if row["measure"] == measure and row["behavior"] == behavior]
    (pair,) = row["pairs"]
    return pair


def test_two_groups_agree_with_welch_and_all_permutations():
    result = eb.compare_groups(study({"control": CONTROL, "drug": DRUG}), "treatment", measures="share")
    pair = only_pair(result)
    reference = stats.ttest_ind(DRUG, CONTROL, equal_var=False)
    interval = reference.confidence_interval()
    assert pair["difference"] == pytest.approx(np.mean(DRUG) - np.mean(CONTROL))
    assert (pair["low"], pair["high"]) == pytest.approx((interval.low, interval.high))
    assert pair["df"] == pytest.approx(reference.df)
    values = np.array(CONTROL + DRUG)

    def statistic(chosen):
        others = [k for k in range(10) if k not in chosen]
        return abs(stats.ttest_ind(values[list(chosen)], values[others], equal_var=False).statistic)

    every = [statistic(chosen) for chosen in combinations(range(10), 5)]
    observed = statistic(tuple(range(5)))
    assert pair["p"] == pytest.approx(np.mean([value >= observed - 1e-9 for value in every]))
    assert pair["test"]["exact"]
    assert pair["test"]["n_permutations"] == 252
    assert pair["ratio_low"] < pair["ratio"] == pytest.approx(np.mean(DRUG) / np.mean(CONTROL))
    assert pair["effect_low"] < pair["effect_size"] < pair["effect_high"]
    assert result["design"] == "independent"
    assert result["unit"] == "individual"
    assert result["never_annotated"] == ["rear"]
    assert json.loads(json.dumps(result)) == result


def test_effect_size_is_hedges_g():
    pair = only_pair(eb.compare_groups(study({"control": CONTROL, "drug": DRUG}), "treatment", measures="share"))
    pooled = np.sqrt((np.var(CONTROL, ddof=1) + np.var(DRUG, ddof=1)) / 2)
    assert pair["effect_size"] == pytest.approx((np.mean(DRUG) - np.mean(CONTROL)) / pooled * (1 - 3 / (4 * 8 - 1)))


def test_recordings_of_an_individual_are_pooled_by_observed_time():
    recordings = study({"control": CONTROL, "drug": DRUG})
    longer = recording("control0b", "control0", None, treatment="control").copy(annotations={"anna": annotation(0.4, n_frames=3000)})
    result = eb.compare_groups([*recordings, longer], "treatment", measures=("share", "n_bouts"))
    values = result["rows"][0]["groups"]["control"]
    assert values["n"] == 5
    assert values["values"]["control0"] == pytest.approx((0.2 * 1000 + 0.4 * 3000) / 4000)
    counts = next(row for row in result["rows"] if row["measure"] == "n_bouts")["groups"]["control"]["values"]
    assert counts["control0"] == 4
    assert any("depend on their lengths" in note for note in result["notes"])


def test_one_animal_per_group_is_refused():
    recordings = [recording(f"{group}{k}", group, 0.2 + 0.04 * k, treatment=group) for group in ("control", "drug") for k in range(6)]
    with pytest.raises(eb.EthobenchError, match=r"'control' has one individual, 'control' \(6 recordings\).*not independent"):
        eb.compare_groups(recordings, "treatment")


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        ("dose", {}, "no column 'dose'"),
        ("treatment", {"measures": "sharing"}, "no measure 'sharing'"),
        ("treatment", {"behaviors": "dig"}, "no behavior 'dig'"),
        ("treatment", {"reference": "placebo"}, "no group 'placebo'"),
        ("treatment", {"correct": "bonferroni"}, "`correct` must be one of holm, fdr, none"),
        ("treatment", {"bin": "thirds"}, "within each time bin"),
        ("bin", {}, "need bin="),
        ("sex", {}, "one group only"),
        ("treatment", {"covariates": "age"}, "no column 'age'"),
    ],
)
def test_wrong_input_is_refused(groups, options, message):
    with pytest.raises(eb.EthobenchError, match=message):
        eb.compare_groups(study({"control": CONTROL, "drug": DRUG}, sex="fffff"), groups, **options)


def test_recordings_without_group_are_refused():
    recordings = [*study({"control": CONTROL, "drug": DRUG}), recording("x", "x", 0.2, treatment="")]
    with pytest.raises(eb.EthobenchError, match="1 of 11 recordings have no 'treatment', such as 'x'"):
        eb.compare_groups(recordings, "treatment")


def test_a_behavior_that_one_group_never_shows():
    result = eb.compare_groups(study({"control": [0.0] * 5, "drug": DRUG}), "treatment", measures=("share", "mean_duration_s"))
    share, duration = only_pair(result), only_pair(result, "mean_duration_s")
    assert share["difference"] == pytest.approx(np.mean(DRUG))
    assert share["low"] < share["difference"] < share["high"]
    assert share["ratio"] is None
    assert duration["difference"] is None
    assert "control" in duration["note"]


def test_equal_values_have_no_interval_and_no_effect():
    pair = only_pair(eb.compare_groups(study({"control": [0.2] * 4, "drug": [0.2] * 4}), "treatment", measures="share"))
    assert (pair["difference"], pair["low"], pair["p"]) == (0.0, None, 1.0)


def test_individuals_in_both_groups_are_compared_within_themselves():
    before, after = [0.2, 0.28, 0.36, 0.4, 0.48, 0.24], [0.24, 0.36, 0.4, 0.52, 0.48, 0.36]
    recordings = [
        recording(f"{k}{when}", f"m{k}", s, when=when) for when, many in (("a", before), ("b", after)) for k, s in enumerate(many)
    ]
    recordings.append(recording("extra", "m9", 0.2, when="a"))
    result = eb.compare_groups(recordings, "when", measures="share")
    pair = only_pair(result)
    reference = stats.ttest_rel(after, before)
    assert result["design"] == "repeated measures"
    assert (pair["low"], pair["high"]) == pytest.approx(tuple(reference.confidence_interval()))
    differences = np.array(after) - before
    flips = [abs(np.mean(differences * (1 - 2 * ((k >> np.arange(6)) & 1)))) for k in range(64)]
    assert pair["p"] == pytest.approx(np.mean(np.array(flips) >= abs(differences.mean()) - 1e-12))
    assert "not used, because not in all groups: 1 individual" in result["notes"]


@pytest.mark.parametrize("n_complete", [0, 1, 3])
def test_durations_are_compared_in_individuals_with_bouts_in_both_conditions(n_complete):
    lengths = [(10, 0), (20, 0), (0, 30), (0, 40), *[(30, 20), (30, 45), (25, 45)][:n_complete]]
    recordings = []
    for k, pair in enumerate(lengths):
        bouts = [(start, start + length) for start, length in zip((100, 600), pair, strict=True) if length]
        start, stop = zip(*bouts, strict=True)
        a = eb.Annotation.from_bouts(start, stop, ["groom"] * len(bouts), ["groom"], rate=RATE, n_frames=N_FRAMES)
        recordings.append(eb.Recording(f"r{k}", f"m{k}", annotations={"anna": a}))
    pair = only_pair(eb.compare_groups(recordings, "bin", bin="halves", measures="mean_duration_s"), "mean_duration_s")
    assert pair["n"] == [n_complete, n_complete]
    if n_complete < 2:
        assert pair["difference"] is pair["p"] is None
        assert pair["note"] == "fewer than two individuals with a value in bin 1 and bin 2"
        return
    first, second = np.array(lengths[4:]).T / RATE
    assert pair["difference"] == pytest.approx(second.mean() - first.mean())
    assert pair["ratio"] == pytest.approx(second.mean() / first.mean())
    interval = stats.ttest_rel(second, first).confidence_interval()
    assert (pair["low"], pair["high"]) == pytest.approx((interval.low, interval.high))


def test_time_bins_are_repeated_measures():
    result = eb.compare_groups(study({"control": CONTROL, "drug": DRUG}), "bin", bin="halves", measures="share")
    assert (result["groups"], result["design"]) == (["bin 1", "bin 2"], "repeated measures")
    assert any("each recording counts as another individual" in note for note in result["notes"])
    within = eb.compare_groups(study({"control": CONTROL, "drug": DRUG}), "treatment", by="bin", bin="halves", measures="share")
    assert [row["by"] for row in within["rows"]] == [{"bin": "bin 1"}, {"bin": "bin 2"}]


def test_matched_individuals():
    recordings = study({"control": CONTROL, "drug": DRUG}, litter="ABCDE")
    result = eb.compare_groups(recordings, "treatment", pair="litter", measures="share")
    assert (result["design"], result["unit"]) == ("paired by litter", "litter")
    interval = stats.ttest_rel(DRUG, CONTROL).confidence_interval()
    pair = only_pair(result)
    assert (pair["low"], pair["high"]) == pytest.approx((interval.low, interval.high))
    assert any("no permutation test can give p below 0.0625" in note for note in result["notes"])


def test_individuals_in_some_groups_only_are_refused():
    recordings = [*study({"control": CONTROL, "drug": DRUG}), recording("both", "control0", 0.3, treatment="drug")]
    with pytest.raises(eb.EthobenchError, match="1 individuals are in several groups, but 1 in all of them"):
        eb.compare_groups(recordings, "treatment")


def test_pairs_of_animals_that_share_an_animal_are_one_unit():
    recordings = study({"control": CONTROL, "drug": DRUG})
    recordings[0] = recordings[0].copy(individual="a;b")
    recordings[1] = recordings[1].copy(individual="b;c")
    result = eb.compare_groups(recordings, "treatment", measures="share")
    assert result["n"]["control"]["individuals"] == 4
    assert any("share animals" in note for note in result["notes"])


def test_several_groups_have_a_test_of_all_and_of_pairs():
    shares = {"a": [0.2, 0.24, 0.28, 0.32], "b": [0.24, 0.28, 0.32, 0.36], "c": [0.6, 0.64, 0.72, 0.68]}
    result = eb.compare_groups(study(shares), "treatment", measures="share", reference="b")
    (row,) = result["rows"]
    assert result["groups"] == ["b", "a", "c"]
    assert row["test"]["exact"]
    assert row["test"]["n_permutations"] == 34650
    assert row["p"] < 0.01
    assert [pair["groups"] for pair in row["pairs"]] == [["b", "a"], ["b", "c"], ["a", "c"]]
    assert [pair["p_corrected"] for pair in row["pairs"]] == pytest.approx(
        [min(1, p) for p in np.maximum.accumulate(np.sort([q["p"] for q in row["pairs"]]) * [3, 2, 1])[[2, 0, 1]]]
    )


def test_covariates_explain_a_difference_of_groups():
    age = [1.0, 2.0, 3.0, 4.0, 5.0]
    shares = {"control": [0.04 * a + 0.04 for a in age], "drug": [0.04 * (a + 3) + 0.04 for a in age]}
    shares["drug"][0] += 0.008
    recordings = [r.copy(metadata={**r.metadata, "age": a}) for r, a in zip(study(shares), [*age, *(a + 3 for a in age)], strict=True)]
    plain = only_pair(eb.compare_groups(recordings, "treatment", measures="share"))
    adjusted = only_pair(eb.compare_groups(recordings, "treatment", measures="share", covariates="age"))
    assert plain["difference"] == pytest.approx(0.12, abs=0.002)
    assert abs(adjusted["difference"]) < 0.01
    assert adjusted["p"] > plain["p"]


def test_every_measure_has_rows():
    measures = [name for name in MEASURES if name not in ("distance", "mean_speed", "immobile_share", "nearest_animal")]
    result = eb.compare_groups(study({"control": CONTROL, "drug": DRUG}), "treatment", measures=measures)
    assert [row["measure"] for row in result["rows"]] == measures
    per_minute, per_hour = (next(r for r in result["rows"] if r["measure"] == m) for m in ("rate_per_min", "rate_per_hour"))
    assert per_hour["groups"]["drug"]["mean"] == pytest.approx(60 * per_minute["groups"]["drug"]["mean"])


def test_mixed_models_of_several_recordings():
    pytest.importorskip("statsmodels", reason="statsmodels is not installed")
    recordings = [
        r.copy(id=f"{r.id}_{day}", annotations={"anna": annotation(s + 0.04 * day)})
        for day in range(3)
        for r, s in zip(study({"control": CONTROL, "drug": DRUG}), CONTROL + DRUG, strict=True)
    ]
    pair = only_pair(eb.compare_groups(recordings, "treatment", measures="share", mixed=True))
    assert pair["mixed_model"]["difference"] == pytest.approx(pair["difference"], abs=1e-6)
    assert pair["mixed_model"]["n_recordings"] == 30
    assert pair["mixed_model"]["low"] == pytest.approx(pair["low"], abs=0.01)


def powered_study(n_labeled=5, n=15, bias=0.1, seed=0):
    random = np.random.default_rng(seed)
    recordings = []
    for group, mean in (("control", 0.24), ("drug", 0.4)):
        for k in range(n):
            share = float(np.clip(random.normal(mean, 0.08), 0.04, 0.7))
            model = share + bias + (0.1 if group == "drug" else 0) + float(random.normal(0, 0.01))
            annotations = {"model": annotation(model)} | ({"anna": annotation(share)} if k < n_labeled else {})
            recordings.append(eb.Recording(f"{group}{k}", f"{group}{k}", annotations=annotations, metadata={"treatment": group}))
    return recordings


def test_human_labels_correct_model_labels():
    recordings = powered_study()
    pair = only_pair(eb.compare_groups(recordings, "treatment", measures="share", labels="anna", model_labels="model"))
    assert abs(pair["difference"] - 0.16) < abs(pair["model_labels_alone"]["difference"] - 0.16)
    assert pair["relative_width"] < 0.75
    assert 0.5 < pair["weight_of_model"] < 1.5
    assert pair["labels_to_halve"]["width_if_all_labeled"] is not None
    human = only_pair(
        eb.compare_groups([r for r in recordings if "anna" in r.annotations], "treatment", measures="share", annotator="anna")
    )
    assert pair["human_labels_alone"]["difference"] == pytest.approx(human["difference"])


def test_labels_may_be_mappings():
    recordings = powered_study()
    human = {r.id: r.annotations["anna"] for r in recordings if "anna" in r.annotations}
    model = {r.id: r.annotations["model"] for r in recordings}
    bare = [r.copy(annotations={}) for r in recordings]
    by_mapping = eb.compare_groups(bare, "treatment", labels=human, model_labels=model)
    assert by_mapping["rows"] == eb.compare_groups(recordings, "treatment", labels="anna", model_labels="model")["rows"]


def test_labels_of_one_group_only_are_refused():
    recordings = [
        r if r.metadata["treatment"] == "drug" else r.copy(annotations={"model": r.annotations["model"]}) for r in powered_study()
    ]
    with pytest.raises(eb.EthobenchError, match="no individual of group 'control' has human labels"):
        eb.compare_groups(recordings, "treatment", labels="anna", model_labels="model")


def test_a_model_that_predicts_nothing_changes_nothing():
    recordings = [r.copy(annotations={**r.annotations, "model": annotation(0.0)}) for r in powered_study()]
    pair = only_pair(eb.compare_groups(recordings, "treatment", measures="share", labels="anna", model_labels="model"))
    assert pair["weight_of_model"] == 0
    assert pair["relative_width"] == 1
    assert pair["difference"] == pytest.approx(pair["human_labels_alone"]["difference"])


def without_bouts(recordings, annotator, groups) -> list[eb.Recording]:
    """Remove the bouts of an annotator in some groups."""
    empty = annotation(0.0)
    return [
        r.copy(annotations={**r.annotations, annotator: empty}) if r.metadata["treatment"] in groups and annotator in r.annotations else r
        for r in recordings
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("groups", [("drug",), ("control", "drug")])
def test_durations_of_bouts_that_the_model_never_predicts_are_those_of_human_labels(groups):
    recordings = powered_study()
    labeled = [r for r in recordings if "anna" in r.annotations]
    human = only_pair(eb.compare_groups(labeled, "treatment", measures="mean_duration_s", annotator="anna"), "mean_duration_s")
    result = eb.compare_groups(
        without_bouts(recordings, "model", groups), "treatment", measures="mean_duration_s", labels="anna", model_labels="model"
    )
    pair = only_pair(result, "mean_duration_s")
    assert (pair["difference"], pair["low"], pair["high"]) == pytest.approx((human["difference"], human["low"], human["high"]))
    assert pair["weight_of_model"] == 0
    assert pair["model_labels_alone"] == {"difference": None, "low": None, "high": None}
    assert any("never predicts" in note for note in result["notes"]) == (len(groups) == 2)


@pytest.mark.filterwarnings("error")
def test_labels_without_a_behavior_are_labels():
    recordings = without_bouts(powered_study(), "anna", ["drug"])
    result = eb.compare_groups(recordings, "treatment", measures="latency_s", labels="anna", model_labels="model")
    assert {name: count["labeled"] for name, count in result["n"].items()} == {"control": 5, "drug": 5}
    assert only_pair(result, "latency_s")["note"] == "fewer than two individuals with a value in drug"
    assert not result["warnings"]


def test_latencies_after_unobserved_time_are_noted():
    late = annotation(0.4).with_observed(eb.core.Observed(iv.intervals([200], [1000])))
    recordings = study({"control": CONTROL, "drug": DRUG})
    recordings[0] = recordings[0].copy(annotations={"anna": late})
    notes = eb.compare_groups(recordings, "treatment", measures="latency_s")["notes"]
    assert any("1 recordings have unobserved time before the first bout" in note for note in notes)
    assert not any("unobserved" in note for note in eb.compare_groups(recordings, "treatment", measures="share")["notes"])


def test_frames_without_human_labels_are_left_out_of_the_correction():
    """A person labeled the first half only and agrees with the model there, so that there is nothing to correct."""
    recordings = []
    for r in powered_study(bias=0.0):
        model = r.annotations["model"]
        annotations = {"model": model}
        if "anna" in r.annotations:
            annotations["anna"] = model.mark_unobserved(np.arange(N_FRAMES) >= 500)
        recordings.append(r.copy(annotations=annotations))
    result = eb.compare_groups(recordings, "treatment", measures="share", labels="anna", model_labels="model")
    pair = only_pair(result)
    assert pair["weight_of_model"] == pytest.approx(1.0)
    assert pair["difference"] == pytest.approx(pair["model_labels_alone"]["difference"])


def test_warnings_about_assumptions():
    recordings = powered_study(n=15)
    active = sorted(recordings, key=lambda r: -r.annotations["model"].to_frames()[:, 0].mean())[:12]
    chosen = {r.id for r in active}
    biased = [
        r.copy(annotations={"model": r.annotations["model"]} | ({"anna": r.annotations["model"]} if r.id in chosen or k % 15 < 2 else {}))
        for k, r in enumerate(recordings)
    ]
    result = eb.compare_groups(biased, "treatment", labels="anna", model_labels="model", trained_on={recordings[0].id})
    assert any("not a random sample" in line and "groom" in line for line in result["warnings"])
    assert any("trained on 1 of the" in line for line in result["warnings"])
    assert eb.compare_groups(recordings, "treatment", labels="anna", model_labels="model")["warnings"] == []


def test_different_sex_of_labeled_individuals_is_a_warning():
    recordings = [r.copy(metadata={**r.metadata, "sex": "f" if k % 15 < 5 else "m"}) for k, r in enumerate(powered_study())]
    result = eb.compare_groups(recordings, "treatment", labels="anna", model_labels="model")
    assert any("'sex' differs" in line for line in result["warnings"])


def test_the_table_and_the_view_have_a_row_for_each_pair():
    result = eb.compare_groups(powered_study(), "treatment", labels="anna", model_labels="model")
    table = result.table()
    assert len(table) == len(result["rows"])
    assert {"labels_to_halve_individuals", "human_labels_alone_low", "relative_width"} <= {*table.columns}
    view, pair = result._repr_html_(), result["rows"][0]["pairs"][0]
    assert "unit of analysis" in view
    assert f"<td>{pair['difference']:.3g} ({pair['low']:.3g} to {pair['high']:.3g})</td>" in view
    assert "prediction-powered" in eb.methods_text(comparison=result)


def moving_study(scales: list[float | None]) -> list[eb.Recording]:
    """One recording of each of eight animals in two groups, each with its own speed."""
    recordings = []
    for k, scale in enumerate(scales):
        x = np.arange(100) * (1.0 + 0.1 * k)
        poses = eb.Poses(np.stack([x, x], axis=1)[:, None, None], np.ones((100, 1, 1)), ("mouse",), ("body",), rate=RATE)
        metadata = {"treatment": ("control", "drug")[k % 2]} | ({} if scale is None else {"pixels_per_cm": scale})
        recordings.append(eb.Recording(f"r{k}", f"m{k}", signals=poses, metadata=metadata))
    return recordings


def test_distances_are_compared_in_one_unit():
    in_cm = eb.compare_groups(moving_study([10.0] * 8), "treatment", measures="distance")["rows"][0]["groups"]["control"]
    in_px = eb.compare_groups(moving_study([None] * 8), "treatment", measures="distance")["rows"][0]["groups"]["control"]
    assert in_px["mean"] == pytest.approx(10 * in_cm["mean"])
    with pytest.raises(eb.EthobenchError, match=r"4 of 8 recordings have no scale \(pixels_per_cm\), such as 'r1'"):
        eb.compare_groups(moving_study([10.0, None] * 4), "treatment", measures="distance")


def test_undefined_measures_are_named():
    notes = eb.compare_groups(moving_study([None] * 8), "treatment", measures="distance,immobile_share,nearest_animal")["notes"]
    assert "no individual has a value of immobile_share, which needs a scale (pixels_per_cm)" in notes
    assert "no individual has a value of nearest_animal, which needs several animals in a recording" in notes
    with pytest.raises(eb.EthobenchError, match="nothing to compare: no individual has a value of immobile_share"):
        eb.compare_groups(moving_study([None] * 8), "treatment", measures="immobile_share")
