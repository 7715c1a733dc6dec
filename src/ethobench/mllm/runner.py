"""X"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError
from ethobench.mllm.cache import AnswerCache, write_json
from ethobench.mllm.cost import Budget, BudgetError, estimate, reply_cost
from ethobench.mllm.providers import Provider, ProviderError
from ethobench.mllm.providers.base import DONE, FAILED_BATCH
from ethobench.mllm.request import Reply, Request
from ethobench.mllm.retry import RateLimiter, RetryPolicy, call_with_retries


@dataclass(frozen=True)
class RequestResult:
    """What came of a question.

    Attributes
    ----------
    request : Request
    reply : Reply, optional
    error : str
        Why there is no reply.
    dollars : float, optional
        What it cost now: 0 from the cache, None where not known.
    is_cached : bool
    """

    request: Request
    reply: Reply | None = None
    error: str = ""
    dollars: float | None = 0.0
    is_cached: bool = False


class RequestRunner:
    """Asks a provider; answers that are known already are not asked for again.

    Parameters
    ----------
    provider : Provider
    cache : AnswerCache
    retry_policy : RetryPolicy
    budget : Budget
    max_concurrent : int
        Questions under way at the same time.
    max_per_minute : float, optional
        Most questions in a minute.
    again : bool
        Ask again where the known answer was cut off or withheld.
    log : callable
        Is handed a line when something goes wrong that is tried again.
    """

    def __init__(
        self,
        provider: Provider,
        cache: AnswerCache | None = None,
        *,
        retry_policy: RetryPolicy | None = None,
        budget: Budget | None = None,
        max_concurrent: int = 4,
        max_per_minute: float | None = None,
        retry_incomplete: bool = False,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.provider, self.cache = provider, cache or AnswerCache()
        self.retry_policy, self.budget = retry_policy or RetryPolicy(), budget or Budget()
        self.max_concurrent, self.retry_incomplete, self.log = max_concurrent, again, log
        self._limiter = RateLimiter(max_per_minute)

    def cached_reply(self, request: Request) -> Reply | None:
        """Return the answer that is known already."""
        if self.provider.is_free:
            return None
        reply = self.cache.get(request)
        return None if reply is not None and self.retry_incomplete and reply.finish != "stop" else reply

    def send(self, request: Request) -> RequestResult:
        """Ask one question, again and again where that may help.

        Raises
        ------
        BudgetError
            Before the limit would be exceeded.
        """
        known = self.cached_reply(request)
        if known is not None:
            return RequestResult(request, known, is_cached=True)
        with tempfile.TemporaryDirectory(prefix="ethobench-") as folder:
            for failures in range(1, self.retry_policy.attempts + 1):
                try:
                    return self._attempt(request, Path(folder))
                except ProviderError as error:
                    waits = self.retry_policy.delay(failures, error.retry_after)
                    if not error.transient or failures == self.retry_policy.attempts or (error.retry_after or 0) > self.retry_policy.max_dollars:
                        told = f" (tried {failures} times)" if failures > 1 else ""
                        return RequestResult(request, error=f"{error}{told}", dollars=None if error.billed else 0.0)
                    if error.retry_after:
                        self._limiter.hold(error.retry_after)
                    self.log(f"{request.recording}: {error}; once more in {waits:.1f} s")
                    time.sleep(waits)
                except BudgetError:
                    raise
                except EthobenchError as error:  # the video itself is at fault
                    return RequestResult(request, error=str(error))
        raise AssertionError("unreachable")

    def send_all(self, requests: Sequence[Request]) -> Iterator[RequestResult]:
        """Ask many questions and yield what comes of them, as it comes.

        When the budget is used up, questions under way are waited for and no other is begun.
        """
        with ThreadPoolExecutor(self.max_concurrent) as pool:
            futures = [pool.submit(self.send, request) for request in requests]
            stop: BudgetError | None = None
            try:
                for future in as_completed(futures):
                    if future.cancelled():
                        continue
                    try:
                        yield future.result()
                    except BudgetError as error:
                        stop = stop or error
                        for waiting in futures:
                            waiting.cancel()
            finally:
                for waiting in futures:
                    waiting.cancel()
        if stop is not None:
            raise stop

    def _attempt(self, request: Request, folder: Path) -> RequestResult:
        spec = self.provider.spec
        reserved = self.budget.reserve(0.0 if self.provider.is_free else estimate([request], spec).max_dollars)
        spent: float | None = 0.0
        try:
            if not self.provider.is_free:
                self._limiter.wait()
            reply = self.provider.send(request, folder)
            if not self.provider.is_free:
                self.cache.put(request, reply)
            spent = 0.0 if self.provider.is_free else reply_cost(reply, spec)
        except ProviderError as error:
            spent = None if error.billed else 0.0
            raise
        finally:
            self.budget.settle(reserved, spent)
        return RequestResult(request, reply, dollars=spent)


SUBMITTING, SUBMITTED, COLLECTED, BATCH_FAILED = "handing in", "handed in", "collected", "failed"


class BatchRunner:
    """Asks through batches, with the cache and the budget of an `RequestRunner`.

    What is known of a batch lies beside the answers, in ``batches/<label>/``: ``questions.jsonl`` as it was handed in, and
    ``batch.json`` with its state, written before and after every step. So a batch is handed in once, whatever dies.

    Parameters
    ----------
    runner : RequestRunner
    poll : float
        Seconds between looks.
    log : callable
    """

    def __init__(self, runner: RequestRunner, *, poll: float = 30.0, log: Callable[[str], None] = lambda _: None) -> None:
        self.runner, self.poll, self.log = runner, poll, log
        self.root = runner.cache.root / "batches"
        if not runner.provider.can_batch:
            raise ProviderError(f"{runner.provider.name} takes no batches")

    def send_all(self, requests: Sequence[Request]) -> Iterator[RequestResult]:
        """Ask many questions and yield what came of them; open batches that hold some of them are waited for first."""
        wanted = {request.key: request for request in requests}
        for key in list(wanted):
            known = self.runner.cached_reply(wanted[key])
            if known is not None:
                yield RequestResult(wanted.pop(key), known, is_cached=True)
        for folder, kept in self._open():
            mine = {key: wanted.pop(key) for key in kept["keys"] if key in wanted}
            if mine:
                yield from self._finish(folder, kept, mine)
        if wanted:
            folder, kept = self._write(wanted)
            yield from self._finish(folder, kept, wanted)

    def _open(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted(self.root.glob("*/batch.json")):
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["state"] in (SUBMITTING, SUBMITTED) and kept["provider"] == repr(self.runner.provider):
                yield path.parent, kept

    def _write(self, wanted: dict[str, Request]) -> tuple[Path, dict[str, Any]]:
        """Write the batch file; videos are uploaded on the way."""
        provider = self.runner.provider
        most = estimate(wanted.values(), provider.spec, batch=True).max_dollars
        self.runner.budget.settle(self.runner.budget.reserve(most), 0.0)  # a batch cannot be stopped halfway, so all of it must fit
        digest = hashlib.blake2b(" ".join(sorted(wanted)).encode(), digest_size=8).hexdigest()
        number = 1 + len(list(self.root.glob(f"ethobench-{digest}-*/batch.json")))
        label = f"ethobench-{digest}-{number}"
        folder = self.root / label
        folder.mkdir(parents=True, exist_ok=True)
        lines = folder / "questions.jsonl"
        partial = lines.with_suffix(".part")
        with tempfile.TemporaryDirectory(prefix="ethobench-") as scratch, partial.open("w", encoding="ascii") as file:
            for place, request in enumerate(wanted.values(), start=1):
                file.write(call_with_retries(self.runner.retry_policy, provider.batch_line, request, Path(scratch)) + "\n")
                self.log(f"batch {label}: {place} of {len(wanted)} questions written")
        partial.replace(lines)
        kept = {"label": label, "provider": repr(provider), "keys": list(wanted), "state": SUBMITTING, "name": ""}
        write_json(folder / "batch.json", kept)
        return folder, kept

    def _finish(self, folder: Path, kept: dict[str, Any], wanted: dict[str, Request]) -> Iterator[RequestResult]:
        """Hand a batch in if that was not done, wait for it and collect its answers."""
        provider = self.runner.provider
        if kept["state"] == SUBMITTING:
            name = call_with_retries(self.runner.retry_policy, self._hand_in, folder / "questions.jsonl", kept["label"])
            kept = {**kept, "name": name, "state": SUBMITTED}
            write_json(folder / "batch.json", kept)
            self.log(f"batch {kept['label']} handed in as {name}")
        else:
            self.log(f"batch {kept['label']} was handed in before as {kept['name']}; waiting for it")
        state, told = call_with_retries(self.runner.retry_policy, provider.batch_state, kept["name"])
        while state not in (DONE, FAILED_BATCH):
            time.sleep(self.poll)
            state, told = call_with_retries(self.runner.retry_policy, provider.batch_state, kept["name"])
            self.log(f"batch {kept['name']}: {told}")
        if state == FAILED_BATCH:
            write_json(folder / "batch.json", {**kept, "state": BATCH_FAILED, "told": told})
            yield from (RequestResult(request, error=f"the batch came to nothing: {told}") for request in wanted.values())
            return
        yield from self._collect(kept["name"], dict(wanted))
        write_json(folder / "batch.json", {**kept, "state": COLLECTED})

    def _hand_in(self, lines: Path, label: str) -> str:
        """Hand a batch in, unless it arrived at an attempt of which that was not known."""
        return self.runner.provider.find_batch(label) or self.runner.provider.submit_batch(lines, label)

    def _collect(self, name: str, waiting: dict[str, Request]) -> Iterator[RequestResult]:
        provider = self.runner.provider
        for key, answer in call_with_retries(self.runner.retry_policy, lambda: list(provider.batch_replies(name))):
            request = waiting.pop(key, None)
            if request is None:
                continue  # a question of the batch that nobody asks now
            if isinstance(answer, ProviderError):
                yield RequestResult(request, error=str(answer))
                continue
            self.runner.cache.put(request, answer)
            dollars = reply_cost(answer, provider.spec, batch=True)
            self.runner.budget.settle(0.0, dollars)
            yield RequestResult(request, answer, dollars=dollars)
        yield from (RequestResult(request, error=f"batch {name} holds no answer to this question") for request in waiting.values())
