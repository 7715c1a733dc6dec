"""Benchmarks: their options, jobs, tables and published scores."""

from ethobench.benchmarks.base import Benchmark, benchmarks, register_benchmark
from ethobench.benchmarks.folds import fold_plan
from ethobench.benchmarks.results import results_table

__all__ = ["Benchmark", "benchmarks", "fold_plan", "register_benchmark", "results_table"]
