"""Runs: what a job is, what is done, where it is done."""

from ethobench.runs.execute import Engine, Outcome
from ethobench.runs.plan import Job, Plan, Result
from ethobench.runs.store import Store

__all__ = ["Engine", "Job", "Outcome", "Plan", "Result", "Store"]
