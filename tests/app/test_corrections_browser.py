"""Correcting labels in a real browser, as load_dataset then reads them."""

from __future__ import annotations

import numpy as np

from ethobench import Annotation, Behavior, Ethogram, load_dataset, read_recordings, write_annotation
from tests.app.browsing import RATE, N, begin_correction, behavior_color, go_to, in_browser, keys, lane_colors, saved, settle

pytestmark = in_browser


def test_a_correction_by_keyboard_is_saved_and_survives_a_reload(lab, serve, visit):
    address = serve(lab)
    page = visit(address)
    begin_correction(page, "zoe")
    go_to(page, 100)
    keys(page, "i")
    go_to(page, 129)
    keys(page, "o")
    assert "3 s" in page.text_content("output.chosen")
    keys(page, "1")
    saved(page, 1)
    expected = load_dataset(lab)["m1"].annotation("anna").to_codes()
    expected[100:130] = 0
    assert load_dataset(lab)["m1"].annotation("zoe").to_codes().tolist() == expected.tolist()
    keys(page, "Home", "2")
    go_to(page, 20)
    keys(page, "2")
    saved(page, 2)
    expected[0:20] = 1
    assert load_dataset(lab)["m1"].annotation("zoe").to_codes().tolist() == expected.tolist()
    rest = behavior_color(page, "rest")
    assert lane_colors(page, 3, 115 / N) == rest
    for key, name in (("m", "m2"), ("Shift+M", "m1")):  # there and back, where the correction is still being edited
        keys(page, key)
        page.wait_for_function("(name) => document.querySelector('eb-recordings [aria-current]').textContent.startsWith(name)", arg=name)
    page.wait_for_selector("eb-panel .now button[aria-pressed=true]")
    settle(page)
    page.reload()
    page.wait_for_selector("eb-recordings [aria-current]")
    settle(page)
    assert lane_colors(page, 3, 115 / N) == rest
    assert "zoe" in page.text_content("eb-panel .now")
    assert "corrected" in page.text_content("eb-recordings [aria-current]")
    assert load_dataset(lab)["m1"].annotation("anna").to_codes()[115] == 2


def test_the_overview_follows_a_change_made_close_up(lab, serve, visit):
    page = visit(serve(lab))
    begin_correction(page, "zoe")
    look = "() => document.querySelector('canvas.overview').toDataURL()"
    before = page.evaluate(look)
    keys(page, "+", "+", "+", "i", "Shift+ArrowRight", "Shift+ArrowRight", "o", "2")
    saved(page, 1)
    keys(page, "f")
    settle(page)
    after = page.evaluate(look)
    assert after != before
    keys(page, "Control+z")
    saved(page, 2)
    assert page.evaluate(look) == before


def test_undo_redo_delete_and_mark_as_unobserved(lab, serve, visit):
    page = visit(serve(lab))
    begin_correction(page, "zoe")
    start = load_dataset(lab)["m1"].annotation("zoe")
    go_to(page, 70)
    keys(page, "Enter", "Delete")
    saved(page, 1)
    cleared = load_dataset(lab)["m1"].annotation("zoe")
    assert cleared.to_codes()[45:105].tolist() == [0] * 5 + [3] * 50 + [2] * 5
    keys(page, "Control+z")
    saved(page, 2)
    assert load_dataset(lab)["m1"].annotation("zoe") == start
    keys(page, "Control+Shift+Z")
    saved(page, 3)
    assert load_dataset(lab)["m1"].annotation("zoe") == cleared
    go_to(page, 200)
    keys(page, "[")
    go_to(page, 249)
    keys(page, "]", "u")
    saved(page, 4)
    assert (load_dataset(lab)["m1"].annotation("zoe").to_codes()[200:250] == -1).all()
    page.locator("eb-transport button[title^=Undo]").click()
    saved(page, 5)
    assert load_dataset(lab)["m1"].annotation("zoe") == cleared


def test_a_window_with_an_outdated_state_shows_a_message_and_reloads(lab, serve, visit):
    address = serve(lab)
    page = visit(address)
    begin_correction(page, "zoe")
    other = visit(address)
    other.keyboard.press("e")
    other.locator("dialog button", has_text="zoe").click()
    go_to(page, 70)
    keys(page, "Enter", "Delete")
    saved(page, 1)
    changed = load_dataset(lab)["m1"].annotation("zoe")
    keys(other, "Control+z")
    saved(other, 1)
    assert "changed in the meantime" in other.text_content("body")
    assert load_dataset(lab)["m1"].annotation("zoe") == changed
    keys(other, "Control+z")
    saved(other, 2)
    assert load_dataset(lab)["m1"].annotation("zoe") != changed


def test_a_border_is_moved_with_the_mouse(lab, serve, visit):
    page = visit(serve(lab))
    begin_correction(page, "zoe")
    box = page.locator("canvas.lanes").bounding_box()
    lane = page.evaluate("() => document.querySelector('eb-timeline').lanes[3]")
    y = box["y"] + lane["top"] + lane["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 100 / N - 1, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 120 / N, y, steps=5)
    page.mouse.up()
    saved(page, 1)
    codes = load_dataset(lab)["m1"].annotation("zoe").to_codes()
    border = int(np.flatnonzero(codes[50:150] != 1)[0]) + 50
    assert abs(border - 120) <= 1
    assert codes[border] == 2, "the bout that begins there gave way"
    page.mouse.move(box["x"] + box["width"] * border / N + 1, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 80 / N, y, steps=5)
    page.mouse.up()
    saved(page, 2)
    codes = load_dataset(lab)["m1"].annotation("zoe").to_codes()
    assert codes[50:79].tolist() == [1] * 29
    assert codes[81:150].tolist() == [2] * 69


def test_labels_from_scratch_with_subjects_and_points(tmp_path, serve, visit):
    ethogram = Ethogram([Behavior("bite", point=True, key="b"), Behavior("groom", key="g"), "other"], "other")
    annotation = Annotation.from_bouts([0], [50], ["groom"], ethogram, RATE, N, subject=["ann"], subjects=["ann", "bob"])
    write_annotation(annotation, tmp_path / "m1.csv", "tidy")
    page = visit(serve(tmp_path / "m1.csv"))
    begin_correction(page, "zoe", "nothing (label from scratch)")
    page.select_option("eb-behaviors select >> nth=0", "bob")
    page.select_option("eb-behaviors select >> nth=1", "ann")
    page.locator("canvas.lanes").focus()
    go_to(page, 100)
    keys(page, "g")
    go_to(page, 120)
    keys(page, "g")
    saved(page, 1)
    keys(page, "b")
    saved(page, 2)
    annotation = read_recordings(tmp_path / "corrections" / "m1" / "m1.zoe.csv")[0].annotation("zoe")
    assert annotation.tracks() == [("bite", "bob", "ann"), ("groom", "bob", "ann")]
    assert (annotation.start.tolist(), annotation.stop.tolist()) == ([100, 120], [120, 120])
    assert annotation.observed.of("groom", "bob").start.tolist() == [100]
    assert len(annotation.observed.of("groom", "ann").start) == 0, "nobody watched her"


def test_edits_of_a_copy_keep_its_subject(tmp_path, serve, visit):
    """The animals have names, but the track that is copied names none: neither does what is marked in the copy."""
    page = visit(serve("synthetic/pose"))
    begin_correction(page, "zoe")
    assert page.locator("eb-behaviors select").first.input_value() == ""
    keys(page, "i", "Shift+ArrowRight", "o", "1")
    saved(page, 1)
    annotation = read_recordings(tmp_path / "corrections" / "synthetic_pose" / "animal01.zoe.csv")[0].annotation("zoe")
    assert (annotation.subject == -1).all()
    assert (annotation.to_codes()[:31] == 0).all()
