"""Annotation tasks: the behaviors with their definitions, what the video shows, and the schema of the answer.

The tasks of Rodent-Bench are the files in ``tasks/``. Your own task is a file of the same form, or is made from an `Ethogram`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ethobench.core import Behavior, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, ParameterError
from ethobench.formats.text import format_clock

FOLDER = Path(__file__).parent / "tasks"
TIME_FORMATS = ("MM:SS", "HH:MM:SS", "seconds")
TIME_PATTERNS = {"MM:SS": r"^[0-9]{2,}:[0-5][0-9]$", "HH:MM:SS": r"^[0-9]{2,}:[0-5][0-9]:[0-5][0-9]$"}


@dataclass(frozen=True)
class Task:
    """An annotation task.

    Attributes
    ----------
    name : str
    ethogram : Ethogram
        The behaviors, with definitions.
    title : str
    animals : str
        The animals in the video.
    view : str
        Position of the camera, such as "from above"; may be empty.
    exclusive : bool
        Whether exactly one behavior occurs at any time.
    rate : float, optional
        Frame rate of the videos in Hz.
    short_seconds, long_seconds : float, optional
        Maximum duration of a video in the Short and the Long version of Rodent-Bench.
    aliases : mapping of str to str
        Other names of behaviors that are accepted in answers.
    published : mapping
        Statistics that the authors of the benchmark report.
    """

    name: str
    ethogram: Ethogram
    title: str = ""
    animals: str = "one or more animals"
    view: str = ""
    exclusive: bool = True
    rate: float | None = None
    short_seconds: float | None = None
    long_seconds: float | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.ethogram):
            raise EthobenchError(f"task {self.name!r} has no behaviors")


class _BehaviorFields(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=1)
    definition: str = ""
    point: bool = False
    aliases: list[str] = []


class _TaskFields(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str = ""
    animals: str = "one or more animals"
    view: str = ""
    exclusive: bool = True
    rate: float | None = Field(default=None, gt=0)
    background: str | None = None
    short_seconds: float | None = Field(default=None, gt=0)
    long_seconds: float | None = Field(default=None, gt=0)
    behavior: list[_BehaviorFields] = Field(min_length=1)
    published: dict[str, float] = {}


def task_names() -> list[str]:
    """Return the names of the tasks that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_task(name: str | Path) -> Task:
    """Load a task by name or from a TOML file.

    Raises
    ------
    NotFoundError
        If no task of the package has this name.
    FormatError
        If the TOML file is missing or not valid.

    Examples
    --------
    >>> load_task("grooming").ethogram.names
    ('grooming', 'other')
    """
    path = Path(name)
    if path.suffix != ".toml":
        if str(name) not in task_names():
            raise NotFoundError(f"no task {str(name)!r}; available: {', '.join(task_names())}, or the path of a .toml file")
        path = FOLDER / f"{name}.toml"
    if not path.is_file():
        raise FormatError(path, "no such file")
    try:
        content = _TaskFields.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, f"not valid TOML ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise FormatError(path, first["msg"].lower(), ".".join(map(str, first["loc"]))) from None
    try:
        ethogram = Ethogram([Behavior(b.name, b.definition, b.point) for b in content.behavior], content.background)
    except EthobenchError as error:
        raise FormatError(path, str(error)) from None
    fields = content.model_dump(exclude={"behavior", "background"})
    return Task(path.stem, ethogram, aliases={word: b.name for b in content.behavior for word in b.aliases}, **fields)


def task_from_ethogram(ethogram: Ethogram, name: str = "custom", **fields: Any) -> Task:
    """Make a task from an ethogram. The definitions of its behaviors are part of the prompt.

    Parameters
    ----------
    ethogram : Ethogram
    name : str
    **fields
        Other attributes of `Task`.

    Examples
    --------
    >>> task_from_ethogram(Ethogram([Behavior("rear", "stands on its hind legs")]), animals="one rat").animals
    'one rat'
    """
    return Task(name, ethogram, **fields)


def answer_model(task: Task, time_format: str = "MM:SS") -> type[BaseModel]:
    """Build the pydantic model of an answer: ``segments``, each with its number, times and one of the task's behaviors.

    Parameters
    ----------
    task : Task
    time_format : {"MM:SS", "HH:MM:SS", "seconds"}

    Examples
    --------
    >>> Answer = answer_model(load_task("grooming"))
    >>> text = '{"segments": [{"segment_number": 1, "start_time": "00:00", "end_time": "00:07", "behavior": "grooming"}]}'
    >>> Answer.model_validate_json(text).segments[0].end_time
    '00:07'
    """
    if time_format not in TIME_FORMATS:
        raise ParameterError(f"`time_format` must be one of {', '.join(TIME_FORMATS)}, got {time_format!r}")
    time: tuple[Any, Any] = (float, Field(ge=0)) if time_format == "seconds" else (str, Field(pattern=TIME_PATTERNS[time_format]))
    config = ConfigDict(extra="forbid")
    segment = create_model(
        "Segment",
        __config__=config,
        segment_number=(int, ...),
        start_time=time,
        end_time=time,
        behavior=(Literal[task.ethogram.names], ...),  # type: ignore[arg-type]
    )
    return create_model("Answer", __config__=config, segments=(list[segment], ...))  # type: ignore[valid-type]


def answer_schema(task: Task, time_format: str = "MM:SS") -> dict[str, Any]:
    """Return the JSON schema of an answer, without ``$ref``, which some providers do not support."""
    schema = answer_model(task, time_format).model_json_schema()
    segment = schema.pop("$defs")["Segment"]
    schema["properties"]["segments"]["items"] = segment
    plain: dict[str, Any] = _without_titles(schema)
    return plain


def format_time(seconds: float, time_format: str) -> str | float:
    """Write a time in one of `TIME_FORMATS`."""
    return round(seconds, 2) if time_format == "seconds" else format_clock(seconds, hours=time_format == "HH:MM:SS")


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    return schema
