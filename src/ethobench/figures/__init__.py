"""Figures: clips of bouts, overlay videos, and timelines."""

from __future__ import annotations
