"""The fuzzing harness finds what it should find, and always makes the same mutants."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ethobench.formats import formats
from tests.fuzz.__main__ import main
from tests.fuzz.corpus import make_corpus
from tests.fuzz.mutate import mutate
from tests.fuzz.worker import Worker

pytest.importorskip("resource", reason="limits of a process need a POSIX system")


@pytest.mark.slow
def test_every_format_has_a_seed_and_the_same_mutants() -> None:
    seeds = make_corpus(formats.names())
    assert {seed.kind for seed in seeds} == {*formats.names()}
    for seed in seeds:
        for name, content in seed.files.items():
            mutants = [mutate(content, name, random.Random(number)) for number in range(5)]  # noqa: S311
            assert mutants == [mutate(content, name, random.Random(number)) for number in range(5)]  # noqa: S311
            assert any(mutant != content for mutant in mutants)


@pytest.mark.slow
def test_a_hang_an_escape_and_a_crash_are_distinguished(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless.csv")
    with Worker(tmp_path / "worker", seconds=2) as worker:
        assert worker.run({"task": "sniff", "path": str(tmp_path / "endless.csv")}).outcome == "hung"
    with Worker(tmp_path / "worker") as worker:
        escaped = worker.run({"task": "sniff", "path": 1})
        assert (escaped.outcome, escaped.detail.partition(":")[0]) == ("escaped", "TypeError")
        assert worker.run({"task": "unknown"}).outcome == "died"
        (tmp_path / "text.csv").write_text("nothing", encoding="utf-8")
        assert worker.run({"task": "sniff", "path": str(tmp_path / "text.csv")}).outcome == "read"
        assert worker.run({"task": "read", "path": str(tmp_path / "text.csv")}).outcome == "refused"


@pytest.mark.slow
def test_a_run_prints_a_table_and_keeps_reproducers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--count", "40", "--formats", "tidy,bento", "--save", str(tmp_path / "failures")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [["tidy", "20"], ["bento", "20"], ["all", "40"]]
    assert code == (1 if (tmp_path / "failures").exists() else 0)
