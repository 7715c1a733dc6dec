"""Benchmarks: protocols, and published figures as data."""

from ethobench.benchmarks.folds import fold_plan
from ethobench.benchmarks.results import results_table

__all__ = ["fold_plan", "results_table"]
