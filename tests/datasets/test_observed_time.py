"""Columns ``observed_from`` and ``observed_to`` of a study, and the note on studies that lack them."""

from pathlib import Path

import numpy as np
import pytest

from ethobench import create_model, load_dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.observation_period import CODE
from ethobench.datasets.collate import collate_files, collate_pairs
from ethobench.datasets.study_check import check_study

N_FRAMES, RATE, LABELED = 600, 10, 40  # frames, frames per second, seconds


def write_study(folder: Path, cells: dict[int, tuple[str, str]] | None = None, n: int = 6) -> Path:
    """Write a study whose recordings have bouts for 40 of 60 s, from a later second in each recording; `cells` by recording."""
    rows = ["recording,individual,rate,signals,annotations,annotator,observed_from,observed_to"]
    for number in range(n):
        signals = "\n".join(f"{frame / RATE},{frame % 7}" for frame in range(N_FRAMES))
        (folder / f"s{number}.csv").write_text(f"time,speed\n{signals}\n")
        edges = [0, number, number + 10, number + 25, number + LABELED, N_FRAMES // RATE]
        names = ("none", "run", "rest", "run", "none")
        bouts = "\n".join(f"{name},{start},{stop}" for name, start, stop in zip(names, edges, edges[1:], strict=False) if stop > start)
        (folder / f"a{number}.csv").write_text(f"behavior,start,stop\n{bouts}\n")
        first, last = (cells or {}).get(number, ("", ""))
        rows.append(f"r{number},r{number},{RATE},s{number}.csv,a{number}.csv,anna,{first},{last}")
    (folder / "ethogram.csv").write_text("behavior,background\nnone,yes\nrun,\nrest,\n")
    (folder / "recordings.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize(
    ("cells", "expected"),
    [(("1", "41"), (10, 410)), (("", "41,5"), (0, 415)), (("2.5", ""), (25, 600)), (("0", "60"), (0, 600)), (("", "60.5"), (0, 600))],
)
def test_frames_outside_of_the_stated_time_are_unobserved(tmp_path: Path, cells: tuple[str, str], expected: tuple[int, int]) -> None:
    cells = tuple(f'"{cell}"' if "," in cell else cell for cell in cells)
    annotation = load_dataset(write_study(tmp_path, {1: cells}))["r1"].annotation()
    observed = annotation.observed.of_any()
    assert (observed.start.tolist(), observed.stop.tolist()) == ([expected[0]], [expected[1]])
    complete = load_dataset(tmp_path)["r2"].annotation()
    assert complete.observed.is_complete(N_FRAMES)


def write_ending_with_last_bout(folder: Path, last: str, bouts: str = "run,5,10\nrest,20,30") -> Path:
    """Write a recording of 60 s whose table of bouts ends after 30 s."""
    write_study(folder, {0: ("", last)}, n=1)
    (folder / "a0.csv").write_text(f"behavior,start,stop\n{bouts}\n")
    return folder


@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
@pytest.mark.parametrize(("last", "observed"), [("", 300), ("20", 200), ("45", 450), ("60", 600)])
def test_a_table_of_bouts_is_observed_up_to_the_stated_time(tmp_path: Path, last: str, observed: int) -> None:
    recording = load_dataset(write_ending_with_last_bout(tmp_path, last))["r0"]
    frames = recording.annotation().observed.of_any()
    assert (frames.start.tolist(), frames.stop.tolist()) == ([0], [observed])
    has_advice = any("state the end in column 'observed_to'" in str(note) for note in recording.notes)
    assert has_advice == (not last)


@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_labels_of_every_frame_are_not_continued(tmp_path: Path) -> None:
    study = write_ending_with_last_bout(tmp_path, "60", "run,0,10\nrest,10,30")
    assert load_dataset(study)["r0"].annotation().observed.of_any().stop.tolist() == [300]


def test_bouts_are_cut_at_the_ends_of_the_stated_time(tmp_path: Path) -> None:
    annotation = load_dataset(write_study(tmp_path, {0: ("5", "30")}))["r0"].annotation()
    assert np.array_equal(annotation.start, [50, 100, 250])
    assert np.array_equal(annotation.stop, [100, 250, 300])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (("soon", ""), "row 2: observed_from must be a time in seconds, got 'soon'"),
        (("", "-3"), "row 2: observed_to must be a time in seconds, got '-3'"),
        (("30", "20"), "row 2: observed_to (20 s) must be after observed_from (30 s)"),
        (("", "90"), "row 2: observed_from or observed_to is 90 s, but the recording ends at 60 s"),
        (("60", ""), "row 2: observed_from or observed_to is 60 s, but the recording ends at 60 s"),
    ],
)
def test_impossible_times_are_problems_of_the_row(tmp_path: Path, cells: tuple[str, str], message: str) -> None:
    problems = check_study(write_study(tmp_path, {0: cells})).problems
    assert [str(problem) for problem in problems] == [message]
    with pytest.raises(EthobenchError):
        load_dataset(tmp_path)


def test_the_check_of_a_study_names_the_time_that_nobody_labeled(tmp_path: Path) -> None:
    (warning,) = (text for text in check_study(write_study(tmp_path)).warnings if "observed_to" in text)
    assert warning.startswith("anna: 6 recordings have labels for 40 s from the first bout, and none in the 29 % of their time")


def test_commands_that_read_the_study_note_it(tmp_path: Path) -> None:
    assert [note.code for note in collate_files([write_study(tmp_path)], same_recording=False).notes].count(CODE) == 1


def test_scores_against_such_labels_note_it_for_the_reference_only(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    assert [note.code for note in collate_pairs(study, study).notes].count(CODE) == 1


def test_stated_times_are_not_warned_about(tmp_path: Path) -> None:
    study = write_study(tmp_path, {number: ("", str(number + LABELED)) for number in range(6)})
    assert not any("observed_to" in text for text in check_study(study).warnings)
    assert CODE not in [note.code for note in collate_files([study], same_recording=False).notes]


def test_nothing_is_inferred_where_the_end_of_the_recording_is_stated(tmp_path: Path) -> None:
    study = write_study(tmp_path, dict.fromkeys(range(6), ("", "60")))
    assert not any("observed_to" in text for text in check_study(study).warnings)
    assert CODE not in [note.code for note in (*collate_files([study], same_recording=False).notes, *collate_pairs(study, study).notes)]
    assert create_model("dt").fit(load_dataset(study)).observation_period is None


def test_other_names_of_the_columns_are_recognized(tmp_path: Path) -> None:
    path = write_study(tmp_path) / "recordings.csv"
    path.write_text(path.read_text().replace("observed_to", "scored_until"))
    assert "did you mean 'observed_to'?" in str(check_study(tmp_path).problems[0])
