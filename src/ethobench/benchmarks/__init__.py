"""Benchmarks: their options, jobs, tables and published scores."""

from ethobench.benchmarks.base import (
    Benchmark,
    CrossValidationOptions,
    ModelOptions,
    Options,
    Table,
    TableOptions,
    benchmarks,
    option,
    register_benchmark,
)
from ethobench.benchmarks.folds import fold_plan
from ethobench.benchmarks.results import results_table

__all__ = [
    "Benchmark",
    "CrossValidationOptions",
    "ModelOptions",
    "Options",
    "Table",
    "TableOptions",
    "benchmarks",
    "fold_plan",
    "option",
    "register_benchmark",
    "results_table",
]
