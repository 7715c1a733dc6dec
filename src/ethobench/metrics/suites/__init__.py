"""Suites: the published definition of each benchmark, and our own. One file each."""

from ethobench.metrics.suites.base import Suite, register_suite, suites

__all__ = ["Suite", "register_suite", "suites"]
