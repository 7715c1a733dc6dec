"""Batches: written, handed in once, waited for, collected, whatever dies in between."""

from __future__ import annotations

import json

import pytest

from ethobench import Recording
from ethobench.mllm.annotate import assign, make_provider, read_answers
from ethobench.mllm.ask import Asker, Patience
from ethobench.mllm.batch import Batcher
from ethobench.mllm.cost import Budget, BudgetError
from ethobench.mllm.providers import Access, ProviderError
from ethobench.mllm.session import ask_about
from ethobench.mllm.settings import Settings
from ethobench.mllm.task import load_task
from tests.mllm.outcomes import MODELS, STUBS
from tests.mllm.stubs import Block, Fail, Say

pytestmark = pytest.mark.slow

GOOD = '{"segments": [{"segment_number": 1, "start_time": "00:00", "end_time": "00:03", "behavior": "attack"}]}'


class Killed(BaseException):
    """Stands for the end of the process."""


def prepared(provider, stub, video, count=3, **options):
    whom = make_provider(provider, MODELS[provider], Access(base_url=stub.url, timeout=5, poll=0.01))
    asker = Asker(whom, patience=Patience(attempts=3, first=0.01), **options)
    task = load_task("calms21")
    assignments = [assign(Recording(f"v{k}", video=video), task, whom, Settings(fps=1), draw=k) for k in range(count)]
    return asker, assignments


@pytest.mark.parametrize("provider", STUBS)
def test_a_batch_from_end_to_end(provider, short):
    with STUBS[provider](Say(GOOD), Fail(429), Block()) as stub:
        asker, assignments = prepared(provider, stub, short)
        told = []
        found = {
            a.recording: read_answers(a, asked)[1]
            for a, asked in ask_about(assignments, Batcher(asker, poll=0.01, tell=told.append).ask_all)
        }
        assert [found[f"v{k}"].state for k in range(3)] == ["well-formed", "failed", "failed"]
        assert "429" in found["v1"].reasons[0]
        assert len(stub.batches) == 1
        facts = asker.provider.facts
        assert asker.budget.spent == pytest.approx(2 * facts.dollars(1000, 250, batch=True))
        written = next((asker.cache.root / "batches").glob("*/questions.jsonl")).read_text(encoding="ascii").splitlines()
        assert [json.loads(line).get("key") or json.loads(line)["custom_id"] for line in written] == [
            a.requests[0].key for a in assignments
        ]
        asked_before = len(stub.questions)
        ((_, (again,)),) = ask_about(assignments[:1], Batcher(asker, poll=0.01).ask_all)
        assert again.is_cached
        assert (len(stub.questions), len(stub.batches)) == (asked_before, 1)
        list(Batcher(asker, poll=0.01).ask_all([assignments[1].requests[0]]))  # the one that failed is handed in anew
        assert len(stub.batches) == 2


@pytest.mark.parametrize("provider", STUBS)
@pytest.mark.parametrize("moment", ["written", "handed in", "polling", "collecting"])
def test_a_batch_is_handed_in_once_whatever_dies(provider, moment, short, monkeypatch):
    with STUBS[provider](always=Say(GOOD)) as stub:
        stub.batch_is_done = moment == "collecting"
        asker, assignments = prepared(provider, stub, short)
        requests = [a.requests[0] for a in assignments]

        def die(*_: object) -> None:
            raise Killed

        submit, put, state = asker.provider.submit_batch, asker.cache.put, asker.provider.batch_state
        with monkeypatch.context() as patch:
            if moment == "written":
                patch.setattr(asker.provider, "find_batch", die)
            elif moment == "handed in":
                patch.setattr(asker.provider, "submit_batch", lambda *a: die(submit(*a)))
            elif moment == "polling":
                patch.setattr(asker.provider, "batch_state", lambda name: die() if stub.polls else state(name))
            else:
                patch.setattr(asker.cache, "put", lambda *a: die(put(*a)))
            with pytest.raises(Killed):
                list(Batcher(asker, poll=0.01).ask_all(requests))
        assert len(stub.batches) == (0 if moment == "written" else 1)
        stub.batch_is_done = True
        resumed, _ = prepared(provider, stub, short)
        found = list(Batcher(resumed, poll=0.01).ask_all(requests))
        assert len(stub.batches) == 1
        assert {one.request.key for one in found} == {r.key for r in requests}
        assert all(one.reply is not None for one in found)


@pytest.mark.parametrize("provider", STUBS)
def test_a_whole_batch_must_fit_the_budget(provider, short):
    with STUBS[provider]() as stub:
        asker, assignments = prepared(provider, stub, short, budget=Budget(0.0001))
        with pytest.raises(BudgetError, match="stopped before the limit"):
            list(Batcher(asker).ask_all([a.requests[0] for a in assignments]))
        assert not stub.batches
        assert not stub.files


def test_not_everybody_takes_batches():
    with pytest.raises(ProviderError, match="chance takes no batches"):
        Batcher(Asker(make_provider("chance")))
