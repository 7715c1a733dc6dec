"""Options of readers: names, values written as text, and cells of a manifest."""

from __future__ import annotations

import pytest

from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.formats import formats
from ethobench.formats.reader_options import check_options, option_text, options_for, parse_option_pairs, parse_option_text, reader_options


def test_values_are_converted_to_the_type_of_the_option() -> None:
    texts = {"rate": "12.5", "inclusive": "yes", "columns": '{"behavior": "Code"}', "drop": "none", "points": '["a", "b"]', "units": "g"}
    chosen = {"rate": 12.5, "inclusive": True, "columns": {"behavior": "Code"}, "drop": "none", "points": ("a", "b")}
    assert options_for(formats["intervals"], texts) == chosen
    assert options_for(formats["intervals"], chosen) == chosen
    assert options_for(formats["labeled_signals"], {"label": "3", "split": "none", "id": "none"}) == {
        "label": "3",
        "split": None,
        "id": "none",
    }
    assert options_for(formats["bebe_predictions"], {"behaviors": "rest, run"}) == {"behaviors": ("rest", "run")}
    assert options_for(formats["bebe"], {"label": "x"}) == {}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rate", "fast", "interval table: option 'rate' must be a number, got 'fast'"),
        ("inclusive", "perhaps", "option 'inclusive' must be true or false, got 'perhaps'"),
        ("columns", "Code", "option 'columns' must be JSON such as"),
        ("columns", "{Code}", "option 'columns' is not valid JSON"),
    ],
)
def test_values_that_do_not_fit(name: str, text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        options_for(formats["intervals"], {name: text})


def test_unknown_options_are_refused_with_a_suggestion() -> None:
    with pytest.raises(
        ParameterError, match=r"label CSV has no option 'column_'; did you mean 'column'\? Options: rate, behaviors, column"
    ):
        check_options([formats["labels"]], {"column_": "x"})
    with pytest.raises(ParameterError, match=r"no option 'zzz'\. Options: none"):
        check_options([formats["bebe"]], {"zzz": "x"})
    check_options([formats["boris"], formats["labels"]], {"column": "x"})
    assert "column" not in reader_options(formats["boris"])


def test_cells_of_a_manifest() -> None:
    options = {"label": "behaviour", "columns": {"behavior": "Code"}, "inclusive": True}
    cell = option_text(options)
    assert cell == 'label=behaviour;columns={"behavior": "Code"};inclusive=true'
    assert options_for(formats["intervals"], parse_option_text(cell)) == {"columns": {"behavior": "Code"}, "inclusive": True}
    assert parse_option_text(" ; ") == {}
    with pytest.raises(EthobenchError, match="cannot be written to a manifest"):
        option_text({"label": "a;b"})
    for wrong, message in ((["label"], "is not NAME=VALUE"), (["a=1", "a=2"], "set to both '1' and '2'")):
        with pytest.raises(ParameterError, match=message):
            parse_option_pairs(wrong)
