"""Behaviors that never occur in the viewer: one line in the legend, still there to label with, and colors as in the report."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, load_dataset, score, write_annotation
from ethobench.app.opening import open_project
from ethobench.app.payloads import project_payload
from ethobench.reports import summarize_scores
from tests.app.browsing import begin_correction, behavior_color, in_browser, keys, saved

ETHOGRAM = Ethogram(["other", "chase", "bite", "rest", "clinch", "run"], "other")


@pytest.fixture
def study(tmp_path):
    """Two people scored two recordings; run takes the most time, only ben saw a bite, nobody a chase or a clinch."""
    root = tmp_path / "study"
    root.mkdir()
    rows = ["recording,individual,rate,annotations,annotator"]
    for index, name in enumerate(("m1", "m2")):
        anna = np.roll(np.repeat([3, 5, 0, 5], 50), 10 * index)
        for who, codes in (("anna", anna), ("ben", np.where(np.arange(200) < 10, 2, anna))):
            write_annotation(Annotation.from_frames(codes, ETHOGRAM, 10), root / f"{name}_{who}.csv", "tidy")
            rows.append(f"{name},{name},10,{name}_{who}.csv,{who}")
    (root / "ethogram.csv").write_text(
        "behavior,background\n" + "".join(f"{n},{'yes' if n == 'other' else 'no'}\n" for n in ETHOGRAM.names)
    )
    (root / "recordings.csv").write_text("\n".join(rows) + "\n")
    return root


def colors_of(behaviors) -> dict[str, int | None]:
    return {behavior["name"]: behavior["color"] for behavior in behaviors}


def test_report_and_viewer_give_a_behavior_the_same_color(study):
    data = load_dataset(study)
    scores = score({r.id: r.annotations["ben"] for r in data}, data, annotator="anna", resamples=0)
    (group,) = summarize_scores({"ben": scores}, truth="anna", annotations=data)["groups"]
    (shown,) = project_payload(open_project([str(study)]))["ethograms"]
    assert colors_of(shown) == colors_of(group["behaviors"])
    assert colors_of(shown) == {"other": None, "run": 0, "rest": 1, "bite": 2, "chase": 3, "clinch": 4}
    assert (
        [b["name"] for b in shown if not b["occurs"]] == [b["name"] for b in group["behaviors"] if not b["occurs"]] == ["chase", "clinch"]
    )


def test_colors_are_the_same_in_all_recordings_though_their_ethograms_differ(study, tmp_path):
    other = Ethogram(["run", "dig"])
    write_annotation(Annotation.from_frames(np.repeat([0, 1], 100), other, 10), study / "m3.csv", "tidy")
    files = [str(study / name) for name in ("m1_anna.csv", "m3.csv")]
    facts = project_payload(open_project(files))
    run = {colors_of(behaviors)["run"] for behaviors in facts["ethograms"]}
    assert len(run) == 1


def test_colors_stay_while_labeling(study):
    project = open_project([str(study)])
    before = project_payload(project)["ethograms"]
    project.start(0, "zoe")
    edit = {"kind": "mark", "start": 0, "stop": 200, "behavior": "chase", "subject": None, "target": None, "exclusive": True}
    track = project.edit(0, "zoe", 0, [edit])
    assert track.annotation.ethogram[int(track.annotation.behavior[0])].name == "chase"
    assert project_payload(project)["ethograms"] == before


class TestBrowser:
    pytestmark = in_browser

    def test_never_annotated_behaviors_share_a_line_and_can_still_be_labeled(self, study, serve, visit):
        page = visit(serve(study))
        assert page.locator(".chip").all_text_contents() == ["other1", "bite3", "rest4", "run6"]
        assert page.text_content(".never") == "never annotated: chase, clinch"
        run = behavior_color(page, "run")
        begin_correction(page, "zoe")
        assert page.locator(".never .chip").all_text_contents() == ["chase2", "clinch5"]
        keys(page, "Home", "i", "Shift+ArrowRight", "o")
        page.locator(".chip", has_text="clinch").click()
        saved(page, 1)
        assert page.locator(".never .chip").all_text_contents() == ["chase2"]
        assert behavior_color(page, "run") == run
        assert "clinch" in {b.name for b in load_dataset(study).ethogram}
        assert ETHOGRAM.names[load_dataset(study)["m1"].annotation("zoe").to_codes()[0]] == "clinch"

    def test_labeling_from_scratch_offers_all_behaviors(self, study, serve, visit, tmp_path):
        for path in study.glob("m*.csv"):
            path.unlink()
        (study / "tag.csv").write_text("time,AccX\n" + "\n".join(f"{i / 10},{i % 7}" for i in range(100)))
        (study / "recordings.csv").write_text("recording,individual,rate,signals\nm1,m1,10,tag.csv\n")
        page = visit(serve(study))
        assert page.locator(".chip").count() == len(ETHOGRAM)
        assert page.locator(".never").count() == 0
