"""Reports: scores and stores become a dict, the dict becomes one page that works offline."""

from ethobench.reports.agreement_report import summarize_agreement
from ethobench.reports.comparison_report import summarize_comparison
from ethobench.reports.page import render_report, write_report
from ethobench.reports.score_report import summarize_scores
from ethobench.reports.store_report import load_available_datasets, summarize_store

__all__ = [
    "load_available_datasets",
    "render_report",
    "summarize_agreement",
    "summarize_comparison",
    "summarize_scores",
    "summarize_store",
    "write_report",
]
