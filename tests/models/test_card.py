"""What a saved model tells of itself."""

from __future__ import annotations

import json

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
        "scores": {"f1": 0.8, "bout_f1": 0.5},
        "intervals": {"f1": (0.7, 0.9)},
        "behaviors": {"a|b": {"f1": 0.6}},
        "behavior_intervals": {"a|b": {"f1": (0.5, 0.7)}},
    }
    folder = tmp_path_factory.mktemp("models") / "m"
    model.save(folder)
    return folder


def test_the_card_says_what_the_model_is_and_how_good(saved):
    words = (saved / "CARD.md").read_text(encoding="utf-8")
    card = json.loads((saved / "model.json").read_text(encoding="utf-8"))
    assert "`rf` (seconds 0.5" in words
    assert "AccX, AccY, AccZ" in words or ", ".join(card["inputs"]) in words
    assert "| all | 0.800 (0.700 to 0.900) | 0.500 |" in words
    assert "| a/b | 0.600 (0.500 to 0.700) | - |" in words
    assert card["digest"] in words
    assert "licence of the training data: MIT" in words
    few = {"n": 2, "unit": "individuals", "reason": "no interval below 5 individuals", "intervals": {"f1": None}, "behavior_intervals": {}}
    withheld = format_card({**card, "evaluation": {**card["evaluation"], **few}})
    assert "n = 2 individuals; no interval below 5 individuals:" in withheld
    assert "| all | 0.800 | 0.500 |" in withheld
    assert format_card({**card, "evaluation": {}}).endswith("does so unless told not to.\n")


def test_files_that_were_changed_are_refused(saved, tmp_path):
    assert load_model(saved).evaluation["scores"] == {"f1": 0.8, "bout_f1": 0.5}
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in saved.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    with (copy / "estimator.skops").open("ab") as file:
        file.write(b"0")
    with pytest.raises(FormatError, match="not the ones that were saved"):
        load_model(copy)


def test_a_card_tells_what_was_tried():
    account = {
        "candidates": [{"candidate": "boost", "folds": 3, "seconds": 12.3, "f1": 0.9, "log_loss": 0.1, "weight": 0.5}],
        "decoded": {"f1": 0.91, "bout_f1": 0.8, "tried": 20},
        "notes": ["no time was left for a network"],
    }
    told = "\n".join(describe_fit(account))
    assert "tried boost, 3 times in 12 s; on individuals it had not seen: f1 0.900, log_loss 0.100 (weight 0.5)" in told
    assert "decoded by the best of 20 ways: f1 0.910, bout_f1 0.800" in told
    assert "note: no time was left" in told
    assert describe_fit({}) == []
