"""Zones are drawn, reshaped, named and deleted in a real browser, and saved at once."""

from __future__ import annotations

import pytest

import ethobench as eb
from ethobench.datasets.zones import ZONES, read_zones, zones_of
from tests.app.browsing import at_frame, in_browser, keys, settle
from tests.app.test_zones_api import OWN, arena  # noqa: F401 - a fixture

pytest.importorskip("shapely", reason="zones need shapely: pip install ethobench[stats]")
pytestmark = in_browser


class Picture:
    """The picture of the page, in coordinates of the image."""

    def __init__(self, page) -> None:
        self.page = page

    def screen(self, x, y):
        convert = """([x, y]) => {
            const point = new DOMPoint(x, y).matrixTransform(document.querySelector("svg.zones").getScreenCTM());
            return [point.x, point.y];
        }"""
        return self.page.evaluate(convert, [x, y])

    def drag(self, *points):
        first, *others = (self.screen(*point) for point in points)
        self.page.mouse.move(*first)
        self.page.mouse.down()
        for point in others:
            self.page.mouse.move(*point, steps=3)
        self.page.mouse.up()
        settle(self.page)

    def click(self, *points):
        for point in points:
            self.page.mouse.click(*self.screen(*point))
        settle(self.page)


def open_tools(page):
    """Close the question for behaviors, and show the tools to draw zones."""
    page.wait_for_selector("dialog")
    keys(page, "Escape")
    page.wait_for_selector("dialog", state="detached")
    page.wait_for_selector("#zones:enabled")
    keys(page, "z")
    page.wait_for_selector(".zone-tools")


def near(zone, *expected):
    values = [value for point in zone.coordinates for value in point]
    return values == pytest.approx([value for point in expected for value in point], abs=1.0)


def test_zones_are_drawn_named_moved_and_deleted(arena, serve, visit):  # noqa: F811
    file = arena / "corrections" / ZONES
    page = visit(serve(arena))
    picture = Picture(page)
    open_tools(page)
    assert "your zones.csv" in page.text_content(".zone-tools")
    page.click(".zone-tools button:text-is('rectangle')")
    picture.drag((20, 20), (50, 40))
    page.keyboard.type("center")
    keys(page, "Enter")
    settle(page)
    page.click(".zone-tools button:text-is('circle')")
    picture.drag((70, 30), (82, 30))
    page.click(".zone-tools button:text-is('polygon')")
    picture.click((20, 60), (60, 60), (60, 85), (20, 85), (20, 60))
    page.select_option("select[aria-label='Recordings of zone 2']", label="this recording")
    settle(page)
    center, circle, polygon = read_zones(file)
    assert (center.name, circle.name, polygon.name) == ("center", "zone 1", "zone 2")
    assert near(center, (20, 20), (50, 40))
    assert near(circle, (70, 30), (12,))
    assert near(polygon, (20, 60), (60, 60), (60, 85), (20, 85))
    assert (circle.recording, polygon.recording) == ("", "m1")
    picture.drag((35, 30), (40, 35))  # moves the rectangle
    picture.drag((55, 45), (60, 50))  # its corner
    assert near(read_zones(file)[0], (25, 25), (60, 50))
    keys(page, "Delete")
    settle(page)
    assert [zone.name for zone in read_zones(file)] == ["zone 1", "zone 2"]
    page.click(".zone-tools button:text-is('Undo')")
    settle(page)
    assert [zone.name for zone in read_zones(file)] == ["center", "zone 1", "zone 2"]
    assert (arena / ZONES).read_text(encoding="utf-8") == OWN
    data = eb.load_dataset(arena)
    assert [[zone.name for zone in zones_of(recording)] for recording in data] == [
        ["nest", "center", "zone 1", "zone 2"],
        ["nest", "center", "zone 1"],
    ]
    keys(page, "Escape", "m")
    page.wait_for_function("() => document.querySelectorAll('svg.zones g').length === 3")
    page.wait_for_selector(".zone-tools", state="hidden")
    settle(page)


def test_a_zone_is_edited_by_keys_and_a_wrong_one_is_explained(arena, serve, visit):  # noqa: F811
    page = visit(serve(arena), allow=("400 (Bad Request)",))
    picture = Picture(page)
    open_tools(page)
    page.click(".zone-tools button:text-is('polygon')")
    picture.click((31, 52), (45, 52), (38, 58))
    keys(page, "Enter")
    settle(page)
    page.fill("input[aria-label='Coordinates of zone 1 in pixels']", "31 52; 45 58; 45 52; 31 58")
    keys(page, "Enter")
    settle(page)
    assert "crosses itself" in page.text_content(".zone-tools [role=alert]")
    page.fill("input[aria-label='Coordinates of zone 1 in pixels']", "31 52; 45 52; 45 57.5")
    keys(page, "Enter")
    settle(page)
    assert page.text_content(".zone-tools [role=alert]") == ""
    assert read_zones(arena / "corrections" / ZONES)[0].coordinates == ((31, 52), (45, 52), (45, 57.5))
    keys(page, "Home", "ArrowRight")
    at_frame(page, 1)  # other keys work as before
