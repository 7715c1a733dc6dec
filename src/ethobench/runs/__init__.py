"""Runs: what a job is, what is done, where it is done."""

from ethobench.runs.claims import StoreError
from ethobench.runs.execute import Engine, Outcome, RunControl, StopRun
from ethobench.runs.perform import How
from ethobench.runs.plan import Job, Plan, Result, digest_of
from ethobench.runs.search import GridSearch, OptunaSearch, Search
from ethobench.runs.store import Store

__all__ = [
    "Engine",
    "GridSearch",
    "How",
    "Job",
    "OptunaSearch",
    "Outcome",
    "Plan",
    "Result",
    "RunControl",
    "Search",
    "StopRun",
    "Store",
    "StoreError",
    "digest_of",
]
