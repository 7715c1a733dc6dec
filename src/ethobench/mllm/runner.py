"""Sending of requests: one by one or in batches, with retries, a rate limit, a budget and a cache of replies."""

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
from ethobench.mllm.cache import FORMAT_VERSION, ReplyCache, check_format_version, write_ascii_json
from ethobench.mllm.cost import Budget, BudgetError, estimate_cost, reply_cost
from ethobench.mllm.providers import Provider, ProviderError
from ethobench.mllm.providers.base import BATCH_DONE, BATCH_FAILED
from ethobench.mllm.request import STOP, Reply, Request
from ethobench.mllm.retry import RateLimiter, RetryPolicy, call_with_retries

SUBMITTING, SUBMITTED, COLLECTED, FAILED = "submitting", "submitted", "collected", "failed"


@dataclass(frozen=True)
class RequestResult:
    """The result of sending a request.

    Attributes
    ----------
    request : Request
    reply : Reply, optional
        None if the request failed.
    error : str
        Why there is no reply.
    dollars : float, optional
        Cost in US dollars; 0 if the reply is from the cache, None if unknown.
    is_cached : bool
    """

    request: Request
    reply: Reply | None = None
    error: str = ""
    dollars: float | None = 0.0
    is_cached: bool = False


class RequestRunner:
    """Sends requests to a provider. A request whose reply is in the cache is not sent.

    Parameters
    ----------
    provider : Provider
    cache : ReplyCache
    retry_policy : RetryPolicy
    budget : Budget
    max_concurrent : int
        Maximum number of concurrent requests.
    max_per_minute : float, optional
        Maximum number of requests per minute.
    retry_incomplete : bool
        Send a request again if the cached reply was cut off or withheld.
    log : callable
        Receives a message for each failed attempt that is repeated.
    """

    def __init__(
        self,
        provider: Provider,
        cache: ReplyCache | None = None,
        *,
        retry_policy: RetryPolicy | None = None,
        budget: Budget | None = None,
        max_concurrent: int = 4,
        max_per_minute: float | None = None,
        retry_incomplete: bool = False,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.provider, self.cache = provider, cache or ReplyCache()
        self.retry_policy, self.budget = retry_policy or RetryPolicy(), budget or Budget()
        self.max_concurrent, self.retry_incomplete, self.log = max_concurrent, retry_incomplete, log
        self._limiter = RateLimiter(max_per_minute)

    def cached_reply(self, request: Request) -> Reply | None:
        """Return the reply from the cache; None if there is none. Replies of free providers are not cached."""
        if self.provider.is_free:
            return None
        reply = self.cache.get(request)
        return None if reply is not None and self.retry_incomplete and reply.finish != STOP else reply

    def send(self, request: Request) -> RequestResult:
        """Send a request, with retries.

        Raises
        ------
        BudgetError
            If the request could exceed the budget. It is not sent then.
        """
        cached = self.cached_reply(request)
        if cached is not None:
            return RequestResult(request, cached, is_cached=True)
        with tempfile.TemporaryDirectory(prefix="ethobench-") as folder:
            for failures in range(1, self.retry_policy.attempts + 1):
                try:
                    return self._send_once(request, Path(folder))
                except ProviderError as error:
                    if self.retry_policy.is_final(error, failures):
                        attempts = f" ({failures} attempts)" if failures > 1 else ""
                        return RequestResult(request, error=f"{error}{attempts}", dollars=None if error.billed else 0.0)
                    delay = self.retry_policy.delay(failures, error.retry_after)
                    if error.retry_after:
                        self._limiter.pause(error.retry_after)
                    self.log(f"{request.recording}: {error}; next attempt in {delay:.1f} s")
                    time.sleep(delay)
                except BudgetError:
                    raise
                except EthobenchError as error:  # the video cannot be read
                    return RequestResult(request, error=str(error))
        raise AssertionError("unreachable")

    def send_all(self, requests: Sequence[Request]) -> Iterator[RequestResult]:
        """Send requests concurrently and yield the results in order of completion.

        Raises
        ------
        BudgetError
            If the next request could exceed the budget; after the results of all requests that were sent.
        """
        with ThreadPoolExecutor(self.max_concurrent) as pool:
            futures = [pool.submit(self.send, request) for request in requests]
            budget_error: BudgetError | None = None
            try:
                for future in as_completed(futures):
                    if future.cancelled():
                        continue
                    try:
                        yield future.result()
                    except BudgetError as error:
                        budget_error = budget_error or error
                        for waiting in futures:
                            waiting.cancel()
            finally:
                for waiting in futures:
                    waiting.cancel()
        if budget_error is not None:
            raise budget_error

    def _send_once(self, request: Request, folder: Path) -> RequestResult:
        is_free, spec = self.provider.is_free, self.provider.spec
        reserved = self.budget.reserve(0.0 if is_free else estimate_cost([request], spec).max_dollars)
        spent: float | None = 0.0
        try:
            if not is_free:
                self._limiter.wait()
            reply = self.provider.send(request, folder)
            if not is_free:
                self.cache.put(request, reply)
            spent = 0.0 if is_free else reply_cost(reply, spec)
        except ProviderError as error:
            spent = None if error.billed else 0.0
            raise
        finally:
            self.budget.settle(reserved, spent)
        return RequestResult(request, reply, dollars=spent)


class BatchRunner:
    """Sends requests in batches, with the cache and the budget of a `RequestRunner`.

    The state of a batch is stored in the cache folder, in ``batches/<label>/``: ``requests.jsonl`` is the submitted file, ``batch.json``
    its state, written before and after each step. So a batch is submitted once, even if the process is killed.

    Parameters
    ----------
    runner : RequestRunner
    poll : float
        Seconds between checks of a batch's state.
    log : callable
        Receives a message for each step.
    """

    def __init__(self, runner: RequestRunner, *, poll: float = 30.0, log: Callable[[str], None] = lambda _: None) -> None:
        self.runner, self.poll, self.log = runner, poll, log
        self.root = runner.cache.root / "batches"
        if not runner.provider.can_batch:
            raise ProviderError(f"{runner.provider.name} does not support batches")

    def send_all(self, requests: Sequence[Request]) -> Iterator[RequestResult]:
        """Send requests in one batch and yield the results. Waits first for submitted batches that hold some of the requests."""
        pending = {request.key: request for request in requests}
        for key in list(pending):
            cached = self.runner.cached_reply(pending[key])
            if cached is not None:
                yield RequestResult(pending.pop(key), cached, is_cached=True)
        for folder, batch in self._unfinished_batches():
            in_batch = {key: pending.pop(key) for key in batch["keys"] if key in pending}
            if in_batch:
                yield from self._finish(folder, batch, in_batch)
        if pending:
            folder, batch = self._write(pending)
            yield from self._finish(folder, batch, pending)

    def _unfinished_batches(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted(self.root.glob("*/batch.json")):
            batch = json.loads(path.read_text(encoding="utf-8"))
            check_format_version(path, batch.get("format_version"))
            if batch["state"] in (SUBMITTING, SUBMITTED) and batch["provider"] == repr(self.runner.provider):
                yield path.parent, batch

    def _write(self, requests: dict[str, Request]) -> tuple[Path, dict[str, Any]]:
        """Write the file of a batch; large videos are uploaded here."""
        provider, budget = self.runner.provider, self.runner.budget
        max_dollars = estimate_cost(requests.values(), provider.spec, batch=True).max_dollars
        budget.settle(budget.reserve(max_dollars), 0.0)  # a batch cannot be stopped halfway, so all of it must fit
        digest = hashlib.blake2b(" ".join(sorted(requests)).encode(), digest_size=8).hexdigest()
        number = 1 + len(list(self.root.glob(f"ethobench-{digest}-*/batch.json")))
        label = f"ethobench-{digest}-{number}"
        folder = self.root / label
        folder.mkdir(parents=True, exist_ok=True)
        lines = folder / "requests.jsonl"
        partial = lines.with_suffix(".part")
        with tempfile.TemporaryDirectory(prefix="ethobench-") as scratch, partial.open("w", encoding="ascii") as file:
            for position, request in enumerate(requests.values(), start=1):
                file.write(self._call(provider.batch_line, request, Path(scratch)) + "\n")
                self.log(f"batch {label}: {position} of {len(requests)} requests written")
        partial.replace(lines)
        batch = {"label": label, "provider": repr(provider), "keys": list(requests), "state": SUBMITTING, "name": ""}
        self._write_state(folder, batch)
        return folder, batch

    def _finish(self, folder: Path, batch: dict[str, Any], requests: dict[str, Request]) -> Iterator[RequestResult]:
        """Submit a batch if it is not submitted yet, wait for it and collect the replies."""
        provider = self.runner.provider
        if batch["state"] == SUBMITTING:
            name = self._call(self._submit, folder / "requests.jsonl", batch["label"])
            batch = {**batch, "name": name, "state": SUBMITTED}
            self._write_state(folder, batch)
            self.log(f"batch {batch['label']} submitted as {name}")
        else:
            self.log(f"batch {batch['label']} was already submitted as {batch['name']}; waiting for it")
        state, detail = self._call(provider.batch_state, batch["name"])
        while state not in (BATCH_DONE, BATCH_FAILED):
            time.sleep(self.poll)
            state, detail = self._call(provider.batch_state, batch["name"])
            self.log(f"batch {batch['name']}: {detail}")
        if state == BATCH_FAILED:
            self._write_state(folder, {**batch, "state": FAILED, "detail": detail})
            yield from (RequestResult(request, error=f"the batch failed: {detail}") for request in requests.values())
            return
        yield from self._collect(batch["name"], dict(requests))
        self._write_state(folder, {**batch, "state": COLLECTED})

    def _submit(self, lines: Path, label: str) -> str:
        """Submit a batch, unless an earlier attempt whose response was lost has submitted it."""
        return self.runner.provider.find_batch(label) or self.runner.provider.submit_batch(lines, label)

    def _collect(self, name: str, pending: dict[str, Request]) -> Iterator[RequestResult]:
        provider = self.runner.provider
        for key, reply in self._call(lambda: list(provider.batch_replies(name))):
            request = pending.pop(key, None)
            if request is None:
                continue  # the batch holds more requests than this call
            if isinstance(reply, ProviderError):
                yield RequestResult(request, error=str(reply))
                continue
            self.runner.cache.put(request, reply)
            dollars = reply_cost(reply, provider.spec, batch=True)
            self.runner.budget.settle(0.0, dollars)
            yield RequestResult(request, reply, dollars=dollars)
        yield from (RequestResult(request, error=f"batch {name} has no reply to this request") for request in pending.values())

    def _write_state(self, folder: Path, batch: dict[str, Any]) -> None:
        write_ascii_json(folder / "batch.json", {"format_version": FORMAT_VERSION, **batch})

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return call_with_retries(self.runner.retry_policy, function, *arguments)
