"""Saved models: the card, checks of the files, format versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ethobench import create_model, load_dataset, load_model
from ethobench.core.errors import FormatError
from ethobench.models.saving import describe_fit, format_card

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    data = load_dataset("synthetic/tag", individuals=2, seconds=20.0)
    model = create_model("rf", trees=3, seconds=0.5).fit(data)
    model.evaluation = {
        "suite": "ethobench",
        "split": "individual",
        "n": 6,
        "unit": "individuals",
        "reason": "",
        "scores": {"f1": 0.8, "bout_f1": 0.5},
        "intervals": {"f1": (0.7, 0.9)},
        "behaviors": {"a|b": {"f1": 0.6}},
        "behavior_intervals": {"a|b": {"f1": (0.5, 0.7)}},
    }
    folder = tmp_path_factory.mktemp("models") / "m"
    model.save(folder)
    return folder


def test_card_has_inputs_scores_and_licence(saved):
    text = (saved / "CARD.md").read_text(encoding="utf-8")
    card = json.loads((saved / "model.json").read_text(encoding="utf-8"))
    assert "`rf` (seconds 0.5" in text
    assert "AccX, AccY, AccZ" in text or ", ".join(card["inputs"]) in text
    assert "n = 6 individuals; in brackets 95 % intervals:" in text
    assert "| all | 0.800 (0.700 to 0.900) | 0.500 |" in text
    assert "| a/b | 0.600 (0.500 to 0.700) | - |" in text
    assert card["digest"] in text
    assert "licence of the training data: MIT" in text
    few = {"n": 2, "unit": "individuals", "reason": "no interval below 5 individuals", "intervals": {"f1": None}, "behavior_intervals": {}}
    withheld = format_card({**card, "evaluation": {**card["evaluation"], **few}})
    assert "n = 2 individuals; no interval below 5 individuals:" in withheld
    assert "| all | 0.800 | 0.500 |" in withheld
    assert format_card({**card, "evaluation": {}}).endswith("trained without cross-validation.\n")


def test_changed_files_are_refused(saved, tmp_path):
    assert load_model(saved).evaluation["scores"] == {"f1": 0.8, "bout_f1": 0.5}
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in saved.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    with (copy / "estimator.skops").open("ab") as file:
        file.write(b"0")
    with pytest.raises(FormatError, match="was changed since the model was saved"):
        load_model(copy)


def test_card_lists_candidates_and_decoders():
    fit_report = {
        "candidates": [{"candidate": "boost", "folds": 3, "seconds": 12.3, "f1": 0.9, "log_loss": 0.1, "weight": 0.5}],
        "decoded": {"f1": 0.91, "bout_f1": 0.8, "tried": 20},
        "notes": ["no time was left for a network"],
    }
    text = "\n".join(describe_fit(fit_report))
    assert "candidate boost: 3 folds, 12 s; on held-out individuals: f1 0.900, log_loss 0.100 (weight 0.5)" in text
    assert "best of 20 decoders: f1 0.910, bout_f1 0.800" in text
    dropped = {"candidate": "tcn", "folds": 1, "seconds": 4.0, "f1": 0.95, "weight": 0.0}  # of fewer individuals, so not comparable
    lines = describe_fit({"candidates": [*fit_report["candidates"], dropped]})
    assert lines[1] == "- candidate tcn: 1 fold, 4 s; on held-out individuals of fewer folds: f1 0.950 (weight 0)"
    assert "note: no time was left" in text
    assert describe_fit({}) == []


def test_unknown_format_versions_are_refused(saved, tmp_path):
    copy = Path(shutil.copytree(saved, tmp_path / "copy"))
    card = json.loads((copy / "model.json").read_text(encoding="utf-8"))
    for version in (1, 99, "2", None):
        (copy / "model.json").write_text(json.dumps({**card, "format_version": version}), encoding="utf-8")
        with pytest.raises(FormatError, match=f"format version {version!r} is not supported, only 2; train the model again"):
            load_model(copy)
