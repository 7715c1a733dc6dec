"""Reports: scores and stores become a dict, the dict becomes one page that works offline."""

from ethobench.reports.page import render_report, write_report
from ethobench.reports.store import datasets_at_hand, summarize_store
from ethobench.reports.summarize import summarize_scores

__all__ = ["datasets_at_hand", "render_report", "summarize_scores", "summarize_store", "write_report"]
