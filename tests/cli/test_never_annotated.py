"""Behaviors that never occur share one line below the tables of every command; JSON keeps their rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from ethobench import Annotation, Ethogram, Recording, load_dataset, score, write_annotation, write_recordings
from ethobench.cli import app
from ethobench.reports import summarize_scores

pytestmark = pytest.mark.slow

ETHOGRAM = Ethogram(["other", "chase", "bite", "rest", "clinch", "run"], "other")
LINE = "never annotated: chase, clinch"


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def rows_of(text: str) -> set[str]:
    """Return the first words of the rows of a table."""
    return {line.split()[0] for line in text.splitlines() if line.strip() and "annotated:" not in line}


@pytest.fixture
def study(tmp_path):
    """What anna says of four animals, with tags: rest and run. Ben's files have a bite too. Nobody saw a chase or a clinch."""
    root = tmp_path / "study"
    rows = ["recording,individual,rate,signals,annotations,annotator"]
    generator = np.random.default_rng(0)
    (root / "ben").mkdir(parents=True)
    for index in range(4):
        name = f"m{index}"
        codes = np.roll(np.tile(np.repeat([3, 5, 0, 5], 50), 2), 20 * index)
        signal = np.cumsum(generator.normal(size=(400, 2)), axis=0) * 0.01 + codes[:, None]
        table = np.column_stack([np.arange(400) / 10, signal])
        np.savetxt(root / f"{name}.csv", table, delimiter=",", header="time,AccX,AccY", comments="", fmt="%.4f")
        anna = Annotation.from_frames(codes, ETHOGRAM, 10)
        write_annotation(anna, root / f"{name}_labels.csv", "tidy", recording=name)
        ben = Annotation.from_frames(np.where(np.arange(400) < 10, 2, codes), ETHOGRAM, 10)
        write_recordings([Recording(name, annotations={"ben": ben})], root / "ben" / f"{name}.csv", "tidy")
        rows.append(f"{name},{name},10,{name}.csv,{name}_labels.csv,anna")
    (root / "recordings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return root


def test_score(study):
    text = run("score", study / "ben", study)
    assert LINE in text
    assert "predicted but never annotated: bite" in text
    assert {"bite", "rest", "run"} <= rows_of(text)
    assert not {"chase", "clinch"} & rows_of(text)
    assert "chase" in json.loads(run("score", study / "ben", study, "--json"))["behaviors"]
    assert "annotated:" not in run("score", study / "ben", study, "--per", "recording")
    published = run("score", study / "ben", study, "--suite", "banos")
    assert {"chase", "clinch"} <= rows_of(published)
    assert f"{LINE} (the means of suite banos include them)" in published


def test_score_in_columns(study):
    text = run("score", study / "ben", study, "--metrics", "all")
    head = next(line for line in text.splitlines() if line.split()[:1] == ["measure"])
    assert "run" in head.split()
    assert "chase" not in head.split()


def test_agreement_and_budget(study):
    both = (study / "ben", study)
    text = run("agreement", *both)
    assert LINE in text
    assert sum("bite" in line for line in text.splitlines()) == 2  # ben saw it: each two, and together
    assert text.count("chase") == 1
    assert "chase" in {row["behavior"] for row in json.loads(run("agreement", *both, "--json"))["pairs"]}
    text = run("budget", study / "ben")
    assert LINE in text
    assert sum("bite" in line for line in text.splitlines()) == 4
    assert text.count("chase") == 1
    assert len(json.loads(run("budget", study / "ben", "--json"))) == 4 * len(ETHOGRAM)


def test_datasets_show(study):
    text = run("datasets", "show", study)
    assert "never annotated: chase, bite, clinch" in text
    assert not {"chase", "bite", "clinch"} & rows_of(text)


def test_train_card_and_results(study, tmp_path):
    text = run("train", study, "--model", "dt", "--learning-curve", "--workers", 1, "--out", tmp_path / "m")
    assert text.count("never annotated: chase, bite, clinch") == 1
    assert not {"chase", "bite", "clinch"} & rows_of(text)
    card = (tmp_path / "m" / "CARD.md").read_text(encoding="utf-8")
    assert card.startswith("# A model of other, rest, run\n")
    assert "- never annotated in the training data, so never predicted: chase, bite, clinch" in card
    assert "| chase |" not in card
    assert "| run |" in card
    evaluation = json.loads((tmp_path / "m" / "model.json").read_text(encoding="utf-8"))["evaluation"]
    assert evaluation["never_annotated"] == ["chase", "bite", "clinch"]
    assert "chase" in evaluation["behaviors"]
    for table in ("behaviors", "curve"):
        text = run("results", tmp_path / "m-cv", "--table", table)
        assert text.count("never annotated: chase, bite, clinch") == 1
        assert text.count("chase") == 1
        listed = json.loads(run("results", tmp_path / "m-cv", "--table", table, "--json"))
        assert {row["behavior"] for row in listed} == {*ETHOGRAM.names}


@pytest.mark.data
def test_the_rats(data, tmp_path):
    """Their files define eleven behaviors, of which stream S1 shows four."""
    rats = data / "rats"
    for name in ("poses", "annotations"):
        (tmp_path / name).symlink_to(rats / name)
    lines = (rats / "recordings.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "recordings.csv").write_text("\n".join(lines[:3]) + "\n", encoding="utf-8")
    never = "freezing, lateralthreat, keepdown, chase, uprightposture, bite, clinch"
    assert f"never annotated: {never}" in " ".join(run("budget", tmp_path).split())
    study = load_dataset(tmp_path)
    truths = {r.id: r.annotation() for r in study}
    (group,) = summarize_scores({"late": score({n: t.shift(9) for n, t in truths.items()}, study)})["groups"]
    assert group["absent"] == [f"never annotated: {never}"]
    assert sorted(b["color"] for b in group["behaviors"] if b["occurs"] and not b["background"]) == [0, 1, 2]
