"""Prices and the cost estimate."""

from __future__ import annotations

import pytest

from ethobench.core.errors import FormatError
from ethobench.mllm.cost import PriceTable, estimate_cost, reply_cost
from ethobench.mllm.request import Reply
from tests.mllm.scripted import SPEC, make_request


def test_the_estimate_depends_on_the_video_and_the_price():
    estimate = estimate_cost([make_request(seconds=100), make_request(seconds=200)], SPEC)
    assert estimate.requests == 2
    assert 300 * 100 < estimate.input_tokens < 300 * 100 + 100
    assert estimate.max_dollars == pytest.approx((estimate.input_tokens * 1.0 + 2 * 1000 * 10.0) / 1e6)
    assert estimate.dollars <= estimate.max_dollars
    batch = estimate_cost([make_request(seconds=100)], SPEC.model_copy(update={"batch": 0.5}), batch=True)
    assert batch.dollars == pytest.approx(0.5 * estimate_cost([make_request(seconds=100)], SPEC).dollars)
    assert estimate_cost([make_request()], SPEC.model_copy(update={"output": None})).dollars is None


def test_long_prompts_have_their_own_price():
    spec = PriceTable().lookup("gemini", "gemini-2.5-pro")
    assert spec.dollars(100_000, 1_000) == pytest.approx(0.125 + 0.01)
    assert spec.dollars(300_000, 1_000) == pytest.approx(0.75 + 0.015)
    assert reply_cost(Reply("", input_tokens=100_000, output_tokens=1_000), spec, batch=True) == pytest.approx(0.0675)


def test_prices_are_looked_up_by_the_longest_name_and_overridden_by_the_user(tmp_path):
    prices = PriceTable()
    assert prices.lookup("gemini", "gemini-2.5-flash-lite-001").output == 0.4
    assert prices.lookup("gemini", "gemini-2.5-flash").output == 2.5
    assert prices.lookup("openai", "qwen-vl-max").output_tokens == 8192
    unlisted = prices.lookup("gemini", "gemini-9")
    assert (unlisted.name, unlisted.is_priced, unlisted.frame_tokens) == ("gemini-9", False, 258)
    path = tmp_path / "prices.toml"
    path.write_text('[[model]]\nname = "gemini-9"\ninput = 7\noutput = 8\n', encoding="utf-8")
    assert PriceTable(path).lookup("gemini", "gemini-9").input == 7
    for text, message in (("[[model]]\nname = 'x'\nprice = 3", "extra inputs"), ("[[model", "not valid TOML")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FormatError, match=message):
            PriceTable(path)
    with pytest.raises(FormatError, match="no such price file"):
        PriceTable(tmp_path / "nope.toml")


def test_all_prices_have_a_date_and_a_source():
    assert all(spec.date and spec.source and spec.is_priced for spec in PriceTable().models.values())
