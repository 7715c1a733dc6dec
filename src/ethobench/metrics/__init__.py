"""Scores of annotations against a reference, agreement of annotators, and the human ceiling.

Scoring takes four steps: read the files and collate them by recording (`ethobench.datasets.collate`), align prediction and truth
(`scoring`, `pairs`), count statistics of each recording (one module per family: `frames`, `bouts`, ...), and divide
(`evaluation`, `scores`).
"""

from ethobench.metrics.base import Measure, Metric, all_metrics, get_metric, register_metric
from ethobench.metrics.human_ceiling import Ceiling, ceiling
from ethobench.metrics.majority import consensus
from ethobench.metrics.rater_agreement import Agreement, agreement
from ethobench.metrics.scores import Scores
from ethobench.metrics.scoring import score
from ethobench.metrics.suites import Suite, register_suite

__all__ = [
    "Agreement",
    "Ceiling",
    "Measure",
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
]
