"""Figures: clips of bouts, overlay videos, timelines, and plots for papers."""

from __future__ import annotations
