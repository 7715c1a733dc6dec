"""Metrics are found by name, whether or not their module was imported before."""

from __future__ import annotations

import sys

import pytest

from ethobench.core.errors import NotFoundError
from ethobench.metrics import all_metrics, base, frames, get_metric


def test_a_metric_is_found_before_its_module_is_imported(monkeypatch):
    expected = all_metrics()["frames.f1"]  # imports all modules, so that none registers its metrics in the copy below
    monkeypatch.setattr(base, "_metrics", {name: metric for name, metric in base._metrics.items() if metric.family != "frames"})
    monkeypatch.setattr(sys.modules["ethobench.metrics"], "frames", frames)  # restored afterwards
    monkeypatch.delitem(sys.modules, "ethobench.metrics.frames")
    metric = get_metric("frames.f1")
    assert (metric.name, metric.definition) == (expected.name, expected.definition)
    assert metric is not expected


def test_unknown_metrics_are_refused_with_the_available_ones():
    with pytest.raises(NotFoundError, match=r"no metric 'frames.f2'. Available: .*frames.f1, frames"):
        get_metric("frames.f2")
