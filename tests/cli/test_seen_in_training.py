"""`train`, `predict`, `view` and `score` on training recordings: the honest predictions come first, the others are marked."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from ethobench import load_dataset, load_model, read_annotation, write_annotation
from ethobench.core.errors import NotFoundError

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]


def ethobench(*arguments: object) -> Result:
    """Run a command in this process, which spares the start of another."""
    from ethobench.cli import app

    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Path:
    """A study of three tags, a model trained with cross-validation, one without, and a new recording."""
    root = tmp_path_factory.mktemp("lab")
    (root / "study").mkdir()
    lines = ["recording,individual,rate,signals,annotations,annotator"]
    *training, unseen = load_dataset("synthetic/tag", individuals=4, seconds=60)
    (root / "new").mkdir()
    for r in (*training, unseen):
        table = np.column_stack([np.arange(r.n_frames) / r.rate, r.signals.values])
        header = ",".join(["time", *r.signals.channels])
        path = root / ("new" if r is unseen else "study") / f"{r.id}.csv"
        np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.6f")
    for r in training:
        write_annotation(next(iter(r.annotations.values())), root / "study" / "labels" / f"{r.id}.csv", "tidy", recording=r.id)
        lines.append(f"{r.id},rat{r.id[-1]},{r.rate:g},{r.id}.csv,labels/{r.id}.csv,me")
    (root / "study" / "recordings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_annotation(next(iter(unseen.annotations.values())), root / "labels" / f"{unseen.id}.csv", "tidy", recording=unseen.id)
    for r in training:
        shutil.copy(root / "study" / "labels" / f"{r.id}.csv", root / "labels")
    ethobench("train", root / "study", "--model", "dt", "--out", root / "model")
    bare = ethobench("train", root / "study", "--model", "dt", "--no-evaluate", "--out", root / "bare")
    assert "there are no out-of-fold predictions" in " ".join(bare.stderr.split())
    return root


def f1(*arguments: object) -> tuple[float, dict]:
    content = json.loads(ethobench("score", *arguments, "--json").stdout)
    return content["overall"]["f1"], content.get("training", {})


def test_train_keeps_out_of_fold_predictions(lab):
    model, data = load_model(lab / "model"), load_dataset(lab / "study")
    assert {*model.out_of_fold} == {r.id for r in data}
    assert sorted(r.fold for r in model.training.recordings) == [0, 1, 2]
    for path in (lab / "model-cv" / "jobs").glob("*/*/job.json"):  # each by a model trained on neither the recording nor its individual
        job = json.loads(path.read_text(encoding="utf-8"))
        individuals = [{data[name].individual for name in job[side]} for side in ("train", "test")]
        assert not individuals[0] & individuals[1]
        for name in job["test"]:
            assert next(r for r in model.training.recordings if r.id == name).fold == job["fold"]
            held_out = next(r for r in _parquet(path.parent) if r.id == name).annotation()
            assert model.out_of_fold[name].annotation == held_out.with_ethogram(model.ethogram)
            assert model.predict(data[name]).annotation != model.out_of_fold[name].annotation
    assert not load_model(lab / "bare").out_of_fold
    assert "with out-of-fold predictions of 3 of them" in (lab / "model" / "CARD.md").read_text(encoding="utf-8")
    assert "no out-of-fold predictions" in (lab / "bare" / "CARD.md").read_text(encoding="utf-8")


def _parquet(folder: Path):
    from ethobench.formats import read_recordings

    return read_recordings(folder / "predictions.parquet", "tidy_parquet", warn=False)


def test_predict_and_score_agree_with_cross_validation(lab, tmp_path):
    done = ethobench("predict", lab / "model", lab / "study", "--out", tmp_path / "p")
    assert "3 of 3 recordings were used to train" in done.stderr
    assert "1 of 3: animal01.csv, " in done.stdout
    assert done.stdout.count("(out-of-fold)") == 3
    ethobench("predict", lab / "model", lab / "study", "--workers", 2, "--out", tmp_path / "by_workers")
    for path in (tmp_path / "p").glob("*.csv"):
        assert (tmp_path / "by_workers" / path.name).read_bytes() == path.read_bytes()
    card = json.loads((lab / "model" / "model.json").read_text(encoding="utf-8"))
    value, training = f1(tmp_path / "p", lab / "study")
    assert value == pytest.approx(card["evaluation"]["scores"]["f1"])
    assert training["seen_in_training"] == []
    done = ethobench("predict", lab / "model", lab / "study", "--in-sample", "--out", tmp_path / "q")
    assert "says nothing about new animals" in done.stderr
    in_sample, training = f1(tmp_path / "q", lab / "study")
    assert in_sample > value + 0.1
    assert training["seen_in_training"] == ["animal01", "animal02", "animal03"]


def test_copies_are_recognized_and_edited_predictions_are_not_attributed_to_the_model(lab, tmp_path):
    shutil.copy(lab / "study" / "animal01.csv", tmp_path / "copy.csv")
    done = ethobench("predict", lab / "bare", tmp_path / "copy.csv", lab / "new", "--out", tmp_path / "p")
    assert "1 of 2 recordings was used to train" in done.stderr
    assert "(seen in training): copy." in done.stderr
    truth = lab / "labels" / "animal01.csv"
    assert f1(tmp_path / "p" / "copy.csv", truth)[1]["seen_in_training"] == ["animal01"]
    ethobench("predict", lab / "bare", lab / "new", "--overwrite", "--out", tmp_path / "p")
    assert f1(tmp_path / "p" / "copy.csv", truth)[1]["seen_in_training"] == ["animal01"]  # the log of earlier files is kept
    write_annotation(read_annotation(truth), tmp_path / "p" / "copy.csv", "tidy", recording="copy", overwrite=True)
    assert f1(tmp_path / "p" / "copy.csv", truth)[1] == {}


def test_score_marks_recordings_used_for_training(lab, tmp_path):
    pred = tmp_path / "p"
    pred.mkdir()
    for path in (lab / "labels").iterdir():
        write_annotation(read_annotation(path).shift(2), pred / path.name, "tidy", recording=path.stem)
    assert "training" not in json.loads(ethobench("score", pred, lab / "labels", "--json").stdout)
    report = tmp_path / "report.html"
    done = ethobench("score", pred, lab / "labels", "--model-card", lab / "model", "--report", report)
    messages = " ".join(done.stderr.split())
    assert "Seen in training: 3 of 4 recordings were used to train model" in messages
    assert "not seen: animal04" in messages
    printed = " ".join(done.stdout.split())
    assert "3 recordings SEEN IN TRAINING" in printed
    assert "1 recording; not seen in training" in printed
    page = report.read_text(encoding="utf-8")
    assert '<p class="warning" role="alert">Seen in training: 3 of 4' in page
    assert "not seen in training: " in page
    _, training = f1(pred, lab / "labels", "--model-card", lab / "model" / "CARD.md")
    assert training["seen_in_training"] == ["animal01", "animal02", "animal03"]
    assert training["unseen"] == ["animal04"]
    alone, fresh = f1(pred / "animal04.csv", lab / "labels" / "animal04.csv", "--model-card", lab / "model")
    assert training["unseen_scores"]["overall"]["f1"] == pytest.approx(alone)
    assert fresh["seen_in_training"] == []
    assert {entry["matched_by"] for name, entry in training["recordings"].items() if name != "animal04"} == {"annotation"}
    with pytest.raises(NotFoundError, match="is not a saved model"):
        ethobench("score", pred, lab / "labels", "--model-card", tmp_path)


def test_the_viewer_prefers_out_of_fold_predictions(lab, tmp_path, monkeypatch):
    from ethobench.app.disagreement import disagreement
    from ethobench.app.opening import open_project
    from ethobench.core import intervals as iv

    monkeypatch.chdir(tmp_path)
    study, model = load_dataset(lab / "study"), load_model(lab / "model")
    honest = open_project([str(lab / "study")], models=[lab / "model"], corrections=tmp_path / "c")
    bare = open_project([str(lab / "study")], models=[lab / "bare"], corrections=tmp_path / "c")
    for entry, in_sample in zip(honest.recordings, bare.recordings, strict=True):
        assert [t.name for t in entry.tracks] == ["me", "model (out-of-fold)"]
        assert [t.name for t in in_sample.tracks] == ["me", "bare (seen in training)"]
        assert "says nothing about new animals" in in_sample.notes[0]
        truth = study[entry.recording.id].annotation()
        held_out = model.out_of_fold[entry.recording.id].annotation.with_ethogram(truth.ethogram)
        assert entry.disagreement == pytest.approx(iv.total(disagreement([truth, held_out])) / entry.n_frames)
        assert entry.track("model (out-of-fold)").prediction is not None
    assert np.mean([e.disagreement for e in honest.recordings]) > 2 * np.mean([e.disagreement for e in bare.recordings])


@pytest.mark.data
def test_rats(data, tmp_path, monkeypatch):
    """On real poses: what the viewer shows and `predict` writes of training recordings is what cross-validation predicted."""
    pytest.importorskip("lightgbm", reason="model boost")
    from ethobench.app.opening import open_project

    monkeypatch.chdir(tmp_path)
    with (data / "rats" / "recordings.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["recording"] in ("01", "02")]
    study = tmp_path / "study"
    study.mkdir()
    shutil.copy(data / "rats" / "ethogram.csv", study)
    for row in rows:
        row.update({column: str(data / "rats" / row[column]) for column in ("signals", "annotations")})
    with (study / "recordings.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    ethobench("train", study, "--model", "boost", "--param", "rounds=20", "--out", "m")
    project = open_project([str(study)], models=[tmp_path / "m"], corrections=tmp_path / "c")
    honest = [entry.disagreement for entry in project.recordings]
    in_sample = ethobench("predict", "m", study, "--in-sample", "--out", "in_sample")
    assert "2 of 2 recordings were used to train m (seen in training): 01, 02" in in_sample.stderr
    ethobench("predict", "m", study, "--out", "p")
    card = json.loads(Path("m", "model.json").read_text(encoding="utf-8"))
    assert f1("p", study)[0] == pytest.approx(card["evaluation"]["scores"]["f1"])
    in_sample_f1, training = f1("in_sample", study)
    assert in_sample_f1 > card["evaluation"]["scores"]["f1"] + 0.2
    assert training["seen_in_training"] == ["01", "02"]
    truths = load_dataset(study)
    for entry, share in zip(project.recordings, honest, strict=True):
        truth = truths[entry.recording.id].annotation()
        predicted = read_annotation(Path("p", f"{entry.recording.id}.csv")).with_ethogram(truth.ethogram)
        codes = predicted.to_codes()
        differ = (codes != truth.to_codes()) & (codes >= 0)  # frames without a tracked animal are not predicted
        assert share == pytest.approx(float(differ.mean()), abs=0.01)
        assert entry.tracks[-1].name == "m (out-of-fold)"
