"""Batches: written, submitted once, polled and collected, also if the process is killed in between."""

from __future__ import annotations

import json

import pytest

from ethobench import Recording
from ethobench.mllm.annotate import build_requests, create_provider, read_replies, send_requests
from ethobench.mllm.cost import Budget, BudgetError
from ethobench.mllm.providers import Access, ProviderError
from ethobench.mllm.request import RequestSettings
from ethobench.mllm.retry import RetryPolicy
from ethobench.mllm.runner import BatchRunner, RequestRunner
from ethobench.mllm.task import load_task
from tests.mllm.outcomes import MODELS, STUBS
from tests.mllm.stubs import Block, Fail, Say

pytestmark = pytest.mark.slow

GOOD = '{"segments": [{"segment_number": 1, "start_time": "00:00", "end_time": "00:03", "behavior": "attack"}]}'


class Killed(BaseException):
    """The end of the process."""


def prepared(provider_name, stub, video, count=3, **options):
    provider = create_provider(provider_name, MODELS[provider_name], Access(base_url=stub.url, timeout=5, poll=0.01))
    runner = RequestRunner(provider, retry_policy=RetryPolicy(attempts=3, initial_delay=0.01), **options)
    task = load_task("calms21")
    recordings = [build_requests(Recording(f"v{k}", video=video), task, provider, RequestSettings(fps=1), seed=k) for k in range(count)]
    return runner, recordings


@pytest.mark.parametrize("provider_name", STUBS)
def test_a_batch_from_end_to_end(provider_name, short):
    with STUBS[provider_name](Say(GOOD), Fail(429), Block()) as stub:
        runner, recordings = prepared(provider_name, stub, short)
        messages = []
        outcomes = {
            r.recording: read_replies(r, results)[1]
            for r, results in send_requests(recordings, BatchRunner(runner, poll=0.01, log=messages.append).send_all)
        }
        assert [outcomes[f"v{k}"].state for k in range(3)] == ["well-formed", "failed", "failed"]
        assert "429" in outcomes["v1"].reasons[0]
        assert len(stub.batches) == 1
        spec = runner.provider.spec
        assert runner.budget.spent == pytest.approx(2 * spec.dollars(1000, 250, batch=True))
        written = next((runner.cache.root / "batches").glob("*/requests.jsonl")).read_text(encoding="ascii").splitlines()
        assert [json.loads(line).get("key") or json.loads(line)["custom_id"] for line in written] == [a.requests[0].key for a in recordings]
        n_sent = len(stub.questions)
        ((_, (repeated,)),) = send_requests(recordings[:1], BatchRunner(runner, poll=0.01).send_all)
        assert repeated.is_cached
        assert (len(stub.questions), len(stub.batches)) == (n_sent, 1)
        list(BatchRunner(runner, poll=0.01).send_all([recordings[1].requests[0]]))  # the failed request is submitted again
        assert len(stub.batches) == 2


@pytest.mark.parametrize("provider_name", STUBS)
@pytest.mark.parametrize("moment", ["written", "submitted", "polling", "collecting"])
def test_a_batch_is_submitted_once_also_if_killed(provider_name, moment, short, monkeypatch):
    with STUBS[provider_name](always=Say(GOOD)) as stub:
        stub.batch_is_done = moment == "collecting"
        runner, recordings = prepared(provider_name, stub, short)
        requests = [a.requests[0] for a in recordings]

        def die(*_: object) -> None:
            raise Killed

        submit, put, state = runner.provider.submit_batch, runner.cache.put, runner.provider.batch_state
        with monkeypatch.context() as patch:
            if moment == "written":
                patch.setattr(runner.provider, "find_batch", die)
            elif moment == "submitted":
                patch.setattr(runner.provider, "submit_batch", lambda *a: die(submit(*a)))
            elif moment == "polling":
                patch.setattr(runner.provider, "batch_state", lambda name: die() if stub.polls else state(name))
            else:
                patch.setattr(runner.cache, "put", lambda *a: die(put(*a)))
            with pytest.raises(Killed):
                list(BatchRunner(runner, poll=0.01).send_all(requests))
        assert len(stub.batches) == (0 if moment == "written" else 1)
        stub.batch_is_done = True
        resumed, _ = prepared(provider_name, stub, short)
        results = list(BatchRunner(resumed, poll=0.01).send_all(requests))
        assert len(stub.batches) == 1
        assert {one.request.key for one in results} == {r.key for r in requests}
        assert all(one.reply is not None for one in results)


@pytest.mark.parametrize("provider_name", STUBS)
def test_the_complete_batch_must_fit_the_budget(provider_name, short):
    with STUBS[provider_name]() as stub:
        runner, recordings = prepared(provider_name, stub, short, budget=Budget(0.0001))
        with pytest.raises(BudgetError, match="stopped before the maximum cost"):
            list(BatchRunner(runner).send_all([a.requests[0] for a in recordings]))
        assert not stub.batches
        assert not stub.files


def test_providers_without_batches():
    with pytest.raises(ProviderError, match="chance does not support batches"):
        BatchRunner(RequestRunner(create_provider("chance")))
