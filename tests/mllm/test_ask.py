"""Asking: once, patiently, within limits; and what it costs."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core.errors import FormatError, ReadWarning
from ethobench.mllm import runner as runner_module
from ethobench.mllm.cache import ReplyCache
from ethobench.mllm.cost import Budget, BudgetError, ModelSpec, PriceTable, estimate_cost, reply_cost
from ethobench.mllm.providers import Access, Provider, ProviderError
from ethobench.mllm.request import Clip, Reply, Request, Text
from ethobench.mllm.retry import RateLimiter, RetryPolicy
from ethobench.mllm.runner import RequestRunner

SPEC = ModelSpec(name="m", input=1.0, output=10.0, frame_tokens=100, second_tokens=0, output_tokens=1000)
GOOD = Reply('{"segments": []}', input_tokens=1_000, output_tokens=100)


class Scripted(Provider):
    """Plays a list of replies and errors, then answers well."""

    name = "scripted"

    def __init__(self, *acts: Reply | ProviderError, spec: ModelSpec = SPEC) -> None:
        super().__init__("m", Access(), spec)
        self.acts, self.asked, self.under_way, self.most_at_once = list(acts), [], 0, 0
        self.lock = threading.Lock()

    def send(self, request: Request, folder: Path) -> Reply:
        with self.lock:
            self.asked.append(request)
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
            act = self.acts.pop(0) if self.acts else GOOD
        time.sleep(0.005)
        with self.lock:
            self.under_way -= 1
        if isinstance(act, ProviderError):
            raise act
        return act


def request(number: int = 0, seconds: float = 10.0, **fields) -> Request:
    clip = Clip(Path(f"v{number}.mp4"), f"digest{number}", 0.0, seconds)
    return Request("scripted", "m", "role", (Text("question"), clip), recording=f"v{number}", max_output_tokens=1000, **fields)


@pytest.fixture
def naps(monkeypatch) -> list[float]:
    """Keep the waits, and do not wait."""
    waits: list[float] = []
    monkeypatch.setattr(runner_module.time, "sleep", waits.append)
    return waits


def test_the_same_question_is_asked_once():
    provider = Scripted()
    first = RequestRunner(provider).send(request())
    again = RequestRunner(provider).send(replace(request(), recording="elsewhere"))
    assert (first.is_cached, again.is_cached, len(provider.asked)) == (False, True, 1)
    assert again.reply == first.reply
    assert (first.dollars, again.dollars) == (0.002, 0.0)


def test_everything_that_matters_makes_another_question():
    base = request()
    clip = base.clips[0]
    others = [
        replace(base, **change) for change in ({"model": "n"}, {"system": "x"}, {"temperature": 1.0}, {"seed": 1}, {"schema": {"a": 1}})
    ]
    others += [replace(base, parts=(Text("other"), clip)), replace(base, parts=(Text("question"), replace(clip, stop=9.0)))]
    others += [replace(base, parts=(Text("question"), replace(clip, digest="else"))), replace(base, provider="else")]
    assert len({base.key, *(other.key for other in others)}) == len(others) + 1
    assert replace(base, parts=(Text("question"), replace(clip, video=Path("moved.mp4")))).key == base.key


def test_transient_errors_are_tried_again_with_growing_waits(naps):
    busy = ProviderError("busy", transient=True)
    provider = Scripted(busy, busy, busy)
    told = []
    asked = RequestRunner(provider, retry_policy=RetryPolicy(initial_delay=1.0), log=told.append).send(request())
    assert asked.reply == GOOD
    waits = [nap for nap in naps if nap > 0.1]
    assert len(waits) == len(told) == 3
    assert all(0.5 * 2**k <= wait <= 2**k for k, wait in enumerate(waits))


def test_what_the_provider_asks_for_is_honoured(naps):
    asked = RequestRunner(Scripted(ProviderError("slow down", transient=True, retry_after=42.0))).send(request())
    assert asked.reply == GOOD
    assert max(naps) >= 41.0
    patient = RequestRunner(Scripted(ProviderError("come back tomorrow", transient=True, retry_after=86_400.0))).send(request(1))
    assert patient.error == "come back tomorrow"


def test_other_errors_are_not_tried_again(naps):
    provider = Scripted(ProviderError("wrong key"), ProviderError("wrong key"))
    asked = RequestRunner(provider).send(request())
    assert (asked.error, len(provider.asked)) == ("wrong key", 1)
    assert asked.reply is None
    weary = RequestRunner(Scripted(*[ProviderError("busy", transient=True)] * 9), retry_policy=RetryPolicy(attempts=3)).send(request())
    assert weary.error == "busy (tried 3 times)"


@given(st.integers(1, 20), st.none() | st.floats(0, 100), st.floats(0, 1))
def test_waits_stay_within_their_bounds(failures, asked, drawn):
    retry_policy = RetryPolicy(initial_delay=0.5, longest=30)
    wait = retry_policy.delay(failures, asked, lambda: drawn)
    assert wait >= (asked or 0)
    assert wait <= max(asked or 0, 30)


def test_no_more_than_allowed_are_under_way():
    provider = Scripted()
    found = list(RequestRunner(provider, max_concurrent=3).send_all([request(k) for k in range(20)]))
    assert len(found) == 20
    assert 1 < provider.most_at_once <= 3


def test_the_pace_is_kept(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(runner_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(runner_module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    pace = RateLimiter(max_per_minute=30)
    times = []
    for _ in range(4):
        pace.wait()
        times.append(now[0])
    assert times == pytest.approx([100, 102, 104, 106])
    pace.hold(10)
    pace.wait()
    assert now[0] == pytest.approx(116)


def test_a_budget_is_never_exceeded():
    """Each question may cost up to 0.011 (1,000 + about 3 tokens in, 1,000 out), and does cost 0.002."""
    provider = Scripted()
    budget = Budget(0.05)
    found = []
    asking = RequestRunner(provider, budget=budget, max_concurrent=4).send_all([request(k) for k in range(100)])
    with pytest.raises(BudgetError, match=r"stopped before the limit: the next question may cost up to \$0.011"):
        found.extend(asking)
    assert budget.spent == pytest.approx(0.002 * len(provider.asked))
    assert 0.05 - 0.0111 < budget.spent <= 0.05
    assert len(found) == len(provider.asked)


def test_lost_answers_count_in_full_and_refused_ones_do_not(naps):
    lost = ProviderError("timed out", transient=True, billed=True)
    most = estimate_cost([request()], SPEC).max_dollars
    budget = Budget(1.0)
    RequestRunner(Scripted(lost, ProviderError("busy", transient=True)), budget=budget).send(request())
    assert budget.spent == pytest.approx(most + 0.002)


def test_a_limit_needs_a_price():
    unpriced = SPEC.model_copy(update={"input": None})
    with pytest.raises(BudgetError, match="no price is known"):
        RequestRunner(Scripted(spec=unpriced), budget=Budget(1.0)).send(request())
    assert RequestRunner(Scripted(spec=unpriced)).send(request()).dollars is None


def test_an_answer_with_one_changed_character_is_put_aside_and_asked_again(tmp_path):
    cache = ReplyCache(tmp_path)
    runner = RequestRunner(Scripted(Reply("from 1 s to 2 s", raw={"parts": [1, 2.5, None]}), GOOD), cache)
    runner.send(request())
    path = cache.path(request().key)
    path.write_text(path.read_text(encoding="ascii").replace("from 1 s", "from 7 s"), encoding="ascii")
    with pytest.warns(ReadWarning, match="changed since it was kept"):
        assert runner.send(request()).reply == GOOD
    assert cache.get(request()) == GOOD
    assert path.with_suffix(".damaged").exists()


def test_answers_of_earlier_versions_are_accepted_with_a_note(tmp_path):
    cache = ReplyCache(tmp_path)
    path = cache.put(request(), GOOD)
    content = json.loads(path.read_text(encoding="ascii"))
    del content["sha256"]
    path.write_text(json.dumps(content), encoding="ascii")
    with pytest.warns(ReadWarning, match="without checksums"):
        assert cache.get(request()) == GOOD
    assert cache.get(request()) == GOOD  # told once


def test_answers_are_kept_before_they_are_read_and_damaged_ones_put_aside(tmp_path):
    cache = ReplyCache(tmp_path)
    odd = Reply("\ud800 not JSON \x00", raw={"x": "\udfff"})
    runner = RequestRunner(Scripted(odd), cache)
    runner.send(request())
    path = cache.path(request().key)
    assert cache.get(request()) == odd
    assert json.loads(path.read_text(encoding="ascii"))["question"]["parts"][0] == {"text": "question"}
    path.write_text('{"reply": {"text"', encoding="utf-8")
    with pytest.warns(ReadWarning, match="put aside"):
        assert cache.get(request()) is None
    assert path.with_suffix(".damaged").exists()
    assert runner.send(request()).reply == GOOD
    assert not [p for p in tmp_path.rglob(".*") if p.is_file()]


def test_what_was_cut_off_is_asked_again_only_if_wished():
    provider = Scripted(replace(GOOD, finish="length"))
    assert RequestRunner(provider).send(request()).reply.finish == "length"
    assert RequestRunner(provider).send(request()).is_cached
    assert RequestRunner(provider, retry_incomplete=True).send(request()).reply.finish == "stop"
    assert len(provider.asked) == 2


def test_estimates_follow_the_video_and_the_table():
    told = estimate_cost([request(seconds=100), request(seconds=200)], SPEC)
    assert told.requests == 2
    assert 300 * 100 < told.input_tokens < 300 * 100 + 100
    assert told.max_dollars == pytest.approx((told.input_tokens * 1.0 + 2 * 1000 * 10.0) / 1e6)
    assert told.dollars <= told.max_dollars
    halved = estimate_cost([request(seconds=100)], SPEC.model_copy(update={"batch": 0.5}), batch=True)
    assert halved.dollars == pytest.approx(0.5 * estimate_cost([request(seconds=100)], SPEC).dollars)
    assert estimate_cost([request()], SPEC.model_copy(update={"output": None})).dollars is None


def test_long_prompts_cost_what_they_cost():
    spec = PriceTable().lookup("gemini", "gemini-2.5-pro")
    assert spec.dollars(100_000, 1_000) == pytest.approx(0.125 + 0.01)
    assert spec.dollars(300_000, 1_000) == pytest.approx(0.75 + 0.015)
    assert reply_cost(Reply("", input_tokens=100_000, output_tokens=1_000), spec, batch=True) == pytest.approx(0.0675)


def test_prices_are_found_by_the_longest_name_and_overridden_by_the_users(tmp_path):
    prices = PriceTable()
    assert prices.lookup("gemini", "gemini-2.5-flash-lite-001").output == 0.4
    assert prices.lookup("gemini", "gemini-2.5-flash").output == 2.5
    assert prices.lookup("openai", "qwen-vl-max").output_tokens == 8192
    unknown = prices.lookup("gemini", "gemini-9")
    assert (unknown.name, unknown.is_priced, unknown.frame_tokens) == ("gemini-9", False, 258)
    own = tmp_path / "prices.toml"
    own.write_text('[[model]]\nname = "gemini-9"\ninput = 7\noutput = 8\n', encoding="utf-8")
    assert PriceTable(own).lookup("gemini", "gemini-9").input == 7
    for text, told in (("[[model]]\nname = 'x'\nprice = 3", "extra inputs"), ("[[model", "not valid TOML")):
        own.write_text(text, encoding="utf-8")
        with pytest.raises(FormatError, match=told):
            PriceTable(own)
    with pytest.raises(FormatError, match="no such table"):
        PriceTable(tmp_path / "nope.toml")


def test_the_table_is_dated():
    prices = PriceTable()
    assert all(spec.date and spec.source and spec.is_priced for spec in prices.models.values())
