"""Checking a study: all problems at once, and a summary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, write_annotation
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.datasets import load_dataset
from ethobench.datasets.study_check import check_study, summarize_study

N = 100


@pytest.fixture
def study(tmp_path) -> Path:
    """Two recordings of a tag, annotated by one person."""
    for i, name in enumerate(("m1", "m2")):
        samples = "\n".join(f"{k / 10},{np.sin(k):.3f},{i}" for k in range(N))
        (tmp_path / f"{name}.csv").write_text(f"time,AccX,AccY\n{samples}\n", encoding="utf-8")
        labels = Annotation.from_frames(np.arange(N) // 25 % 2, Ethogram(["rest", "run"]), 10)
        write_annotation(labels, tmp_path / f"{name}_labels.csv", "tidy")
    write_manifest(tmp_path, "m1,a,10,m1.csv,m1_labels.csv,anna", "m2,b,10,m2.csv,m2_labels.csv,anna")
    return tmp_path


def write_manifest(folder: Path, *rows: str, header: str = "recording,individual,rate,signals,annotations,annotator") -> None:
    (folder / "recordings.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def test_a_valid_study_is_summarized(study):
    result = check_study(study)
    assert result.is_valid
    assert summarize_study(result.dataset) == {
        "recordings": 2,
        "individuals": 2,
        "with_signals": 2,
        "with_features": 0,
        "with_video": 0,
        "frames": 2 * N,
        "seconds": 20.0,
        "rates": [{"rate": 10.0, "recordings": 2}],
        "annotators": {"anna": 2},
        "behaviors": ["rest", "run"],
        "bouts": {"anna": {"rest": 4, "run": 4}},
    }
    assert result.to_dict()["valid"]
    assert result.warnings == ("2 individuals; confidence intervals need at least 5",)


def test_problems_of_header_rows_and_files_are_listed_together(study):
    (study / "m1_labels.csv").write_text("nothing that anyone can read", encoding="utf-8")
    long = Annotation.from_frames(np.zeros(2 * N, dtype=int), Ethogram(["rest", "run"]), 10)
    write_annotation(long, study / "long.csv", "tidy")
    write_manifest(
        study,
        "m1,a,10,m1.csv,m1_labels.csv,anna",
        "m2,b,ten,m2.cvs,m2_labels.csv,anna",
        "m3,c,10,m1.csv,long.csv,anna",
        "m4,d,10,m2.csv,m2_labels.csv,anna",
        header="recording,animal,rate,signals,annotations,rater",
    )
    result = check_study(study)
    by_location = [(problem.location, problem.message) for problem in result.problems]
    assert [location for location, _ in by_location] == ["header", "header", "row 3", "row 3", "row 2", "row 4"]
    texts = [message for _, message in by_location]
    assert texts[:2] == [
        "column 'animal' is not known; did you mean 'individual'?",
        "column 'rater' is not known; did you mean 'annotator'?",
    ]
    assert texts[2] == "rate must be a positive number, got 'ten'"
    assert texts[3] == "signals: m2.cvs does not exist; did you mean m2.csv?"
    assert "m1_labels.csv" in texts[4]
    assert f"labels for {2 * N} frames, but signals for {N}" in texts[5]
    assert [r.id for r in result.dataset] == ["m4"]


@pytest.mark.parametrize(
    ("text", "location", "message"),
    [
        ("recording,rate,rate\nm1,1,2\n", "header", "duplicate columns: rate"),
        ("a,b\n1,2\n", "header", "no column 'recording'"),
        ("", "recordings.csv", "the file is empty"),
        ("recording,annotations\nm1,\n", "m1", "has neither signals nor annotations nor a video"),
    ],
)
def test_manifests_that_cannot_be_read(study, text, location, message):
    (study / "recordings.csv").write_text(text, encoding="utf-8")
    (problem,) = check_study(study).problems
    assert problem.location == location
    assert message in problem.message


def test_an_ethogram_with_a_mistake_is_one_problem(study):
    (study / "ethogram.csv").write_text("behavior\nrest\nrest\n", encoding="utf-8")
    assert [str(problem) for problem in check_study(study).problems] == ["ethogram.csv: row 3: duplicate behavior 'rest'"]


def test_what_limits_a_study_is_a_warning(study):
    write_manifest(study, "m1,a,,,m1_labels.csv,anna", "m2,a,10,m2.csv,,", "m3,a,10,m2.csv,,")
    result = check_study(study)
    assert result.is_valid
    assert result.warnings == (
        "1 of 3 recordings have no signals, so a model cannot use them",
        "2 of 3 recordings have no annotations",
        "there is only one individual, so a model cannot be tested on another one",
        "1 signal files are listed for more than one recording: m2.csv",
    )


def test_a_missing_manifest_names_the_command_that_drafts_it(tmp_path):
    with pytest.raises(FormatError, match=f"`ethobench study make {tmp_path}`"):
        check_study(tmp_path)


@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_every_problem_prevents_loading(study):
    """A study loads exactly if the check has no problems."""
    for rows in (["m1,a,10,m1.csv,m1_labels.csv,anna"], ["m1,a,10,m1.csv,m2.csv,anna"], ["m1,a,20,m1.csv,m1_labels.csv,anna"]):
        write_manifest(study, *rows)
        if check_study(study).is_valid:
            load_dataset(study)
        else:
            with pytest.raises(EthobenchError):
                load_dataset(study)
