"""What a model is asked to annotate: behaviors with definitions, and what the video shows.

The tasks of Rodent-Bench are files in ``tasks/``; a task of your own is one such file, or made from an `Ethogram`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ethobench.core import Behavior, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError

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


def task_of(ethogram: Ethogram, name: str = "own", **fields: Any) -> Task:
    """Make a task of an ethogram; its definitions are what the model is told.

    Examples
    --------
    >>> task_of(Ethogram([Behavior("rear", "stands on its hind legs")]), animals="one rat").animals
    'one rat'
    """
    return Task(name, ethogram, **fields)
