"""Guessing animals from names of files and folders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.datasets.name_guesses import guess_individual, names_recording


@pytest.mark.parametrize(
    ("name", "folders", "individual"),
    [
        ("mouse7_day2", (), "mouse7"),
        ("sub-01_ses-02", (), "sub-01"),
        ("day2", ("mouse7",), "mouse7"),
        ("rec", ("sub-01", "ses-02"), "sub-01"),
        ("control_mouse7_trial1", (), "mouse7"),
        ("cohort2_mouse7_trial1", (), "cohort2_mouse7"),
        ("mouse7_trial1", ("cohort2",), "cohort2_mouse7"),
        ("mouse1_mouse2_trial3", (), "mouse1;mouse2"),
        ("m1_day1", (), "m1"),
        ("m1_2024-05-01", (), "m1"),
        ("B6-12_20240501_cam1", (), "B6-12"),
        ("day2", (), ""),
        ("OFT_11", (), ""),
        ("household_3", (), ""),
        ("mousetrap", ("ratio3",), ""),
    ],
)
def test_individuals(name, folders, individual):
    assert guess_individual(name, folders) == individual


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("mouse1", True), ("ses-02", True), ("2024-05-01", True), ("anna", False), ("brett_initial", False), ("poses", False)],
)
def test_folders_of_recordings(folder, expected):
    assert names_recording(folder) == expected


@given(st.text(max_size=30), st.lists(st.text(max_size=10), max_size=3))
def test_any_name_has_a_guess(name, folders):
    individual = guess_individual(name, folders)
    assert individual == individual.strip()


@given(st.integers(0, 99), st.integers(0, 99), st.sampled_from(["_", "-", " ", "."]))
def test_sessions_of_an_animal_have_the_same_guess(animal, session, separator):
    assert guess_individual(f"rat{animal}{separator}session{session}") == f"rat{animal}"
