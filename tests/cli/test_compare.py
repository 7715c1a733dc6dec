"""`ethobench compare`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ethobench as eb
from tests.cli.running import ethobench as run


def write_study(folder: Path, n: int = 6, n_labeled: int = 6) -> Path:
    """A study of two treatments with two recordings of each animal, human labels of some and model labels of all."""
    random = np.random.default_rng(0)
    lines = ["recording,individual,treatment,sex,litter,rate,annotations,annotator"]
    (folder / "human").mkdir(parents=True)
    (folder / "predicted").mkdir()
    for group, mean in (("saline", 20), ("drug", 40)):
        for k in range(n):
            seconds = int(np.clip(random.normal(mean, 6), 4, 70))
            for day in (1, 2):
                name = f"{group}{k}_{day}"
                for who, length in (("human", seconds + 2 * day), ("predicted", seconds + 2 * day + int(random.integers(4, 8)))):
                    bouts = [[0, 500], [5 * length, 500 + 5 * length], ["groom", "groom"]]
                    annotation = eb.Annotation.from_bouts(*bouts, ["groom", "rear"], rate=10, n_frames=1000)
                    if who == "predicted" or k < n_labeled:
                        eb.write_annotation(annotation, folder / who / f"{name}.csv")
                path = f"human/{name}.csv" if k < n_labeled else ""
                lines.append(f"{name},{group}{k},{group},{'fm'[k % 2]},L{k},10,{path},anna")
    (folder / "recordings.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_table_fits_and_json_equals_python(tmp_path):
    study = write_study(tmp_path / "study")
    result = run("compare", study, "--groups", "treatment", "--csv", tmp_path / "t.csv", "--out", tmp_path / "f.pdf", COLUMNS="80")
    assert result.returncode == 0, result.stderr
    assert "saline 6, drug 6; independent; unit of analysis: individual" in result.stdout
    assert "permutation of groups of individuals (exact)" in " ".join(result.stdout.split())
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (tmp_path / "t.csv").read_text().startswith("measure,behavior,reference,group,")
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    printed = json.loads(run("compare", study, "--groups", "treatment", "--json").stdout)
    assert printed == json.loads(json.dumps(eb.compare_groups(eb.load_dataset(study), "treatment")))


@pytest.mark.slow
def test_model_labels_in_a_folder(tmp_path):
    study = write_study(tmp_path / "study", n=12, n_labeled=5)
    arguments = ("compare", study, "--groups", "treatment", "--labels", study / "human", "--model-labels", study / "predicted")
    result = run(*arguments, "--measure", "share", COLUMNS="80")
    assert result.returncode == 0, result.stderr
    assert "saline 5 labeled of 12" in result.stdout
    assert "half needs more individuals" in " ".join(result.stdout.split()) or "would halve the interval" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    printed = json.loads(run(*arguments, "--measure", "share", "--json").stdout)
    (pair,) = printed["rows"][0]["pairs"]
    assert pair["relative_width"] < 0.8
    assert printed == json.loads(
        run(*(a for a in arguments if a not in ("--labels", study / "human")), "--measure", "share", "--json").stdout
    )


def test_training_recordings_are_a_warning(tmp_path):
    from ethobench.models.audit import LoggedPrediction, hash_file, write_entry

    study = write_study(tmp_path / "study", n=8, n_labeled=4)
    file = study / "predicted" / "drug0_1.csv"
    write_entry(study / "predicted", LoggedPrediction(file.name, hash_file(file), "drug0_1", "m", "x", "recording", "drug0_1", "signals"))
    arguments = ("compare", study, "--groups", "treatment", "--model-labels", study / "predicted", "--measure", "share")
    assert "trained on 1 of the 16 recordings" in " ".join(run(*arguments).stderr.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--groups", "dose"], 1, "no column 'dose'"),
        (["--groups", "treatment", "--labels", "x"], 2, "needs --model-labels"),
        (["--groups", "treatment", "--model-labels", "nowhere"], 1, "neither a file or folder nor an annotator"),
        (["--groups", "treatment", "--correct", "tukey"], 1, "holm, fdr, none"),
        (["--groups", "treatment", "--bin", "thirds"], 1, "--by bin"),
    ],
)
def test_wrong_input(tmp_path, arguments, code, message):
    result = run("compare", write_study(tmp_path / "study"), *arguments)
    assert result.returncode == code
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_strata_pairs_and_several_groups(tmp_path):
    study = write_study(tmp_path / "study")
    by_sex = run("compare", study, "--groups", "treatment", "--by", "sex", "--measure", "share")
    assert by_sex.returncode == 0, by_sex.stderr
    assert "fewer than 5 individuals" in by_sex.stderr
    paired = run("compare", study, "--groups", "treatment", "--pair", "litter", "--measure", "share")
    assert "paired by litter" in paired.stdout
    thirds = run("compare", study, "--groups", "bin", "--bin", "thirds", "--measure", "share", COLUMNS="80")
    assert "p of all groups" in " ".join(thirds.stdout.split())
    assert max(map(len, thirds.stdout.splitlines())) <= 80
