"""Sending requests one by one: cache, retries, concurrency and budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ethobench.mllm import runner as runner_module
from ethobench.mllm.cost import Budget, BudgetError, estimate_cost
from ethobench.mllm.providers import ProviderError
from ethobench.mllm.request import Text
from ethobench.mllm.retry import RetryPolicy
from ethobench.mllm.runner import RequestRunner
from tests.mllm.scripted import GOOD, SPEC, Scripted, make_request


@pytest.fixture
def delays(monkeypatch) -> list[float]:
    """Record the delays instead of waiting."""
    recorded: list[float] = []
    monkeypatch.setattr(runner_module.time, "sleep", recorded.append)
    return recorded


def test_the_same_request_is_sent_once():
    provider = Scripted()
    first = RequestRunner(provider).send(make_request())
    second = RequestRunner(provider).send(replace(make_request(), recording="elsewhere"))
    assert (first.is_cached, second.is_cached, len(provider.sent)) == (False, True, 1)
    assert second.reply == first.reply
    assert (first.dollars, second.dollars) == (0.002, 0.0)


def test_the_key_depends_on_everything_that_may_change_the_answer():
    base = make_request()
    clip = base.clips[0]
    changes = ({"model": "n"}, {"system": "x"}, {"temperature": 1.0}, {"seed": 1}, {"schema": {"a": 1}})
    others = [replace(base, **change) for change in changes]
    others += [replace(base, parts=(Text("other"), clip)), replace(base, parts=(Text("question"), replace(clip, stop=9.0)))]
    others += [replace(base, parts=(Text("question"), replace(clip, digest="else"))), replace(base, provider="else")]
    assert len({base.key, *(other.key for other in others)}) == len(others) + 1
    assert replace(base, parts=(Text("question"), replace(clip, video=Path("moved.mp4")))).key == base.key


def test_transient_errors_are_retried_with_increasing_delays(delays):
    busy = ProviderError("busy", transient=True)
    provider = Scripted(busy, busy, busy)
    messages = []
    result = RequestRunner(provider, retry_policy=RetryPolicy(initial_delay=1.0), log=messages.append).send(make_request())
    assert result.reply == GOOD
    backoffs = [delay for delay in delays if delay > 0.1]
    assert len(backoffs) == len(messages) == 3
    assert all(0.5 * 2**k <= delay <= 2**k for k, delay in enumerate(backoffs))


def test_the_delay_that_the_provider_requests_is_kept(delays):
    result = RequestRunner(Scripted(ProviderError("slow down", transient=True, retry_after=42.0))).send(make_request())
    assert result.reply == GOOD
    assert max(delays) >= 41.0
    too_long = RequestRunner(Scripted(ProviderError("come back tomorrow", transient=True, retry_after=86_400.0))).send(make_request(1))
    assert too_long.error == "come back tomorrow"


def test_other_errors_are_not_retried(delays):
    provider = Scripted(ProviderError("wrong key"), ProviderError("wrong key"))
    result = RequestRunner(provider).send(make_request())
    assert (result.error, len(provider.sent)) == ("wrong key", 1)
    assert result.reply is None
    always_busy = Scripted(*[ProviderError("busy", transient=True)] * 9)
    assert RequestRunner(always_busy, retry_policy=RetryPolicy(attempts=3)).send(make_request()).error == "busy (3 attempts)"


def test_the_number_of_concurrent_requests_is_limited():
    provider = Scripted()
    results = list(RequestRunner(provider, max_concurrent=3).send_all([make_request(k) for k in range(20)]))
    assert len(results) == 20
    assert 1 < provider.max_concurrent <= 3


def test_a_budget_is_never_exceeded():
    """Each request may cost up to 0.011 (1,000 + about 3 input tokens, 1,000 output tokens), and does cost 0.002."""
    provider = Scripted()
    budget = Budget(0.05)
    results = []
    sending = RequestRunner(provider, budget=budget, max_concurrent=4).send_all([make_request(k) for k in range(100)])
    with pytest.raises(BudgetError, match=r"stopped before the maximum cost of \$0.05: the next request may cost up to \$0.011"):
        results.extend(sending)
    assert budget.spent == pytest.approx(0.002 * len(provider.sent))
    assert 0.05 - 0.0111 < budget.spent <= 0.05
    assert len(results) == len(provider.sent)


def test_lost_replies_count_with_their_maximum_cost_and_refused_requests_with_none(delays):
    lost = ProviderError("timed out", transient=True, billed=True)
    max_dollars = estimate_cost([make_request()], SPEC).max_dollars
    budget = Budget(1.0)
    RequestRunner(Scripted(lost, ProviderError("busy", transient=True)), budget=budget).send(make_request())
    assert budget.spent == pytest.approx(max_dollars + 0.002)


def test_a_budget_needs_a_price():
    unpriced = SPEC.model_copy(update={"input": None})
    with pytest.raises(BudgetError, match="this model has no price; add one with prices="):
        RequestRunner(Scripted(spec=unpriced), budget=Budget(1.0)).send(make_request())
    assert RequestRunner(Scripted(spec=unpriced)).send(make_request()).dollars is None


def test_incomplete_replies_are_requested_again_only_with_the_option():
    provider = Scripted(replace(GOOD, finish="length"))
    assert RequestRunner(provider).send(make_request()).reply.finish == "length"
    assert RequestRunner(provider).send(make_request()).is_cached
    assert RequestRunner(provider, retry_incomplete=True).send(make_request()).reply.finish == "stop"
    assert len(provider.sent) == 2
