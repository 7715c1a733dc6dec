"""The suite of MABe 2025 against a literal restatement of its rules with sets of frames, and its quirks one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording
from ethobench.cli import app
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, NotFoundError
from ethobench.formats.mabe2025_tables import mouse_name, read_bouts
from ethobench.metrics.suites.mabe2025 import annotation_table

COLUMNS = ["video_id", "agent_id", "target_id", "action", "start_frame", "stop_frame"]
Row = tuple[Any, Any, Any, str, int, int]
Lists = dict[Any, tuple[str, list[str]]]  # videos to lab and labeled behaviors


def table(*rows: Row) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def metadata(lists: Lists) -> pd.DataFrame:
    rows = [(video, lab, json.dumps(labeled) if labeled else "") for video, (lab, labeled) in lists.items()]
    return pd.DataFrame(rows, columns=["video_id", "lab_id", "behaviors_labeled"])


def score(pred: list[Row], truth: list[Row], lists: Lists) -> dict[str, float]:
    return eb.score(table(*pred), table(*truth), suite="mabe2025", metadata=metadata(lists), resamples=0).overall


class RejectedError(Exception):
    """Two actions of one pair in one frame."""


def names_of(row: Row) -> tuple[str, str, str]:
    """Return agent, target and action of a row in the spelling of the lists."""
    agent, target = mouse_name(row[1]), mouse_name(row[2])
    return agent, "self" if target == agent else target, row[3]


def literal(pred: list[Row], truth: list[Row], lists: Lists, *, quirks: bool = True) -> float:
    """Return the score by sets of frames, straight from the rules; without the quirks, of the labeled behaviors only."""
    lab_scores = []
    videos_with_truth = {row[0] for row in truth}
    for lab in dict.fromkeys(lists[row[0]][0] for row in truth):
        true_frames: dict[Any, set[int]] = {}
        for row in truth:
            if lists[row[0]][0] == lab and (quirks or ",".join(names_of(row)) in lists[row[0]][1]):
                true_frames.setdefault((row[0], *names_of(row)), set()).update(range(row[4], row[5]))
        predicted: dict[Any, set[int]] = {}
        for row in pred:
            if row[0] in videos_with_truth and lists[row[0]][0] == lab and ",".join(names_of(row)) in lists[row[0]][1]:
                agent, target, action = names_of(row)
                frames = set(range(row[4], row[5]))
                others = [f for key, f in predicted.items() if key[:3] == (row[0], agent, target) and key[3] != action]
                if any(frames & other for other in others):
                    raise RejectedError
                predicted.setdefault((row[0], agent, target, action), set()).update(frames)
        actions = {key[3] for key in (*true_frames, *predicted)}
        if not quirks:
            actions = {key[3] for side in (true_frames, predicted) for key, covered in side.items() if covered}
        values = []
        for action in actions:
            keys = {key for key in (*true_frames, *predicted) if key[3] == action}
            both = [(true_frames.get(key, set()), predicted.get(key, set())) for key in keys]
            tp, fp, fn = (sum(map(len, sets)) for sets in ([t & p for t, p in both], [p - t for t, p in both], [t - p for t, p in both]))
            values.append(2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0)
        if values:
            lab_scores.append(sum(values) / len(values))
    return sum(lab_scores) / len(lab_scores) if lab_scores else float("nan")


mice = st.sampled_from([1, 2, "mouse1", "mouse3", "2"])
frames = st.tuples(st.integers(-3, 25), st.integers(0, 12)).map(lambda f: (f[0], f[0] + f[1]))
rows = st.builds(
    lambda video, agent, target, action, span: (video, agent, target, action, *span),
    st.integers(1, 4),
    mice,
    st.one_of(mice, st.just("self")),
    st.sampled_from(["sniff", "attack", "rear"]),
    frames,
)
lists_of_entries = st.lists(
    st.builds(
        lambda who, whom, action: f"{who},{'self' if who == whom else whom},{action}",
        st.sampled_from(["mouse1", "mouse2", "mouse3"]),
        st.sampled_from(["mouse1", "mouse2", "mouse3", "self"]),
        st.sampled_from(["sniff", "attack", "rear"]),
    ),
    max_size=14,
    unique=True,
)


@given(
    st.lists(rows, max_size=8),
    st.lists(rows, min_size=1, max_size=8),
    st.lists(lists_of_entries, min_size=4, max_size=4),
    st.lists(st.sampled_from("AB"), min_size=4, max_size=4),
)
def test_random_tables_equal_the_literal_restatement(pred, truth, lists, labs):
    videos = {k + 1: (labs[k], lists[k]) for k in range(4)}
    try:
        expected = literal(pred, truth, videos)
    except RejectedError:
        with pytest.raises(MismatchError, match="two actions"):
            score(pred, truth, videos)
        return
    overall = score(pred, truth, videos)
    assert overall["f1"] == pytest.approx(expected, abs=1e-12)
    assert overall["f1_labeled"] == pytest.approx(literal(pred, truth, videos, quirks=False), abs=1e-12, nan_ok=True)


SNIFF = "mouse1,mouse2,sniff"
ATTACK = "mouse1,mouse2,attack"
REAR = "mouse1,self,rear"
ALL: Lists = {1: ("A", [SNIFF, ATTACK, REAR]), 2: ("B", [SNIFF, ATTACK])}


@pytest.mark.parametrize(
    ("pred", "truth", "expected"),
    [
        ([(1, 1, 2, "sniff", 0, 10)], [(1, 1, 2, "sniff", 0, 10)], 1),
        ([(1, 1, 2, "sniff", 0, 10)], [(1, 1, 2, "sniff", 0, 10), (1, 1, 2, "attack", 20, 30)], 1 / 2),
        ([(1, 1, 2, "sniff", 0, 10)], [(1, 1, 2, "sniff", 0, 10), (2, 1, 2, "sniff", 0, 10)], 1 / 2),
        ([(1, 1, 2, "sniff", 0, 40)], [(1, 1, 2, "sniff", 0, 10), (1, 1, 2, "sniff", 30, 40)], 2 / 3),
    ],
    ids=["perfect", "one of two actions", "one of two labs", "one bout over a gap"],
)
def test_worked_examples(pred, truth, expected):
    assert score(pred, truth, ALL)["f1"] == pytest.approx(expected, abs=1e-12)


TRUTH: list[Row] = [(1, 1, 2, "sniff", 0, 10)]


def test_predictions_for_videos_without_truth_are_dropped():
    extra = [(2, 1, 2, "sniff", 0, 500), (99, 1, 2, "sniff", 0, 500)]
    assert score([*TRUTH, *extra], TRUTH, ALL) == score(TRUTH, TRUTH, ALL)
    scores = eb.score(table(*TRUTH, *extra), table(*TRUTH), suite="mabe2025", metadata=metadata(ALL))
    assert "dropped 2 of 3 predicted bouts, of videos without truth: 2, 99" in map(str, scores.notes)


def test_predictions_that_are_not_labeled_are_ignored():
    scores = eb.score(
        table(*TRUTH, (1, 2, 1, "sniff", 0, 90), (1, 1, 2, "chase", 0, 90)), table(*TRUTH), suite="mabe2025", metadata=metadata(ALL)
    )
    assert scores.overall["f1"] == scores.overall["f1_labeled"] == 1
    assert "ignored 2 of 3 predicted bouts, not among the labeled behaviors: sniff, chase" in map(str, scores.notes)


def test_truth_that_is_not_labeled_counts_as_missed_in_f1_only():
    truth = [*TRUTH, (1, 2, 1, "sniff", 0, 10), (1, 2, 1, "chase", 0, 10)]
    pred = [*TRUTH, (1, 2, 1, "sniff", 0, 10), (1, 2, 1, "chase", 0, 10)]
    overall = score(pred, truth, ALL)
    assert overall["f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert overall["f1_labeled"] == 1


def test_frames_predicted_twice_count_once():
    pred = [(1, 1, 2, "sniff", 0, 8), (1, "mouse1", "mouse2", "sniff", 2, 10), (1, 1, 2, "sniff", 0, 10)]
    assert score(pred, TRUTH, ALL)["f1"] == 1


def test_two_actions_of_a_pair_in_one_frame_are_an_error():
    pred = [(1, 1, 2, "attack", 50, 60), (1, 1, 2, "sniff", 0, 10), (1, 1, 2, "attack", 7, 12)]
    with pytest.raises(MismatchError, match=r"video 1: mouse1 has two actions towards mouse2 in frame 7, sniff and attack"):
        score(pred, TRUTH, ALL)
    other_pairs = [(1, 1, 2, "sniff", 0, 10), (1, 1, "self", "rear", 0, 10)]
    assert score(other_pairs, TRUTH, ALL)["f1"] == 1 / 2
    not_labeled = [(1, 1, 2, "sniff", 0, 10), (1, 1, 2, "mount", 0, 10)]
    assert score(not_labeled, TRUTH, ALL)["f1"] == 1
    touching = [(1, 1, 2, "sniff", 0, 10), (1, 1, 2, "attack", 10, 20)]
    assert score(touching, TRUTH, ALL)["f1"] == 1 / 2


def test_truth_may_have_two_actions_in_one_frame():
    truth = [*TRUTH, (1, 1, 2, "attack", 0, 10)]
    assert score(TRUTH, truth, ALL)["f1"] == 1 / 2


def test_actions_that_are_predicted_and_never_occur_have_a_score_of_zero():
    scores = eb.score(table(*TRUTH, (1, 1, 2, "attack", 50, 90)), table(*TRUTH), suite="mabe2025", metadata=metadata(ALL))
    assert scores.overall["f1"] == scores.overall["f1_labeled"] == 1 / 2
    assert scores.per("lab")["A"]["behaviors"]["attack"]["f1"] == 0
    assert "A attack" in str(scores.notes[-1])
    empty = score([*TRUTH, (1, 1, 2, "attack", 50, 50)], TRUTH, ALL)
    assert (empty["f1"], empty["f1_labeled"]) == (1 / 2, 1)


def test_truth_elsewhere_in_the_lab_makes_false_alarms_count():
    lists: Lists = {1: ("A", [SNIFF, ATTACK]), 2: ("A", [SNIFF, ATTACK])}
    truth = [*TRUTH, (2, 1, 2, "attack", 0, 10)]
    pred = [*TRUTH, (1, 1, 2, "attack", 50, 60), (2, 1, 2, "attack", 0, 10)]
    assert score(pred, truth, lists)["f1"] == pytest.approx((1 + 2 / 3) / 2)


def test_an_empty_bout_makes_its_action_count():
    assert score(TRUTH, [*TRUTH, (1, 1, 2, "attack", 5, 5)], ALL)["f1"] == 1 / 2


def test_a_video_without_labeled_behaviors_ignores_all_predictions():
    assert score(TRUTH, TRUTH, {1: ("A", [])})["f1"] == 0


def test_spellings_of_ids():
    truth = [(1, 1, 1, "rear", 0, 10), (1, 1, 2, "sniff", 0, 10)]
    for agent, on_itself, other in ((1, 1, 2), ("1", "self", "2"), ("mouse1", "mouse1", "mouse2"), (1.0, "self", "mouse2")):
        assert score([("1", agent, on_itself, "rear", 0, 10), (1.0, agent, other, "sniff", 0, 10)], truth, ALL)["f1"] == 1


def test_quotes_inside_the_list():
    lists = {1: ("A", ["'mouse1','mouse2','sniff'"])}
    assert score(TRUTH, TRUTH, lists)["f1"] == 1


def test_scores_of_labs_and_their_actions():
    truth = [(1, 1, 2, "sniff", 0, 10), (1, 1, 2, "attack", 20, 30), (2, 1, 2, "sniff", 0, 10)]
    scores = eb.score(table(*truth[1:]), table(*truth), suite="mabe2025", metadata=metadata(ALL))
    labs = scores.per("lab")
    assert labs["A"]["overall"]["f1"] == 1 / 2
    assert labs["A"]["behaviors"]["sniff"]["f1"] == 0
    assert labs["A"]["behaviors"]["attack"]["f1"] == labs["B"]["overall"]["f1"] == 1
    assert np.isnan(labs["B"]["behaviors"]["attack"]["f1"])
    rows = scores.table().query("metric == 'f1' and recording == '' and lab == 'A'").set_index("behavior")["value"]
    assert rows.to_dict() == {"": 0.5, "sniff": 0.0, "attack": 1.0}
    assert scores.unit == "labs"


def test_the_solution_may_carry_lab_and_list():
    solution = table(*TRUTH).assign(lab_id="A", behaviors_labeled=json.dumps([SNIFF]))
    assert eb.score(table((1, 1, 2, "sniff", 0, 5)), solution, suite="mabe2025").overall["f1"] == pytest.approx(2 / 3)


def recording(name: str, truth: list[Row], lab: str, labeled: list[str]) -> Recording:
    return Recording(name, annotations={"a": annotation(truth)}, metadata={"lab": lab, "behaviors_labeled": labeled})


def annotation(rows: list[Row], n_frames: int = 100) -> Annotation:
    who, whom = [mouse_name(row[1]) for row in rows], [None if row[2] == "self" else mouse_name(row[2]) for row in rows]
    start, stop, actions = [row[4] for row in rows], [row[5] for row in rows], [row[3] for row in rows]
    ethogram = Ethogram(["sniff", "attack", "rear", "chase"])
    return Annotation.from_bouts(start, stop, actions, ethogram, 30, n_frames, subject=who, target=whom)


def test_annotations_of_a_dataset_score_as_tables():
    truth: list[Row] = [(1, 1, 2, "sniff", 0, 10), (1, 2, 1, "chase", 0, 10), (2, 1, 2, "sniff", 0, 10), (3, 1, 2, "attack", 5, 9)]
    pred: list[Row] = [(1, 1, 2, "sniff", 5, 40), (1, 2, 1, "chase", 0, 10), (1, 1, 2, "attack", 50, 60), (3, 1, 2, "attack", 0, 9)]
    lists: Lists = {1: ("A", [SNIFF, ATTACK]), 2: ("A", [SNIFF]), 3: ("B", [ATTACK])}
    recordings = [recording(str(k), [row for row in truth if row[0] == k], *lists[k]) for k in lists]
    data = Dataset(tuple(recordings), recordings[0].annotation().ethogram)
    predictions = {str(k): annotation([row for row in pred if row[0] == k], 80) for k in lists}
    expected = score(pred, truth, lists)
    assert eb.score(predictions, data, suite="mabe2025", resamples=0).overall == pytest.approx(expected)
    assert eb.score(table(*pred), data, suite="mabe2025", resamples=0).overall == pytest.approx(expected)
    truths = {r.id: r.annotation() for r in data}
    scores = eb.score(predictions, truths, suite="mabe2025", metadata=metadata(lists), resamples=0)
    assert scores.overall == pytest.approx(expected)
    assert scores.individuals == ("A", "B")


def test_annotations_with_two_actions_of_a_pair_are_an_error():
    data = Dataset((recording("1", TRUTH, "A", [SNIFF, ATTACK]),), Ethogram(["sniff", "attack", "rear", "chase"]))
    pred = annotation([(1, 1, 2, "sniff", 0, 10), (1, 1, 2, "attack", 3, 4)])
    with pytest.raises(MismatchError, match="video 1: mouse1 has two actions towards mouse2 in frame 3"):
        eb.score({"1": pred}, data, suite="mabe2025")


def test_a_labeled_video_without_truth_counts_in_f1_labeled():
    data = Dataset((recording("1", TRUTH, "A", [SNIFF]), recording("2", [], "A", [SNIFF])), Ethogram(["sniff", "attack", "rear", "chase"]))
    scores = eb.score({"1": annotation(TRUTH), "2": annotation(TRUTH)}, data, suite="mabe2025")
    assert scores.overall["f1"] == 1
    assert scores.overall["f1_labeled"] == pytest.approx(2 / 3)


def test_annotations_without_lab_are_noted():
    scores = eb.score({"1": annotation(TRUTH)}, {"1": annotation(TRUTH)}, suite="mabe2025")
    assert [str(note) for note in scores.notes[:2]] == [
        "no lab, so each individual counts as one: 1",
        "no behaviors_labeled, so every behavior counts as labeled: 1",
    ]


@pytest.mark.parametrize(
    ("pred", "truth", "error", "message"),
    [
        (table(*TRUTH).drop(columns="action"), table(*TRUTH), FormatError, "submission, header: no column action"),
        (table(*TRUTH), table(*TRUTH).drop(columns="video_id"), FormatError, "solution, header: no column video_id"),
        (table((1, 1, 2, "sniff", 9, 3)), table(*TRUTH), FormatError, "row 0: stop_frame 3 is before start_frame 9"),
        (table((1, 1, 2, "sniff", 0.5, 3)), table(*TRUTH), FormatError, "row 0: start_frame 0.5 is not a frame number"),
        (table((1, 1, 2, "sniff", "a", 3)), table(*TRUTH), FormatError, "row 0: start_frame 'a' is not a frame number"),
        (table((1, 1, 2, "sniff", 0, 1 << 60)), table(*TRUTH), FormatError, "not a plausible frame number"),
        (table((1, None, 2, "sniff", 0, 3)), table(*TRUTH), FormatError, "row 0: blank agent_id"),
        (table(*TRUTH), table(*TRUTH, (7, 1, 2, "sniff", 0, 3)), NotFoundError, "the metadata have no video 7 of solution"),
        (table(*TRUTH), table(), EthobenchError, "the solution has no rows"),
    ],
)
def test_bad_tables(pred, truth, error, message):
    with pytest.raises(error, match=message):
        eb.score(pred, truth, suite="mabe2025", metadata=metadata(ALL))


def test_bad_metadata():
    pred = truth = table(*TRUTH)
    with pytest.raises(EthobenchError, match=r"pass the metadata of the challenge \(train.csv\)"):
        eb.score(pred, truth, suite="mabe2025")
    with pytest.raises(FormatError, match="metadata, header: no column lab_id"):
        eb.score(pred, truth, suite="mabe2025", metadata=metadata(ALL).drop(columns="lab_id"))
    with pytest.raises(EthobenchError, match="behaviors_labeled of video 1 needs entries such as"):
        eb.score(pred, truth, suite="mabe2025", metadata=metadata({1: ("A", ["sniff"])}))
    with pytest.raises(FormatError, match="video 1 differs from an earlier row"):
        eb.score(pred, truth, suite="mabe2025", metadata=pd.concat([metadata(ALL), metadata({1: ("B", [SNIFF])})]))
    with pytest.raises(EthobenchError, match="is an option of suite 'mabe2025', not of 'banos'"):
        eb.score(pred, truth, suite="banos", metadata=metadata(ALL))
    with pytest.raises(EthobenchError, match="scored as it is; omit behaviors=, rate="):
        eb.score(pred, truth, suite="mabe2025", metadata=metadata(ALL), behaviors=["sniff"], rate=30)


def test_an_empty_submission_scores_zero():
    assert score([], TRUTH, ALL)["f1"] == 0


def write(folder: Path) -> list[str]:
    truth = [(1, 1, 2, "sniff", 0, 10), (1, 1, 2, "sniff", 30, 40), (2, 1, 2, "attack", 0, 10)]
    pred = [(1, "mouse1", "mouse2", "sniff", 0, 40), (2, 1, 2, "attack", 0, 10)]
    table(*pred).rename_axis("row_id").to_csv(folder / "submission.csv")
    table(*truth).to_csv(folder / "solution.csv", index=False)
    metadata(ALL).to_csv(folder / "train.csv", index=False)
    return ["score", str(folder / "submission.csv"), str(folder / "solution.csv"), "--suite", "mabe2025"]


def test_command_line(tmp_path: Path):
    command = [*write(tmp_path), "--metadata", str(tmp_path / "train.csv")]
    result = CliRunner().invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["overall"]["f1"] == pytest.approx(5 / 6, abs=1e-12)
    assert content["labs"]["A"]["behaviors"]["sniff"]["f1"] == pytest.approx(2 / 3)
    shown = CliRunner().invoke(app, [*command, "--per", "lab", "--report", str(tmp_path / "report.html")])
    assert shown.exit_code == 0, shown.output
    assert "2 recordings of 2" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert (tmp_path / "report.html").stat().st_size > 1000


def test_command_line_names_the_row_of_an_error(tmp_path: Path):
    command = [*write(tmp_path), "--metadata", str(tmp_path / "train.csv"), "--json"]
    with (tmp_path / "submission.csv").open("a") as file:
        file.write("2,1,mouse1,mouse2,attack,3,20\n")
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0
    assert "video 1: mouse1 has two actions towards mouse2 in frame 3, sniff and attack" in " ".join(
        str(result.exception or "").split()
    ) + (" ".join(result.output.split()))


def test_files_that_are_not_plain_csv_are_read_alike(tmp_path):
    """The fast reader of plain files and the tolerant one give the same table; ids keep leading zeros."""
    rows = [("007", "1", "2", "sniff", 0, 10), ("7", "mouse2", "self", "rear", 5, 9), ("7", "2", "", "dig", 3, 4)]
    header = ("video_id", "agent_id", "target_id", "action", "start_frame", "stop_frame")
    lines = [",".join(map(str, row)) for row in (header, *rows)]
    variants = {
        "plain": "\n".join(lines) + "\n",
        "windows": "\r\n".join(lines),
        "mark": "\ufeff" + "\n".join(lines),
        "blank lines": "\n\n".join(lines) + "\n",
        "blank rows": "\n,,,,,\n".join(lines) + "\n",
        "quotes": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in lines),
        "semicolons": "\n".join(line.replace(",", ";") for line in lines),
        "comment": "# made by hand\n" + "\n".join(lines),
        "more columns": "\n".join(f"x,{line}" for line in lines),
        "floats": "\n".join([lines[0], *(f"{line}.0" for line in lines[1:])]),
    }
    for name, text in variants.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text, encoding="utf-8", newline="")
        table = read_bouts(path)
        cells = [[column[i] for column in (table.video, table.agent, table.target, table.action)] for i in range(len(table))]
        assert cells == [
            ["007", "mouse1", "mouse2", "sniff"],
            ["7", "mouse2", "self", "rear"],
            ["7", "mouse2", "self", "dig"],
        ], name
        assert (table.start.tolist(), table.stop.tolist()) == ([0, 5, 3], [10, 9, 4]), name


def test_errors_of_plain_files_name_the_line(tmp_path):
    path = tmp_path / "solution.csv"
    path.write_text("video_id,agent_id,target_id,action,start_frame,stop_frame\n1,1,2,sniff,0,9\n\n\n1,1,2,sniff,20,9\n")
    with pytest.raises(FormatError, match=r"row 5.*stop_frame 9 is before start_frame 20"):
        read_bouts(path)
    path.write_text("video_id,agent_id,target_id,action,start_frame,stop_frame\n1,1,2,sniff,0,9\n\n1,1,2,,20,29\n")
    with pytest.raises(FormatError, match=r"row 4.*blank action"):
        read_bouts(path)


def test_targets_of_bouts_of_annotations_are_self_unless_another_animal_is_named():
    annotation = eb.Annotation.from_bouts(
        [0, 10, 20, 30], [5, 15, 25, 35], ["sniff"] * 4, ["sniff"], 10, 50, subject=["1", "1", "2", None], target=["2", "1", None, "1"]
    )
    listed = annotation_table({"v": annotation})
    columns = [[names.values[code] for code in names.codes] for names in (listed.agent, listed.target)]
    assert [*zip(*columns, strict=True)] == [("1", "2"), ("1", "self"), ("2", "self"), ("", "1")]


def test_actions_that_overlap_are_named_and_not_those_that_touch():
    rows = [(1, 1, 2, "rear", 0, 5), (1, 1, 2, "attack", 5, 9), (1, 1, 2, "sniff", 5, 12)]
    with pytest.raises(MismatchError, match="in frame 5, attack and sniff"):
        score(rows, TRUTH, {1: ("A", [SNIFF, ATTACK, "mouse1,mouse2,rear"])})


def test_rows_of_the_table_are_numbered():
    scores = eb.score(table(*TRUTH), table(*TRUTH), suite="mabe2025", metadata=metadata({1: ("A", None)}))
    assert scores.table().index.tolist() == [*range(len(scores.table()))]
