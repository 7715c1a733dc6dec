"""The default suite, without the quirks of published ones.

Counts are summed over recordings before they are divided, so long recordings weigh more than short ones and no recording
needs to show every behavior. Means over behaviors exclude the background, and behaviors that are absent on both sides.
F1 is 0 if nothing was matched. Segment overlap and temporal precision are over matched bouts, temporal precision in seconds;
continuity counts only true bouts in which the behavior was predicted.
"""

from __future__ import annotations

from ethobench.metrics.base import Measure
from ethobench.metrics.suites import Suite, register_suite


@register_suite("ethobench")
class Ethobench(Suite):
    """Frames, bouts, segments, probabilities and time budgets."""

    title = "Ethobench: counts pooled over recordings, mean over behaviors except background"
    measures = (
        Measure("f1", "frames.f1"),
        Measure("precision", "frames.precision"),
        Measure("recall", "frames.recall"),
        Measure("kappa", "frames.kappa"),
        Measure("mcc", "frames.mcc"),
        Measure("accuracy", "frames.accuracy"),
        Measure("kappa_all", "frames.kappa_all"),
        Measure("mcc_all", "frames.mcc_all"),
        Measure("mutual_information", "frames.mutual_information"),
        Measure("bout_f1", "bouts.f1"),
        Measure("bout_precision", "bouts.precision"),
        Measure("bout_recall", "bouts.recall"),
        Measure("bout_f1_50", "bouts.f1_50"),
        Measure("so", "bouts.overlap"),
        Measure("tp", "bouts.temporal_precision"),
        Measure("tp_frames", "bouts.temporal_precision_frames"),
        Measure("ic", "bouts.continuity"),
        Measure("onset_error", "bouts.onset_error"),
        Measure("offset_error", "bouts.offset_error"),
        Measure("onset_distance", "bouts.onset_distance"),
        Measure("offset_distance", "bouts.offset_distance"),
        Measure("fragmented", "bouts.fragmented"),
        Measure("merged", "bouts.merged"),
        Measure("segment_f1_10", "segments.f1_10"),
        Measure("segment_f1_25", "segments.f1_25"),
        Measure("segment_f1_50", "segments.f1_50"),
        Measure("segment_map", "segments.mean_average_precision"),
        Measure("edit", "segments.edit"),
        Measure("boundary_f1", "segments.boundary_f1"),
        Measure("intersection_f1", "segments.intersection_f1"),
        Measure("map", "probabilities.average_precision"),
        Measure("auroc", "probabilities.auroc"),
        Measure("calibration_error", "probabilities.calibration_error"),
        Measure("time_error", "budgets.time_error"),
        Measure("count_error", "budgets.count_error"),
        Measure("duration_distance", "budgets.duration_distance"),
        Measure("transition_distance", "budgets.transition_distance"),
        Measure("latency_error", "budgets.latency_error"),
    )
    headline = ("f1", "precision", "recall", "bout_f1", "so", "tp", "ic", "onset_error", "offset_error")
    compact = ("f1", "precision", "recall", "bout_f1")
