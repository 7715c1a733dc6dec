"""File formats: detection, reading and writing, with one module for each format or family of formats."""

from ethobench.formats.base import Format, formats, register_format
from ethobench.formats.io import (
    detect,
    read_annotation,
    read_at_rate,
    read_recordings,
    write_annotation,
    write_recordings,
)

__all__ = [
    "Format",
    "detect",
    "formats",
    "read_annotation",
    "read_at_rate",
    "read_recordings",
    "register_format",
    "write_annotation",
    "write_recordings",
]
