"""How much memory a file may ask for."""

from __future__ import annotations

from pathlib import Path

from ethobench.core.errors import FormatError

MOST_UNSTORED = 1 << 28
MOST_TIMES_STORED = 200


def is_too_large(claimed: int, stored: int) -> bool:
    """Tell whether numbers would take far more memory than the bytes that are stored can stand for."""
    return claimed > max(MOST_UNSTORED, MOST_TIMES_STORED * stored)


def check_size(path: Path, claimed: int, stored: int) -> None:
    """Refuse what would take far more memory than its file can stand for."""
    if is_too_large(claimed, stored):
        raise FormatError(path, f"refused: it claims {claimed:,} bytes of numbers, and holds {stored:,}")
