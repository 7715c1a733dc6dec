"""The page of licenses lists every dependency; nothing copyleft is in the core."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, requires

import pytest
from tests.docs.blocks import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import _licenses

ROW = re.compile(r"^\| ([\w.-]+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
COPYLEFT = re.compile(r"\bA?L?GPL|General Public|\bMPL|Mozilla|\bEUPL|CC-BY-SA|Affero")


def rows() -> dict[str, list[tuple[str, str]]]:
    """Return package and license of each section of the page."""
    _, *sections = _licenses.PAGE.read_text(encoding="utf-8").split("\n## ")
    return {
        section.partition("\n")[0]: [(package, license) for package, license, _ in ROW.findall(section) if package != "package"]
        for section in sections
    }


def test_the_page_lists_the_dependencies_of_pyproject():
    assert [[package for package, _ in listed] for listed in rows().values()] == [*_licenses.groups().values()]


def test_every_package_has_a_license_of_the_same_kind_as_the_installed_version():
    for listed in rows().values():
        for package, license in listed:
            stated = _licenses.license_of(package)
            is_copyleft = bool(COPYLEFT.search(license))
            assert stated is None or bool(COPYLEFT.search(stated)) == is_copyleft, f"{package}: run python docs/_licenses.py"
            assert license not in ("", "not stated", "not installed"), package


def test_the_core_has_no_copyleft_dependency():
    core = rows()["Core"]
    assert core
    assert not [package for package, license in core if COPYLEFT.search(license)]


def test_what_the_core_needs_in_turn_has_one_known_exception():
    try:
        requires("pooch")
    except PackageNotFoundError:
        pytest.skip("the core is not installed")
    further = _licenses.closure(_licenses.groups()["core"])
    assert {package for package in further if COPYLEFT.search(_licenses.license_of(package) or "")} <= {"certifi"}
