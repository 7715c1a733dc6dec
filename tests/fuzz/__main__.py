"""Fuzz all readers, detection, model folders, answers of multimodal models and requests to the viewer.

``python -m tests.fuzz --count 50000``; the same seed gives the same mutants. Prints a table by format. Whatever raises anything
but our errors, exceeds the limits or ends the process is saved as a reproducer, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethobench.formats import formats
from tests.fuzz.corpus import ANSWERS, HEADERS, MODELS, REQUEST_SEEDS, REQUESTS, Seed, make_corpus, request_of
from tests.fuzz.mutate import insert_token, mutate, replace_number
from tests.fuzz.worker import Result, Worker
from tests.models.damage import renew_digests

IMPORTS = {
    MODELS: ("ethobench.models", "lightgbm", "sklearn.ensemble", "skops.io"),
    ANSWERS: ("tests.mllm.fuzz",),
    REQUESTS: ("ethobench.app.server",),
}
KINDS = [*formats.names(), MODELS, ANSWERS, REQUESTS]


@dataclass
class Row:
    """Counts of one kind of input."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unexpected: int = 0
    peak: int = 0
    slowest: float = 0.0

    def add(self, result: Result) -> None:
        self.outcomes[result.outcome] += 1
        self.unexpected += result.unexpected
        self.peak, self.slowest = max(self.peak, result.peak), max(self.slowest, result.seconds)

    @property
    def failures(self) -> int:
        return self.outcomes.total() - self.outcomes["read"] - self.outcomes["refused"]


class Fuzzer:
    """Runs mutants of all kinds in turn.

    Parameters
    ----------
    kinds : list of str
    seed : int
        Chooses the mutants.
    folder : Path
        For mutants and caches while they are used.
    save : Path
        Where reproducers are kept, one for each distinct failure.
    """

    def __init__(self, kinds: list[str], seed: int, folder: Path, save: Path) -> None:
        self.kinds, self.seed, self.folder, self.save = kinds, seed, folder, save
        self.rows = {kind: Row() for kind in kinds}
        self.failures: Counter[str] = Counter()
        self.generic: Counter[str] = Counter()
        self._seeds: dict[str, list[Seed]] = {}
        for each in make_corpus(kinds):
            self._seeds.setdefault(each.kind, []).append(each)

    def run(self, count: int, minutes: float) -> None:
        """Run `count` mutants, the kinds in turn, for at most this time."""
        deadline = time.monotonic() + 60 * minutes
        modules = [module for kind in self.kinds for module in IMPORTS.get(kind, ())]
        with Worker(self.folder / "worker", modules=modules) as worker:
            for number in range(count):
                if time.monotonic() > deadline:
                    return
                self._run_one(worker, self.kinds[number % len(self.kinds)], number // len(self.kinds))
                if number % 2000 == 1999:
                    sys.stderr.write(f"{number + 1} mutants, {sum(row.failures for row in self.rows.values())} failures\n")
                    shutil.rmtree(self.folder / "worker" / "cache", ignore_errors=True)

    def _run_one(self, worker: Worker, kind: str, number: int) -> None:
        generator = random.Random(f"{self.seed}/{kind}/{number}")  # noqa: S311 - mutants are no secrets
        files: dict[str, bytes] = {}
        if kind == ANSWERS:
            task: dict[str, Any] = {"task": "answer", "number": generator.randrange(1 << 40)}
        elif kind == REQUESTS:
            text = generator.choice(REQUEST_SEEDS).encode()
            for _ in range(generator.choice([0, 1, 1, 2, 3])):
                text = generator.choice([replace_number, insert_token, insert_token, mutate_body])(text, generator)
            headers = generator.choice(HEADERS) if generator.random() < 0.2 else {}
            task = {"task": "request", **request_of(text.decode("utf-8", "replace")), "headers": headers}
        else:
            original = generator.choice(self._seeds[kind])
            chosen = generator.choice(list(original.files))
            files = {**original.files, chosen: mutate(original.files[chosen], chosen, generator)}
            root = self.folder / f"m{number}"
            path = _write(files, root)
            if kind == MODELS and generator.random() < 0.7:  # damage on purpose: what the digest does not show
                renew_digests(root)
            task = {"task": "model", "path": str(root)} if kind == MODELS else {"task": "file", "path": str(path), "format": kind}
        result = worker.run(task)
        self.rows[kind].add(result)
        if result.unexpected:
            self.generic[f"{kind}: {result.cause}"] += 1
        if result.is_failure:
            self._keep(kind, number, task, files, result)
        if files:
            shutil.rmtree(root)

    def _keep(self, kind: str, number: int, task: dict[str, Any], files: dict[str, bytes], result: Result) -> None:
        """Save the first mutant of each distinct failure."""
        location = next((line.strip() for line in reversed(result.detail.splitlines()) if line.strip().startswith("File ")), "")
        signature = (
            f"{kind}: {result.outcome}: {result.detail.splitlines()[0][:120] if result.detail else ''} {location.rpartition('src/')[2]}"
        )
        digest = hashlib.sha256(f"{kind}{result.outcome}{result.detail.partition(':')[0]}{location}".encode()).hexdigest()[:10]
        key = f"{digest} {signature}"
        existing = next((name for name in self.failures if name.startswith(digest)), None)
        self.failures[existing or key] += 1
        if existing is None:
            folder = self.save / digest
            _write(files, folder)
            folder.mkdir(parents=True, exist_ok=True)
            lines = [
                f"seed {self.seed}, {kind}, mutant {number}",
                json.dumps(task),
                f"{result.outcome} after {result.seconds:.1f} s",
                result.detail,
            ]
            (folder / "failure.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def table(self) -> str:
        """Return the summary by kind."""
        names = f"{'kind':18} {'mutants':>8} {'read':>8} {'refused':>8} {'generic':>8}"
        lines = [f"{names} {'escapes':>8} {'hangs':>6} {'peak MB':>8} {'slowest':>8}"]
        total = Row()
        for kind, row in self.rows.items():
            lines.append(_line(kind, row))
            total.outcomes += row.outcomes
            total.unexpected += row.unexpected
            total.peak, total.slowest = max(total.peak, row.peak), max(total.slowest, row.slowest)
        return "\n".join([*lines, _line("all", total)])


def mutate_body(text: bytes, generator: random.Random) -> bytes:
    """Mutate the body of a request as JSON."""
    head, _, body = text.rpartition(b"\n")
    return head + b"\n" + mutate(body or b"{}", "body.json", generator)


def _line(kind: str, row: Row) -> str:
    counts = row.outcomes
    escapes = row.failures - counts["hung"]
    return (
        f"{kind:18} {counts.total():8} {counts['read']:8} {counts['refused']:8} {row.unexpected:8} {escapes:8} {counts['hung']:6} "
        f"{row.peak >> 20:8} {row.slowest:7.1f}s"
    )


def _write(files: dict[str, bytes], folder: Path) -> Path:
    """Write files to a folder; return the only file, or the folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / next(iter(files)) if len(files) == 1 else folder


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="chooses the mutants (default 0)")
    parser.add_argument("--count", type=int, default=50_000, help="number of mutants, the kinds in turn (default 50000)")
    parser.add_argument("--formats", default="", help=f"kinds to fuzz, separated by commas (default all): {', '.join(KINDS)}")
    parser.add_argument("--without", default="", help="kinds to leave out, separated by commas")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this time (default 60)")
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"), help="folder for reproducers (default fuzz-failures)")
    options = parser.parse_args(arguments)
    chosen, excluded = ([name.strip() for name in text.split(",") if name.strip()] for text in (options.formats, options.without))
    kinds = [name for name in chosen or KINDS if name not in excluded]
    if unknown := [name for name in (*chosen, *excluded) if name not in KINDS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(KINDS)}")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(kinds, options.seed, Path(folder), options.save)
        fuzzer.run(options.count, options.minutes)
    sys.stdout.write(f"{fuzzer.table()}\n{time.monotonic() - start:.0f} s, seed {options.seed}\n")
    for failure, count in fuzzer.failures.most_common():
        sys.stdout.write(f"{count:6} x {failure}\n")
    for refusal, count in fuzzer.generic.most_common():
        sys.stdout.write(f"{count:6} x generic refusal: {refusal}\n")
    if fuzzer.failures:
        sys.stdout.write(f"reproducers: {options.save}\n")
    return 1 if fuzzer.failures else 0


if __name__ == "__main__":
    sys.exit(main())
