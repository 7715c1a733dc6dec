"""X"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ethobench.core import Behavior, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.formats.text import format_clock

FOLDER = Path(__file__).parent / "tasks"


@dataclass(frozen=True)
class Task:
    """What a model is asked to annotate.

    Attributes
    ----------
    name : str
    ethogram : Ethogram
        The behaviors, with definitions.
    title : str
    animals : str
        Who is in the video.
    view : str
        Where the camera is: ``"from above"``, ...; empty if that need not be said.
    exclusive : bool
        Whether exactly one behavior goes on at any time.
    rate : float, optional
        Frames per second of the videos.
    short_seconds, long_seconds : float, optional
        Where the Short and Long versions of a benchmark end.
    aliases : mapping of str to str
        Other words for behaviors, understood in answers.
    published : mapping
        Figures that its authors give.
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
            raise EthobenchError(f"task {self.name!r} names no behavior")


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
    """List the tasks that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_task(name: str | Path) -> Task:
    """Load a task by its name, or from a TOML file.

    Examples
    --------
    >>> load_task("grooming").ethogram.names
    ('grooming', 'other')
    """
    path = Path(name)
    if path.suffix != ".toml":
        if str(name) not in task_names():
            raise NotFoundError(f"no task {str(name)!r}; there are: {', '.join(task_names())}, or a .toml file of your own")
        path = FOLDER / f"{name}.toml"
    if not path.is_file():
        raise FormatError(path, "there is no such file")
    try:
        fields = _TaskFields.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, f"this is not valid TOML ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise FormatError(path, first["msg"].lower(), ".".join(map(str, first["loc"]))) from None
    try:
        ethogram = Ethogram([Behavior(b.name, b.definition, b.point) for b in fields.behavior], fields.background)
    except EthobenchError as error:
        raise FormatError(path, str(error)) from None
    told = fields.model_dump(exclude={"behavior", "background"})
    return Task(path.stem, ethogram, aliases={word: b.name for b in fields.behavior for word in b.aliases}, **told)


def task_from_ethogram(ethogram: Ethogram, name: str = "own", **fields: Any) -> Task:
    """Make a task of an ethogram; its definitions are what the model is told.

    Examples
    --------
    >>> task_from_ethogram(Ethogram([Behavior("rear", "stands on its hind legs")]), animals="one rat").animals
    'one rat'
    """
    return Task(name, ethogram, **fields)


TIME_FORMATS = ("MM:SS", "HH:MM:SS", "seconds")
TIME_PATTERNS = {"MM:SS": r"^[0-9]{2,}:[0-5][0-9]$", "HH:MM:SS": r"^[0-9]{2,}:[0-5][0-9]:[0-5][0-9]$"}


def answer_model(task: Task, time_format: str = "MM:SS") -> type[BaseModel]:
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
    if times not in TIME_FORMATS:
        raise EthobenchError(f"times are one of {', '.join(TIME_FORMATS)}, not {times!r}")
    time: tuple[Any, Any] = (float, Field(ge=0)) if times == "seconds" else (str, Field(pattern=TIME_PATTERNS[times]))
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


def answer_schema(task: Task, time_format: str = "MM:SS") -> dict[str, Any]:
    """Return the JSON schema of an answer, without references, which not every provider follows."""
    schema = answer_model(task, times).model_json_schema()
    segment = schema.pop("$defs")["Segment"]
    schema["properties"]["segments"]["items"] = segment
    plain: dict[str, Any] = _without_titles(schema)
    return plain


def format_time(seconds: float, time_format: str) -> str | float:
    """Write a time in one of the `TIME_FORMATS`."""
    return round(seconds, 2) if times == "seconds" else format_clock(seconds, hours=times == "HH:MM:SS")


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    return schema
