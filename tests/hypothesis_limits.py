"""Limits of the number of hypothesis examples that the profile ``fast`` lowers further."""

from __future__ import annotations

from hypothesis import settings


def at_most(examples: int) -> settings:
    """Return settings with this number of examples, or that of the active profile if it is smaller."""
    return settings(max_examples=min(examples, settings().max_examples))
