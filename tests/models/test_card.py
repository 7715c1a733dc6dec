"""What a saved model tells of itself."""

from __future__ import annotations

import json

import pytest

from ethobench import create_model, load_dataset, load_model
from ethobench.core.errors import FormatError
from ethobench.models._card import in_words

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    data = load_dataset("synthetic/tag", individuals=2, seconds=20.0)
    model = create_model("rf", trees=3, seconds=0.5).fit(data)
    model.evaluation = {
        "suite": "ethobench",
        "split": "individual",
        "figures": {"f1": 0.8, "bout_f1": 0.5},
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
    assert in_words({**card, "evaluation": {}}).endswith("does so unless told not to.\n")


def test_files_that_were_changed_are_refused(saved, tmp_path):
    assert load_model(saved).evaluation["figures"] == {"f1": 0.8, "bout_f1": 0.5}
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in saved.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    with (copy / "estimator.skops").open("ab") as file:
        file.write(b"0")
    with pytest.raises(FormatError, match="not the ones that were saved"):
        load_model(copy)
