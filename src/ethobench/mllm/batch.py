"""Batches: many questions in one file, handed in, waited for and collected; a run that dies goes on where it was."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ethobench.mllm.ask import Asked, Asker
from ethobench.mllm.cache import write_json
from ethobench.mllm.cost import cost_of, estimate
from ethobench.mllm.providers import ProviderError
from ethobench.mllm.providers.base import BROKEN, DONE
from ethobench.mllm.request import Request

HANDING_IN, HANDED_IN, COLLECTED, FAILED = "handing in", "handed in", "collected", "failed"


class Batcher:
    """Asks through batches, with the cache and the budget of an `Asker`.

    What is known of a batch lies beside the answers, in ``batches/<label>/``: ``questions.jsonl`` as it was handed in, and
    ``batch.json`` with its state, written before and after every step. So a batch is handed in once, whatever dies.

    Parameters
    ----------
    asker : Asker
    poll : float
        Seconds between looks.
    tell : callable
    """

    def __init__(self, asker: Asker, *, poll: float = 30.0, tell: Callable[[str], None] = lambda _: None) -> None:
        self.asker, self.poll, self.tell = asker, poll, tell
        self.root = asker.cache.root / "batches"
        if not asker.provider.can_batch:
            raise ProviderError(f"{asker.provider.name} takes no batches")

    def ask_all(self, requests: Sequence[Request]) -> Iterator[Asked]:
        """Ask many questions and yield what came of them; open batches that hold some of them are waited for first."""
        wanted = {request.key: request for request in requests}
        for key in list(wanted):
            known = self.asker.known(wanted[key])
            if known is not None:
                yield Asked(wanted.pop(key), known, is_cached=True)
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
            if kept["state"] in (HANDING_IN, HANDED_IN) and kept["provider"] == repr(self.asker.provider):
                yield path.parent, kept

    def _write(self, wanted: dict[str, Request]) -> tuple[Path, dict[str, Any]]:
        """Write the batch file; videos are uploaded on the way."""
        provider = self.asker.provider
        most = estimate(wanted.values(), provider.facts, batch=True).most
        self.asker.budget.settle(self.asker.budget.reserve(most), 0.0)  # a batch cannot be stopped halfway, so all of it must fit
        digest = hashlib.blake2b(" ".join(sorted(wanted)).encode(), digest_size=8).hexdigest()
        number = 1 + len(list(self.root.glob(f"ethobench-{digest}-*/batch.json")))
        label = f"ethobench-{digest}-{number}"
        folder = self.root / label
        folder.mkdir(parents=True, exist_ok=True)
        lines = folder / "questions.jsonl"
        partial = lines.with_suffix(".part")
        with tempfile.TemporaryDirectory(prefix="ethobench-") as scratch, partial.open("w", encoding="ascii") as file:
            for place, request in enumerate(wanted.values(), start=1):
                file.write(self._patiently(provider.batch_line, request, Path(scratch)) + "\n")
                self.tell(f"batch {label}: {place} of {len(wanted)} questions written")
        partial.replace(lines)
        kept = {"label": label, "provider": repr(provider), "keys": list(wanted), "state": HANDING_IN, "name": ""}
        write_json(folder / "batch.json", kept)
        return folder, kept

    def _finish(self, folder: Path, kept: dict[str, Any], wanted: dict[str, Request]) -> Iterator[Asked]:
        """Hand a batch in if that was not done, wait for it and collect its answers."""
        provider = self.asker.provider
        if kept["state"] == HANDING_IN:
            name = self._patiently(self._hand_in, folder / "questions.jsonl", kept["label"])
            kept = {**kept, "name": name, "state": HANDED_IN}
            write_json(folder / "batch.json", kept)
            self.tell(f"batch {kept['label']} handed in as {name}")
        else:
            self.tell(f"batch {kept['label']} was handed in before as {kept['name']}; waiting for it")
        state, told = self._patiently(provider.batch_state, kept["name"])
        while state not in (DONE, BROKEN):
            time.sleep(self.poll)
            state, told = self._patiently(provider.batch_state, kept["name"])
            self.tell(f"batch {kept['name']}: {told}")
        if state == BROKEN:
            write_json(folder / "batch.json", {**kept, "state": FAILED, "told": told})
            yield from (Asked(request, error=f"the batch came to nothing: {told}") for request in wanted.values())
            return
        yield from self._collect(kept["name"], dict(wanted))
        write_json(folder / "batch.json", {**kept, "state": COLLECTED})

    def _hand_in(self, lines: Path, label: str) -> str:
        """Hand a batch in, unless it arrived at an attempt of which that was not known."""
        return self.asker.provider.find_batch(label) or self.asker.provider.submit_batch(lines, label)

    def _collect(self, name: str, waiting: dict[str, Request]) -> Iterator[Asked]:
        provider = self.asker.provider
        for key, answer in self._patiently(lambda: list(provider.batch_answers(name))):
            request = waiting.pop(key, None)
            if request is None:
                continue  # a question of the batch that nobody asks now
            if isinstance(answer, ProviderError):
                yield Asked(request, error=str(answer))
                continue
            self.asker.cache.put(request, answer)
            dollars = cost_of(answer, provider.facts, batch=True)
            self.asker.budget.settle(0.0, dollars)
            yield Asked(request, answer, dollars=dollars)
        yield from (Asked(request, error=f"batch {name} holds no answer to this question") for request in waiting.values())

    def _patiently(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Do something again where that may help."""
        patience = self.asker.patience
        for failures in range(1, patience.attempts + 1):
            try:
                return call(*arguments)
            except ProviderError as error:
                if not error.transient or failures == patience.attempts:
                    raise
                time.sleep(patience.wait(failures, error.after))
        raise AssertionError("unreachable")
