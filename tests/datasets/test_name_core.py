"""Names that are matched by their common core: right or not at all, whatever is added before and after them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.datasets.name_core import match_by_core, split_name

WORDS = ("anna", "ben", "final", "tracked", "top", "side", "annotations", "v2", "cam1", "2024-05-01", "20231224")
IDS = (*(f"m{k}" for k in range(1, 13)), *(f"rat_{k:02}" for k in range(1, 6)), "fluffy", "snowy", "2023-11-02_m1", "2023-11-03_m1")
affixes = st.lists(st.sampled_from(WORDS), max_size=2).map("_".join)


@st.composite
def names_with_affixes(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Return ids and their names in one folder: with affixes that are all alike, or others for each file."""
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=8, unique=True))
    if draw(st.booleans()):
        head, tail = draw(affixes), draw(affixes)
        return [(name, "_".join(filter(None, (head, name, tail)))) for name in ids]
    return [(name, "_".join(filter(None, (draw(affixes), name, draw(affixes))))) for name in ids]


@given(names_with_affixes(), names_with_affixes())
def test_no_affix_gives_a_wrong_match(first, second):
    matches = match_by_core([name for _, name in first], [name for _, name in second])
    assert len({match.first for match in matches}) == len({match.second for match in matches}) == len(matches)
    for match in matches:
        one, two = first[match.first][0], second[match.second][0]
        is_date_missing = re.sub(r"2023-11-0\d_", "", one) == re.sub(r"2023-11-0\d_", "", two)
        assert one == two or (is_date_missing and "m1" in (one, two)), (first[match.first], second[match.second])


@given(st.lists(st.sampled_from([f"m{k}" for k in range(1, 40)]), min_size=2, max_size=12, unique=True), st.permutations(WORDS[:7]))
def test_names_between_words_are_matched(ids, words):
    first = [f"{words[0]}_{name}-{words[1]}" for name in ids]
    second = [f"{words[2]} {name} {words[3]}" for name in reversed(ids)]
    matches = match_by_core(first, second)
    assert {(first[m.first].split("_")[1].split("-")[0], second[m.second].split()[1], m.core) for m in matches} == {(n, n, n) for n in ids}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (["2024-05-01_m3_topcam_annotations_anna", "m4_x"], ["m3_topcam", "m4_topcam"], {(0, 0)}),
        (["m3_anna"], ["m3DLC_resnet50_box1"], {(0, 0)}),
        (["m1_anna", "m1_ben"], ["m1"], set()),  # two names fit
        (["m1"], ["m1_left", "m1_right"], set()),
        (["m1_2"], ["m1"], set()),  # a number is not an affix
        (["m1_2"], ["m2_1"], set()),
        (["1_2_x"], ["2_1"], set()),
        (["2024-05-01_m1"], ["2024-05-02_m1"], set()),  # dates differ
        (["20240501 m1 scored"], ["2024-05-01-m1"], {(0, 0)}),
        (["anna_fluffy"], ["snowy_anna"], set()),  # a person is not a recording
        (["m1_cam1"], ["m2_cam1"], set()),
        (["Café_m1"], ["CAFÉ_m1_x"], {(0, 0)}),
        ([], ["m1"], set()),
        (["___"], ["m1"], set()),
    ],
)
def test_examples(first, second, expected):
    assert {match[:2] for match in match_by_core(first, second)} == expected
    assert {(match.second, match.first) for match in match_by_core(second, first)} == expected


def test_dates_are_one_token():
    assert split_name("m1_20240501") == split_name("M1-2024-05-01") == ("m1", "20240501")
    assert split_name("m1_20241301") == ("m1", "20241301")
