"""The report of a comparison of groups."""

from __future__ import annotations

import pytest

import ethobench as eb
from ethobench.reports import render_report, summarize_comparison


@pytest.fixture(scope="module")
def recordings():
    data = eb.load_dataset("synthetic/tag", individuals=6, seconds=60)
    return [r.copy(metadata={"treatment": ("saline", "drug")[k % 2]}) for k, r in enumerate(data)]


def test_the_page_has_budgets_differences_and_methods(recordings):
    result = eb.compare_groups(recordings, "treatment")
    report = summarize_comparison(result, recordings)
    page = render_report(report)
    assert "saline and drug compared" in page
    assert "unit of analysis" in page
    assert "Holm 1979" in page
    budgets = next(figure for figure in report["groups"][0]["figures"] if figure["id"] == "budgets")
    means = {(row[0], row[1], row[2]): row[3] for row in budgets["rows"]}
    for row in result["rows"]:
        if row["measure"] == "share":
            assert means["share of observed time", row["behavior"], "drug"] == pytest.approx(row["groups"]["drug"]["mean"], rel=1e-5)
    assert page.count('class="svg"') == 2


def test_behavior_by_zone_is_shown_where_there_are_zones():
    pytest.importorskip("shapely", reason="shapely is not installed")
    data = eb.load_dataset("synthetic/pose", individuals=4, seconds=20)
    zone = eb.Zone("left", "rectangle", ((0, 0), (300, 400))).to_dict()
    recordings = [r.copy(metadata={"treatment": ("saline", "drug")[k % 2], "zones": [zone]}) for k, r in enumerate(data)]
    report = summarize_comparison(
        eb.compare_groups(recordings, "treatment", measures="share"), recordings, zone_options=eb.ZoneOptions(animal="resident")
    )
    ids = [figure["id"] for figure in report["groups"][0]["figures"]]
    assert ids[-1] == "zones"
    unclear = summarize_comparison(eb.compare_groups(recordings, "treatment", measures="share"), recordings)
    assert any("behavior by zone is not shown" in note for note in unclear["notes"])


def test_differences_by_labels_are_shown_if_there_are_model_labels(recordings):
    several = []
    for k, recording in enumerate(recordings):
        labels = {"model": recording.annotation().shift(3)} | ({"anna": recording.annotation()} if k < 4 else {})
        several.append(recording.copy(annotations=labels))
    result = eb.compare_groups(several, "treatment", measures="share", labels="anna", model_labels="model")
    report = summarize_comparison(result, several)
    assert "saline 3 (2 labeled)" in report["lead"]
    (sources,) = [figure for figure in report["groups"][0]["figures"] if figure["id"] == "sources"]
    assert {row[2] for row in sources["rows"]} == {"both", "human labels alone", "model labels alone"}
    (differences,) = [figure for figure in report["groups"][0]["figures"] if figure["id"] == "differences"]
    assert differences["rows"][0][0] == "share of observed time (%)"
    assert float(differences["rows"][0][3].split()[0]) == pytest.approx(100 * result["rows"][0]["pairs"][0]["difference"], rel=0.01)
