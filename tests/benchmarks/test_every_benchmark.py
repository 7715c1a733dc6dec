"""Rules that every registered benchmark must follow."""

from __future__ import annotations

import dataclasses

import pytest

from ethobench.benchmarks import Benchmark, Options, benchmarks
from ethobench.benchmarks.base import MODULES, find_benchmark
from ethobench.core.errors import EthobenchError
from ethobench.models import models

NAMES = benchmarks.names()


def test_all_modules_register_their_benchmarks():
    assert {*MODULES} <= {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_describes_itself(name):
    benchmark = benchmarks[name]
    assert issubclass(benchmark, Benchmark)
    assert benchmark.name == name
    assert benchmark.title.endswith(".")
    assert f"Example: [bold]ethobench run {name}" in benchmark.description
    assert benchmark.averaged_over in ("individuals", "seeds")
    assert find_benchmark(benchmark.label or name) is benchmark
    assert all(model in models for model in benchmark.models)


@pytest.mark.parametrize("name", NAMES)
def test_options_have_help_texts_and_valid_defaults(name):
    benchmark = benchmarks[name]
    assert issubclass(benchmark.Options, Options)
    assert dataclasses.is_dataclass(benchmark.Options)
    assert benchmark().options == benchmark.Options()
    for item in dataclasses.fields(benchmark.Options):
        assert item.metadata["help"].endswith((".", "...")), item.name
        if item.metadata["choices"]:
            wrong = ("no such choice",) if isinstance(item.default, tuple) else "no such choice"
            with pytest.raises(EthobenchError, match=f"`{item.name}` must be .*, got no such choice"):
                benchmark.Options(**{item.name: wrong})
        if item.metadata["minimum"] is not None:
            with pytest.raises(EthobenchError, match=f"`{item.name}` must be >= {item.metadata['minimum']}"):
                benchmark.Options(**{item.name: item.metadata["minimum"] - 1})


def test_published_scores_have_a_source():
    scores = [score for name in NAMES for score in benchmarks[name].published().values()]
    assert len(scores) > 150
    assert all(0 <= score.value <= 1 and score.source for score in scores)


def test_jobs_of_unregistered_benchmarks_use_the_defaults():
    assert find_benchmark("mine") is Benchmark
    assert not Benchmark.published()
