"""Asking: each question once, patiently, within the limits of time, rate and money."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from ethobench.core.errors import EthobenchError
from ethobench.mllm.cache import AnswerCache
from ethobench.mllm.cost import Budget, BudgetError, cost_of, estimate
from ethobench.mllm.providers import Provider, ProviderError
from ethobench.mllm.request import Reply, Request


@dataclass(frozen=True)
class Patience:
    """How often and after what waits a question is asked again.

    Attributes
    ----------
    attempts : int
        In all.
    first, longest : float
        Seconds of the first wait, and of any that the provider does not ask for; waits double from one to the next.
    most : float
        Longest wait that the provider may ask for; beyond that the question is given up.
    """

    attempts: int = 6
    first: float = 1.0
    longest: float = 60.0
    most: float = 600.0

    def wait(self, failures: int, asked: float | None, draw: Callable[[], float] = random.random) -> float:
        """Return the seconds to wait after so many failures: half to all of a wait that doubles, and at least what is asked for.

        >>> Patience().wait(3, None, draw=lambda: 1.0), Patience().wait(1, 7.0, draw=lambda: 0.0)
        (4.0, 7.0)
        """
        ceiling = min(self.longest, self.first * 2.0 ** (failures - 1))
        return max(asked or 0.0, ceiling * (0.5 + 0.5 * draw()))


class Pace:
    """Lets questions go at most so often, and holds all of them back when the provider asks for it."""

    def __init__(self, per_minute: float | None = None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait for this question's turn."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._gap
        time.sleep(max(0.0, turn - now))

    def hold(self, seconds: float) -> None:
        """Let nobody go for some seconds."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


@dataclass(frozen=True)
class Asked:
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


class Asker:
    """Asks a provider; answers that are known already are not asked for again.

    Parameters
    ----------
    provider : Provider
    cache : AnswerCache
    patience : Patience
    budget : Budget
    at_once : int
        Questions under way at the same time.
    per_minute : float, optional
        Most questions in a minute.
    again : bool
        Ask again where the known answer was cut off or withheld.
    tell : callable
        Is handed a line when something goes wrong that is tried again.
    """

    def __init__(
        self,
        provider: Provider,
        cache: AnswerCache | None = None,
        *,
        patience: Patience | None = None,
        budget: Budget | None = None,
        at_once: int = 4,
        per_minute: float | None = None,
        again: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.provider, self.cache = provider, cache or AnswerCache()
        self.patience, self.budget = patience or Patience(), budget or Budget()
        self.at_once, self.again, self.tell = at_once, again, tell
        self._pace = Pace(per_minute)

    def known(self, request: Request) -> Reply | None:
        """Return the answer that is known already."""
        if self.provider.is_free:
            return None
        reply = self.cache.get(request)
        return None if reply is not None and self.again and reply.finish != "stop" else reply

    def ask(self, request: Request) -> Asked:
        """Ask one question, again and again where that may help.

        Raises
        ------
        BudgetError
            Before the limit would be exceeded.
        """
        known = self.known(request)
        if known is not None:
            return Asked(request, known, is_cached=True)
        with tempfile.TemporaryDirectory(prefix="ethobench-") as folder:
            for failures in range(1, self.patience.attempts + 1):
                try:
                    return self._attempt(request, Path(folder))
                except ProviderError as error:
                    waits = self.patience.wait(failures, error.after)
                    if not error.transient or failures == self.patience.attempts or (error.after or 0) > self.patience.most:
                        told = f" (tried {failures} times)" if failures > 1 else ""
                        return Asked(request, error=f"{error}{told}", dollars=None if error.billed else 0.0)
                    if error.after:
                        self._pace.hold(error.after)
                    self.tell(f"{request.recording}: {error}; once more in {waits:.1f} s")
                    time.sleep(waits)
                except BudgetError:
                    raise
                except EthobenchError as error:  # the video itself is at fault
                    return Asked(request, error=str(error))
        raise AssertionError("unreachable")

    def ask_all(self, requests: Sequence[Request]) -> Iterator[Asked]:
        """Ask many questions and yield what comes of them, as it comes.

        When the budget is used up, questions under way are waited for and no other is begun.
        """
        with ThreadPoolExecutor(self.at_once) as pool:
            futures = [pool.submit(self.ask, request) for request in requests]
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

    def _attempt(self, request: Request, folder: Path) -> Asked:
        facts = self.provider.facts
        reserved = self.budget.reserve(0.0 if self.provider.is_free else estimate([request], facts).most)
        spent: float | None = 0.0
        try:
            if not self.provider.is_free:
                self._pace.wait()
            reply = self.provider.ask(request, folder)
            if not self.provider.is_free:
                self.cache.put(request, reply)
            spent = 0.0 if self.provider.is_free else cost_of(reply, facts)
        except ProviderError as error:
            spent = None if error.billed else 0.0
            raise
        finally:
            self.budget.settle(reserved, spent)
        return Asked(request, reply, dollars=spent)
