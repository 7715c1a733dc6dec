"""What became of a recording: answered as asked, mended, in part, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WELL_FORMED, REPAIRED, PARTIAL, FAILED = "well-formed", "repaired", "partial", "failed"


class AnswerWarning(UserWarning):
    """An answer had to be mended, or could not be read."""


@dataclass(frozen=True)
class Outcome:
    """What became of a recording's questions.

    Attributes
    ----------
    recording : str
    state : {"well-formed", "repaired", "partial", "failed"}
        ``partial``: some windows have no answer, and are not observed.
    repairs : mapping of str to int
        By kind.
    reasons : tuple of str
        Why windows failed.
    questions, cached : int
        Asked in all, and answered by the cache.
    input_tokens, output_tokens : int
    dollars : float, optional
        Spent now; None where it is not known.
    """

    recording: str
    state: str
    repairs: Mapping[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    questions: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0

    def told(self) -> str:
        """Return the outcome in words."""
        repairs = ", ".join(f"{kind} {count}" for kind, count in self.repairs.items())
        more = "; ".join(part for part in (repairs, *self.reasons[:2]) if part)
        return f"{self.recording}: {self.state}{f' ({more})' if more else ''}"


def outcomes_in(account: Mapping[str, Any]) -> list[Outcome]:
    """Return the outcomes that a model's account tells of."""
    return [Outcome(**{**fields, "reasons": tuple(fields["reasons"])}) for fields in account.get("outcomes", [])]


def count_repairs(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Add the repairs of many recordings up by kind."""
    total: dict[str, int] = {}
    for outcome in outcomes:
        for kind, count in outcome.repairs.items():
            total[kind] = total.get(kind, 0) + count
    return dict(sorted(total.items()))
