"""Column ``behaviors_labeled`` of a study: what is not listed is unobserved, in training and in scores."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench as eb
from ethobench import Annotation
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, ReadWarning
from ethobench.core.targets import overlapping_targets
from ethobench.datasets.labeled_behaviors import entry_text, parse_labeled_cell
from ethobench.datasets.study_check import check_study

N = 60
BOUTS = (("mouse1", "mouse2", "attack", 0, 10), ("mouse2", "mouse1", "attack", 20, 30), ("mouse1", None, "rear", 40, 50))


def bouts(*rows: tuple[str, str | None, str, int, int]) -> Annotation:
    subject, target, behavior, start, stop = zip(*rows, strict=True)
    ethogram = dict.fromkeys(behavior)
    return Annotation.from_bouts(start, stop, behavior, ethogram, 30, N, subject=subject, target=target)


def make_study(
    root: Path,
    cells: dict[str, str],
    *,
    poses: bool = False,
    ethogram: str = "",
    rows: tuple = BOUTS,
    extra: str = "",
    extra_cell: str = "",
) -> Path:
    """Write a study with one recording per entry of `cells`: the list of the recording, as the manifest states it."""
    root.mkdir(exist_ok=True)
    text = f"recording,individual,rate,signals,annotations,annotator,behaviors_labeled{extra}\n"
    for name, cell in cells.items():
        eb.write_annotation(bouts(*rows), root / f"{name}.csv", "tidy")
        signals = ""
        if poses:
            signals = f"{name}_poses.csv"
            mice = ("mouse1", "mouse2")
            header = [
                ["scorer", *["s"] * 6],
                ["individuals", *[mouse for mouse in mice for _ in range(3)]],
                ["bodyparts", *["nose"] * 6],
                ["coords", *["x", "y", "likelihood"] * 2],
            ]
            lines = [",".join(row) for row in header] + [f"{i},1,2,1,3,4,1" for i in range(N)]
            (root / signals).write_text("\n".join(lines) + "\n")
        quoted = '"' + cell.replace('"', '""') + '"'
        text += f"{name},{name},30,{signals},{name}.csv,ann,{quoted}{extra_cell}\n"
    (root / "recordings.csv").write_text(text)
    if ethogram:
        (root / "ethogram.csv").write_text(ethogram)
    return root


def load(path: Path) -> eb.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)
        return eb.load_dataset(path)


def observed(annotation: Annotation, *track: str | None) -> int:
    return iv.total(annotation.observed.of(*track))


@pytest.mark.parametrize(
    "cell", ['["mouse1,mouse2,attack", "mouse1,self,rear"]', "mouse1,mouse2,attack; mouse1,self,rear", "1,2,attack;1,1,rear"]
)
def test_only_listed_pairs_are_observed(tmp_path, cell):
    recording = load(make_study(tmp_path / "study", {"m1": cell}))["m1"]
    a = recording.annotation()
    assert observed(a, "attack", "mouse1", "mouse2") == N
    assert observed(a, "rear", "mouse1") == N
    assert observed(a, "attack", "mouse2", "mouse1") == observed(a, "rear", "mouse2") == 0
    assert recording.metadata["behaviors_labeled"] == ["mouse1,mouse2,attack", "mouse1,self,rear"]
    assert len(a) == 3  # the bout of the other pair is kept, and noted
    (note,) = [note for note in recording.notes if note.code == "outside-labeled"]
    assert note.location == "row 2"
    assert "1 bouts are not in behaviors_labeled" in note.message
    assert "mouse2,mouse1,attack" in note.message


def test_plain_names_are_labeled_for_all_animals(tmp_path):
    recording = load(make_study(tmp_path / "study", {"m1": "attack"}))["m1"]
    a = recording.annotation()
    assert observed(a, "attack", "mouse1", "mouse2") == observed(a, "attack", "mouse2", "mouse1") == observed(a, "attack") == N
    assert observed(a, "rear", "mouse1") == observed(a, "rear") == 0


def test_an_empty_list_is_not_a_blank_cell(tmp_path):
    data = load(make_study(tmp_path / "study", {"none": "[]", "blank": "", "one": "rear"}))
    assert {name: observed(data[name].annotation(), "rear", "mouse1") for name in ("none", "blank", "one")} == {
        "none": 0,
        "blank": N,
        "one": N,
    }
    assert observed(data["blank"].annotation(), "attack", "mouse1", "mouse2") == N
    assert [note.code for note in data["blank"].notes] == ["labeled-blank"]
    assert "behaviors_labeled" not in data["blank"].metadata
    assert data["none"].metadata["behaviors_labeled"] == []


def test_a_study_without_lists_has_no_notes(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = eb.load_dataset(make_study(tmp_path / "study", {"m1": ""}))
    assert data["m1"].annotation().observed.is_complete(N)


def test_training_targets_and_scores_leave_out_what_was_not_labeled(tmp_path):
    data = load(make_study(tmp_path / "study", {"m1": "mouse1,mouse2,attack", "m2": "rear"}))
    by_name = {r.id: dict(zip(data.ethogram.names, overlapping_targets(r.annotation()).T, strict=True)) for r in data}
    assert (by_name["m1"]["rear"] == -1).all()
    assert (by_name["m2"]["attack"] == -1).all()
    expected = np.zeros(N, dtype=int)
    expected[40:50] = 1
    np.testing.assert_array_equal(by_name["m2"]["rear"], expected)
    nothing = {r.id: bouts(("mouse1", "mouse2", "attack", 0, 10), ("mouse1", None, "rear", 0, 60)) for r in data}
    scores = eb.score({"m1": nothing["m1"]}, data.select(recordings=["m1"]), resamples=0)
    assert scores.behaviors["attack"]["f1"] == 1.0  # the attack by mouse2 was not looked for
    assert "rear" not in scores.behaviors  # nor was rearing: 60 false frames do not count


def test_the_suite_counts_true_bouts_outside_the_list_as_misses(tmp_path):
    data = load(make_study(tmp_path / "study", {"m1": "mouse1,mouse2,attack;mouse1,self,rear"}, extra=",lab", extra_cell=",Owl"))
    assert data["m1"].metadata["lab"] == "Owl"
    scores = eb.score({"m1": bouts(*BOUTS)}, data, suite="mabe2025", resamples=0)
    assert scores.overall["f1"] == pytest.approx((2 / 3 + 1) / 2)  # half of the attack is outside the list, so its prediction is ignored
    assert scores.overall["f1_labeled"] == 1.0
    plain = load(make_study(tmp_path / "plain", {"m1": "attack"}, extra=",lab", extra_cell=",Owl"))
    scores = eb.score({"m1": bouts(*BOUTS)}, plain, suite="mabe2025", resamples=0)
    assert scores.overall["f1"] == 0.5
    assert scores.overall["f1_labeled"] == 1.0


def test_lists_of_two_annotators_differ_and_a_blank_one_is_that_of_the_recording(tmp_path):
    root = make_study(tmp_path / "study", {"m1": "attack"})
    for name in ("ben", "carla"):
        eb.write_annotation(bouts(*BOUTS), root / f"{name}.csv", "tidy")
    with (root / "recordings.csv").open("a") as file:
        file.write("m1,m1,30,,ben.csv,ben,rear\nm1,m1,30,,carla.csv,carla,\n")
    annotations = load(root)["m1"].annotations
    assert {who: [observed(a, name, "mouse1", "mouse2") for name in ("attack", "rear")] for who, a in annotations.items()} == {
        "ann": [N, 0],
        "ben": [0, N],
        "carla": [N, 0],
    }


def test_aliases_and_renames_apply_to_lists(tmp_path):
    root = make_study(tmp_path / "study", {"m1": "biting", "m2": "attack"}, ethogram="behavior,alias\nbiting,attack\nrear,\n")
    data = load(root)
    assert [observed(r.annotation(), "biting", "mouse1", "mouse2") for r in data] == [N, N]
    assert [observed(r.annotation(), "rear", "mouse1") for r in data] == [0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)
        data = eb.load_dataset(root, rename={"biting": "fight"})
    assert [r.metadata["behaviors_labeled"] for r in data] == [["fight"], ["fight"]]


def test_the_background_is_observed_where_all_behaviors_are(tmp_path):
    ethogram = "behavior,background\nattack,\nrear,\nother,yes\n"
    data = load(make_study(tmp_path / "study", {"all": "attack;rear", "some": "rear"}, ethogram=ethogram))
    frames = {r.id: r.annotation().without_subjects().to_codes() for r in data}
    assert np.bincount(frames["all"]).tolist() == [20, 10, 30]
    assert (frames["some"] == 1).sum() == 10
    assert (frames["some"] == -1).sum() == 50


def problems(root: Path) -> str:
    with pytest.raises(EthobenchError) as error:
        load(root)
    return str(error.value)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("mouse1,mouse2,attack;mouse1,mouse4,attack", "row 2: behaviors_labeled names 'mouse4', but the recording has: mouse1, mouse2"),
        ("mouse7,self,rear", "row 2: behaviors_labeled names 'mouse7', but"),
        ("attack,rear,mount", "row 2: behaviors_labeled names 'attack', 'rear', but the recording has: mouse1, mouse2"),
        ("mouse1,mouse2,atack", "row 2: behaviors_labeled names 'atack', which is not in the ethogram; did you mean 'attack'?"),
        ("fly", "row 2: behaviors_labeled names 'fly', which is not in the ethogram; behaviors: attack, rear"),
        ("attack,rear", "row 2: behaviors_labeled needs entries such as 'mouse1,mouse2,attack'"),
        ("mouse1,,attack", "row 2: behaviors_labeled needs entries such as"),
        ('["attack"', "row 2: behaviors_labeled is not a valid JSON list"),
        ('[1, "attack"]', "row 2: behaviors_labeled needs a list of text such as"),
    ],
)
def test_wrong_lists_are_problems_of_their_row(tmp_path, cell, message):
    root = make_study(tmp_path / "study", {"m1": cell, "m2": "attack"}, poses=True, ethogram="behavior\nattack\nrear\n")
    assert message in problems(root)
    assert any(message in str(problem) for problem in check_study(root).problems)


def test_without_poses_and_ethogram_unknown_names_are_notes(tmp_path):
    recording = load(make_study(tmp_path / "study", {"m1": "mouse1,mouse2,attack;mouse3,mouse1,chase"}))["m1"]
    notes = {note.code: note for note in recording.notes}
    assert "'mouse3', of which there is no bout; annotated: mouse1, mouse2" in notes["labeled-animals"].message
    assert "no annotation has 'chase'" in notes["labeled-behavior"].message
    assert {note.location for note in notes.values()} == {"row 2"}
    assert recording.subjects == ("mouse1", "mouse2", "mouse3")
    a = recording.annotation()
    assert "chase" in a.ethogram
    assert observed(a, "chase", "mouse3", "mouse1") == N


@pytest.mark.parametrize("cell", ["0", "0.0", "-3", "nan", "inf", "sixteen"])
def test_a_scale_that_is_not_positive_is_refused(tmp_path, cell):
    root = make_study(tmp_path / "study", {"m1": "attack"}, extra=",pixels_per_cm", extra_cell=f",{cell}")
    assert f"row 2: pixels_per_cm must be a positive number, got {cell!r}" in problems(root)


def test_a_blank_scale_is_noted_and_contradictory_ones_are_refused(tmp_path):
    root = make_study(tmp_path / "study", {"m1": "attack", "m2": "attack"}, extra=",pixels_per_cm", extra_cell=",16")
    text = (root / "recordings.csv").read_text()
    (root / "recordings.csv").write_text(text[: text.rindex("16")] + "\n")
    data = load(root)
    assert data["m1"].metadata["pixels_per_cm"] == 16.0
    assert "pixels_per_cm" not in data["m2"].metadata
    assert [note.code for r in data for note in r.notes if note.code == "no-scale"] == ["no-scale"]
    (root / "recordings.csv").write_text(
        text.replace("m2,m2,30,,m2.csv,ann,", "m1,m1,30,,m2.csv,ben,").replace('"attack",16\n', '"attack",12\n', 1)
    )
    assert "row 3: pixels_per_cm of 'm1' is '16' here, but '12' in row 2" in problems(root)


@pytest.mark.parametrize(("name", "column"), [("pix_per_cm", "pixels_per_cm"), ("labeled_behaviors", "behaviors_labeled")])
def test_other_names_of_the_columns_are_corrected(tmp_path, name, column):
    root = make_study(tmp_path / "study", {"m1": "attack"}, extra=",pixels_per_cm", extra_cell=",16")
    path = root / "recordings.csv"
    path.write_text(path.read_text().replace(column, name))
    assert f"header: column '{name}' is not known; did you mean '{column}'?" in problems(root)


names = st.text(st.characters(codec="utf-8", exclude_characters=',;"[]', exclude_categories=["Z", "C"]), min_size=1, max_size=8).filter(
    lambda name: name != "self"
)
tracks = st.one_of(
    names.map(Track),
    st.tuples(names, names, names).map(lambda t: Track(t[0], t[1], None if t[1] == t[2] else t[2])),
    st.tuples(names, names).map(lambda t: Track(*t)),
)


@given(st.lists(tracks, unique=True, max_size=5))
def test_entries_round_trip(listed):
    entries = [entry_text(track) for track in listed]
    assert parse_labeled_cell(json.dumps(entries)) == tuple(listed)
    assert parse_labeled_cell(";".join(entries)) == tuple(listed)
