"""Metrics: statistics first, values last. One file per family, one file per suite."""

from ethobench.metrics.agreement import Agreement, agreement
from ethobench.metrics.base import Metric, all_metrics, get_metric, register_metric
from ethobench.metrics.ceiling import Ceiling, ceiling
from ethobench.metrics.consensus import consensus
from ethobench.metrics.scores import Scores
from ethobench.metrics.scoring import score
from ethobench.metrics.suites import Suite, register_suite, suites

__all__ = [
    "Agreement",
    "Ceiling",
    "Metric",
    "Scores",
    "Suite",
    "agreement",
    "all_metrics",
    "ceiling",
    "consensus",
    "get_metric",
    "register_metric",
    "register_suite",
    "score",
    "suites",
]
