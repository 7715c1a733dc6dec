"""Runs: jobs, the store that keeps their results, and the engine that runs them on one machine or a cluster."""

from ethobench.runs.engine import Engine, RunControl, RunSummary, StopRun
from ethobench.runs.leases import StoreError
from ethobench.runs.plan import Job, JobPlan, Result, Setting, hash_files
from ethobench.runs.search import GridSearch, OptunaSearch, Search
from ethobench.runs.store import Store
from ethobench.runs.worker import WorkerOptions

__all__ = [
    "Engine",
    "GridSearch",
    "Job",
    "JobPlan",
    "OptunaSearch",
    "Result",
    "RunControl",
    "RunSummary",
    "Search",
    "Setting",
    "StopRun",
    "Store",
    "StoreError",
    "WorkerOptions",
    "hash_files",
]
