"""The gallery of clusters in a real browser: examples move, and clusters are named, merged and dropped."""

from __future__ import annotations

import json

import pytest

from ethobench import load_dataset, write_recordings
from ethobench.datasets.synthetic import make_dataset
from tests.app.browsing import in_browser, keys, settle

pytestmark = in_browser


@pytest.fixture
def page(tmp_path, serve, visit):
    data = make_dataset("pose", individuals=2, seconds=30, folds=2)
    for recording in data:
        write_recordings([recording], tmp_path / "poses" / f"{recording.id}.csv", "deeplabcut")
    page = visit(serve(tmp_path / "poses", rate=data.recordings[0].rate), reduced_motion="reduce")  # moving pictures take time
    page.wait_for_selector("dialog input.name")
    page.keyboard.type("other")
    keys(page, "Control+Enter")
    page.wait_for_selector("dialog input[name=annotator]")
    page.keyboard.type("zoe")
    keys(page, "Enter")
    page.wait_for_selector("dialog", state="detached")
    settle(page)
    return page


def open_gallery(page, n):
    page.get_by_text("Clusters…").click()
    page.wait_for_selector(".clusters fieldset")
    if page.get_by_label("Number of clusters").input_value() != str(n):
        page.get_by_label("Number of clusters").fill(str(n))
        page.get_by_label("Number of clusters").press("Tab")
        page.wait_for_function("(n) => document.querySelectorAll('.clusters fieldset').length === n", arg=n)
    settle(page)


def test_clusters_are_named_merged_and_dropped(page, tmp_path):
    open_gallery(page, 4)
    page.wait_for_function("() => [...document.querySelectorAll('.example img')].every((i) => i.classList.contains('loaded'))")
    pictures = page.evaluate("() => [...document.querySelectorAll('.example img')].map((i) => [i.className, i.naturalWidth])")
    assert pictures
    assert all(name == "strip loaded" and width > 500 for name, width in pictures)
    page.get_by_label("Drop cluster 4").click()
    assert page.locator(".clusters fieldset").count() == 3
    for number, name in ((1, "毛づくろい"), (2, "chase"), (3, " 毛づくろい ")):
        page.get_by_label(f"Name of cluster {number}").fill(name)
    page.locator(".example").first.click()  # look at one; what was typed is kept
    page.wait_for_selector("dialog", state="detached")
    looped = "async () => (await import(document.querySelector('script[type=module]').src.replace('main', 'state'))).state.loop"
    page.wait_for_function(looped)
    keys(page, "Escape", "Space")  # no loop, and no playback to the end, which `settle` would wait for
    open_gallery(page, 4)
    assert page.locator(".clusters fieldset").count() == 3
    page.select_option("dialog select[name=as]", "labels")
    page.get_by_text("Save names").click()
    page.wait_for_selector("dialog", state="detached")
    page.wait_for_function("() => document.querySelector('#message').textContent.includes('were labeled')")
    (folder,) = (tmp_path / "corrections").iterdir()
    origins = [json.loads(line) for line in (folder / "origins.jsonl").read_text(encoding="utf-8").splitlines()]
    origins = [row for row in origins if "behavior" in row]
    assert {row["behavior"] for row in origins} == {"毛づくろい", "chase"}
    assert {row["origin"] for row in origins} == {"cluster"}
    labels = [recording.annotation("zoe") for recording in load_dataset(folder)]
    names = {behavior for annotation in labels for behavior, _, _ in annotation.tracks()}
    assert names == {"毛づくろい", "chase"}
    settle(page)


def test_a_name_is_needed_and_an_example_can_be_restored(page):
    open_gallery(page, 3)
    page.get_by_text("Save names").click()
    assert "at least one" in page.text_content(".dialog-error")
    page.get_by_label("Drop cluster 1").click()
    page.get_by_text("show 1 dropped").click()
    assert page.locator(".clusters fieldset").count() == 3
    begin = page.get_by_label("Name of cluster 1")
    begin.fill("chase")
    page.get_by_text("Save names").click()
    page.wait_for_selector("dialog", state="detached")
    page.wait_for_function("() => document.querySelector('#message').textContent.includes('suggestions')")
    settle(page)
    keys(page, "q")
    page.wait_for_selector(".review:not([hidden]) strong")
    assert "chase" in page.text_content(".review")
