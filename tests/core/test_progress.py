"""Progress of nested computations."""

from __future__ import annotations

from ethobench.core.progress import progress_listener, progress_range, report_progress


def test_ranges_are_scaled_to_the_enclosing_progress():
    report_progress("without a listener", 0.5)
    received = []
    with progress_listener(lambda stage, fraction: received.append((stage, round(fraction, 3)))):
        report_progress("features", 0.1)
        with progress_range(0.2, 0.6, "fold 1"):
            report_progress("trees", 0.5)
            with progress_range(0.5, 1.0):
                report_progress("network", 2.0)
        report_progress("scoring", 0.9)
    report_progress("without a listener", 1.0)
    assert received == [("features", 0.1), ("fold 1: trees", 0.4), ("fold 1: network", 0.6), ("scoring", 0.9)]
