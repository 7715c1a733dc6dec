"""X"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from ethobench.core.errors import EthobenchError
from ethobench.formats.text import format_clock
from ethobench.mllm.task import TIME_FORMATS

INPUT_TYPES = ("auto", "video", "frames", "link")
STRUCTURED = ("schema", "object", "none")


@dataclass(frozen=True)
class RequestSettings:
    """How a video is shown and how the answer is asked for.

    Attributes
    ----------
    window, overlap : float
        Seconds; longer videos are asked about in windows that overlap. 0: the whole video at once.
    fps : float, optional
        Pictures for each second; the provider's own choice unless told.
    height : int, optional
        Larger pictures are made as small as this.
    timestamps : bool
        Whether the time is written into the pictures.
    times : {"MM:SS", "HH:MM:SS", "seconds"}
        How times are asked for.
    form : {"auto", "video", "frames", "link"}
        As a video, as single pictures, or as an address at which the provider finds it; the provider's own choice unless told.
    address : str
        For ``link``: where the videos lie, such as ``gs://bucket/folder``; the file's name is added.
    structured : {"schema", "object", "none"}
        Whether the provider is handed the answer's JSON schema, told to answer with JSON, or neither.
    temperature, top_p : float
    max_output_tokens : int, optional
        The model's own limit unless told.
    """

    window: float = 0.0
    overlap: float = 10.0
    fps: float | None = None
    height: int | None = None
    timestamps: bool = False
    time_format: str = "MM:SS"
    input_type: str = "auto"
    video_url: str = ""
    structured_output: str = "schema"
    temperature: float = 0.0
    top_p: float = 1.0
    max_output_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, known in (("time_format", TIME_FORMATS), ("input_type", INPUT_TYPES), ("structured_output", STRUCTURED)):
            if getattr(self, name) not in known:
                raise EthobenchError(f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}")
        for name in ("fps", "height", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise EthobenchError(f"{name} must be above zero, not {value:g}")
        if (self.input_type == "link") != bool(self.url):
            raise EthobenchError("form 'link' and an address go together: where the provider finds the videos")
        if self.input_type == "link" and (self.window or self.height or self.timestamps):
            raise EthobenchError("a video at an address is sent as it is: leave out window, height and timestamps")


STOP, LENGTH, BLOCKED = "stop", "length", "blocked"


@dataclass(frozen=True)
class Text:
    """Words of a prompt."""

    text: str

    def identity(self) -> dict[str, Any]:
        """Return what tells this part from others."""
        return {"text": self.text}

    def show(self) -> str:
        """Return the part as a person reads it."""
        return self.text


@dataclass(frozen=True)
class Clip:
    """A stretch of a video, and how it is to be shown; cut and made smaller only when it is sent.

    Attributes
    ----------
    video : Path
    digest : str
        Of the file's content; the path itself plays no part in what a clip is.
    start, stop : float
        Seconds in the file.
    whole : bool
        Whether that is the whole file.
    form : {"video", "frames", "link"}
        As a video, as single pictures, or as an address at which the provider finds it.
    fps, height, timestamps
        As for `ethobench.mllm.video.pictures`.
    address : str
        For form ``link``.
    """

    video: Path
    digest: str
    start: float
    stop: float
    is_full_video: bool = True
    input_type: str = "video"
    fps: float | None = None
    height: int | None = None
    timestamps: bool = False
    video_url: str = ""

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.stop - self.start

    @cached_property
    def key(self) -> str:
        """Hash of the identity."""
        return _hash(self.identity())

    def identity(self) -> dict[str, Any]:
        """Return what tells this clip from others."""
        fields = asdict(self)
        fields.pop("video")
        return {"clip": fields}

    def show(self) -> str:
        """Return the part as a person reads it."""
        shown = f"{format_clock(self.start)} to {format_clock(self.stop)} of {self.url or self.video.name}"
        wishes = [f"{self.fps:g} pictures a second" if self.fps else "", f"{self.height} rows" if self.height else ""]
        wishes += ["time written in" if self.timestamps else ""]
        return f"[{self.input_type}: {', '.join([shown, *filter(None, wishes)])}]"

    def file(self, folder: Path) -> tuple[Path, str]:
        """Return a video file of just this stretch, made in `folder` where the source will not do, and its MIME type."""
        from ethobench.mllm.video import MIME, write_clip

        mime = MIME.get(self.video.suffix.lower())
        if self.is_full_video and mime and not (self.height or self.timestamps):
            return self.video, mime
        target = folder / f"{self.key}.mp4"
        if not target.exists():
            write_clip(self.video, target, self.start, self.stop, fps=self.fps, height=self.height, timestamps=self.timestamps)
        return target, MIME[".mp4"]

    def frames(self, fps: float) -> Iterator[tuple[float, bytes]]:
        """Yield pictures as JPEG, with their times since the clip's start."""
        from ethobench.mllm.video import encode_jpeg, read_frames

        shown = read_frames(self.video, self.start, self.stop, fps=self.fps or fps, height=self.height, timestamps=self.timestamps)
        yield from ((at, encode_jpeg(picture)) for at, picture in shown)


Part: TypeAlias = Text | Clip


@dataclass(frozen=True)
class Request:
    """One question to a model.

    Attributes
    ----------
    provider : str
        Whom, as `Provider.identity` tells.
    model : str
    system : str
        Who the model is to be.
    parts : tuple of Text and Clip
    schema : mapping, optional
        JSON schema of the answer.
    structured : {"schema", "object", "none"}
        How the provider is told of the answer's form.
    temperature, top_p : float
    max_output_tokens : int
    draw : int
        Numbers independent answers to the same question.
    recording : str
        Whose video this is. Not part of the key, nor are the following ones.
    window : tuple of float
        Which seconds of it.
    hints : mapping
        What providers that look at no video go by.
    """

    provider: str
    model: str
    system: str
    parts: tuple[Part, ...]
    schema: Mapping[str, Any] | None = None
    structured_output: str = "schema"
    temperature: float = 0.0
    top_p: float = 1.0
    max_output_tokens: int = 8192
    seed: int = 0
    recording: str = field(default="", compare=False)
    window: tuple[float, float] = field(default=(0.0, 0.0), compare=False)
    hints: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def identity(self) -> dict[str, Any]:
        """Return everything that may change the answer."""
        names = ("provider", "model", "system", "schema", "structured_output", "temperature", "top_p", "max_output_tokens", "seed")
        return {**{name: getattr(self, name) for name in names}, "parts": [part.identity() for part in self.parts]}

    @cached_property
    def key(self) -> str:
        """Hash of the identity: the same question has the same key, wherever its files lie."""
        return _hash(self.identity())

    @property
    def clips(self) -> tuple[Clip, ...]:
        """The video parts."""
        return tuple(part for part in self.parts if isinstance(part, Clip))

    def show(self) -> str:
        """Return the prompt as a person reads it."""
        return "\n\n".join(part for part in (self.system, *(part.show() for part in self.parts)) if part)


@dataclass(frozen=True)
class Reply:
    """What a model answered.

    Attributes
    ----------
    text : str
    finish : {"stop", "length", "blocked"}
        It came to an end; it was cut off; it was withheld.
    detail : str
        What the provider says of a finish other than ``stop``.
    input_tokens, output_tokens : int, optional
        As billed.
    model : str
        The version that answered.
    raw : mapping
        Everything that came back.
    """

    text: str
    finish: str = STOP
    detail: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
