"""The shape of an answer, as a pydantic model for each task; providers hand it to their models as structured output."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from ethobench.core.errors import EthobenchError
from ethobench.formats.text import format_clock
from ethobench.mllm.task import Task

STYLES = ("MM:SS", "HH:MM:SS", "seconds")
PATTERNS = {"MM:SS": r"^[0-9]{2,}:[0-5][0-9]$", "HH:MM:SS": r"^[0-9]{2,}:[0-5][0-9]:[0-5][0-9]$"}


def answer_model(task: Task, times: str = "MM:SS") -> type[BaseModel]:
    """Build the model of an answer: ``segments``, each with its number, times and one of the task's behaviors.

    Parameters
    ----------
    task : Task
    times : {"MM:SS", "HH:MM:SS", "seconds"}

    Examples
    --------
    >>> from ethobench.mllm.task import load_task
    >>> Answer = answer_model(load_task("grooming"))
    >>> text = '{"segments": [{"segment_number": 1, "start_time": "00:00", "end_time": "00:07", "behavior": "grooming"}]}'
    >>> Answer.model_validate_json(text).segments[0].end_time
    '00:07'
    """
    if times not in STYLES:
        raise EthobenchError(f"times are one of {', '.join(STYLES)}, not {times!r}")
    time: tuple[Any, Any] = (float, Field(ge=0)) if times == "seconds" else (str, Field(pattern=PATTERNS[times]))
    closed = ConfigDict(extra="forbid")
    segment = create_model(
        "Segment",
        __config__=closed,
        segment_number=(int, ...),
        start_time=time,
        end_time=time,
        behavior=(Literal[task.ethogram.names], ...),  # type: ignore[arg-type]
    )
    return create_model("Answer", __config__=closed, segments=(list[segment], ...))  # type: ignore[valid-type]


def answer_schema(task: Task, times: str = "MM:SS") -> dict[str, Any]:
    """Return the JSON schema of an answer, without references, which not every provider follows."""
    schema = answer_model(task, times).model_json_schema()
    segment = schema.pop("$defs")["Segment"]
    schema["properties"]["segments"]["items"] = segment
    plain: dict[str, Any] = _without_titles(schema)
    return plain


def time_text(seconds: float, times: str) -> str | float:
    """Write a time in one of the `STYLES`."""
    return round(seconds, 2) if times == "seconds" else format_clock(seconds, hours=times == "HH:MM:SS")


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    return schema
