"""Requests to a model and its replies, independent of the provider."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from ethobench.core.errors import ParameterError
from ethobench.formats.text import format_clock
from ethobench.mllm.task import TIME_FORMATS

INPUT_TYPES = ("auto", "video", "frames", "link")
STRUCTURED_OUTPUTS = ("schema", "object", "none")
STOP, LENGTH, BLOCKED = "stop", "length", "blocked"


@dataclass(frozen=True)
class RequestSettings:
    """How the video is sent and how the answer is requested. Each of these may change the answer.

    Attributes
    ----------
    window, overlap : float
        Length of the windows into which longer videos are split, and their overlap, in seconds. A window of 0 sends the video as one.
    fps : float, optional
        Frames per second; the provider's default if None.
    height : int, optional
        Maximum height of the frames in pixels. Larger frames are scaled down.
    timestamps : bool
        Whether the time is drawn into the frames.
    time_format : {"MM:SS", "HH:MM:SS", "seconds"}
        Format of the times in the answer.
    input_type : {"auto", "video", "frames", "link"}
        Send a video file, single frames, or a URL from which the provider reads the video. "auto" is the provider's default.
    video_url : str
        For "link": the URL of the folder with the videos, such as ``gs://bucket/folder``. The file name is appended.
    structured_output : {"schema", "object", "none"}
        Pass the JSON schema of the answer to the provider, request any JSON object, or request nothing.
    temperature, top_p : float
        Sampling parameters of the model.
    max_output_tokens : int, optional
        Maximum length of an answer; the limit of the model if None.
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
        choices = {"time_format": TIME_FORMATS, "input_type": INPUT_TYPES, "structured_output": STRUCTURED_OUTPUTS}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ParameterError(f"`{name}` must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        for name in ("fps", "height", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ParameterError(f"`{name}` must be > 0, got {value:g}")
        if (self.input_type == "link") != bool(self.video_url):
            raise ParameterError("`input_type='link'` and `video_url` must be used together")
        if self.input_type == "link" and (self.window or self.height or self.timestamps):
            raise ParameterError(
                "a linked video is not changed: `window`, `height` and `timestamps` cannot be used with `input_type='link'`"
            )


@dataclass(frozen=True)
class Text:
    """A text part of a prompt."""

    text: str

    def identity(self) -> dict[str, Any]:
        """Return the fields that are hashed into the key of a request."""
        return {"text": self.text}

    def describe(self) -> str:
        """Return the part as readable text."""
        return self.text


@dataclass(frozen=True)
class Clip:
    """A section of a video file and how it is sent. It is cut and scaled only when it is sent.

    Attributes
    ----------
    video : Path
    digest : str
        Digest of the file's content. The path is not part of a clip's identity.
    start, stop : float
        Section of the file in seconds.
    is_full_video : bool
        Whether the section is the complete file.
    input_type : {"video", "frames", "link"}
        Sent as a video file, as single frames, or as a URL.
    fps, height, timestamps
        See `ethobench.mllm.video.read_frames`.
    url : str
        For input type "link".
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
    url: str = ""

    @property
    def duration(self) -> float:
        """Duration in seconds."""
        return self.stop - self.start

    @cached_property
    def key(self) -> str:
        """Hash of the identity."""
        return _hash(self.identity())

    def identity(self) -> dict[str, Any]:
        """Return the fields that are hashed into the key of a request."""
        fields = asdict(self)
        fields.pop("video")
        return {"clip": fields}

    def describe(self) -> str:
        """Return the part as readable text."""
        section = f"{format_clock(self.start)} to {format_clock(self.stop)} of {self.url or self.video.name}"
        options = [f"{self.fps:g} frames per second" if self.fps else "", f"height {self.height}" if self.height else ""]
        options += ["timestamps" if self.timestamps else ""]
        return f"[{self.input_type}: {', '.join([section, *filter(None, options)])}]"

    def file(self, folder: Path) -> tuple[Path, str]:
        """Return a video file with just this section, and its MIME type. A new file is written to `folder` only if needed."""
        from ethobench.mllm.video import MIME, write_clip

        mime = MIME.get(self.video.suffix.lower())
        if self.is_full_video and mime and not (self.height or self.timestamps):
            return self.video, mime
        target = folder / f"{self.key}.mp4"
        if not target.exists():
            write_clip(self.video, target, self.start, self.stop, fps=self.fps, height=self.height, timestamps=self.timestamps)
        return target, MIME[".mp4"]

    def frames(self, fps: float) -> Iterator[tuple[float, bytes]]:
        """Yield the time of each frame in seconds from the clip's start, and the frame as JPEG; `fps` applies if the clip has none."""
        from ethobench.mllm.video import encode_jpeg, read_frames

        frames = read_frames(self.video, self.start, self.stop, fps=self.fps or fps, height=self.height, timestamps=self.timestamps)
        yield from ((time, encode_jpeg(frame)) for time, frame in frames)


Part: TypeAlias = Text | Clip


@dataclass(frozen=True)
class Request:
    """One request to a model.

    Attributes
    ----------
    provider : str
        `Provider.identity`.
    model : str
    system : str
        System prompt.
    parts : tuple of Text and Clip
        User prompt.
    schema : mapping, optional
        JSON schema of the answer.
    structured_output : {"schema", "object", "none"}
        See `RequestSettings`.
    temperature, top_p : float
    max_output_tokens : int
    seed : int
        Requests with different seeds get independent answers.
    recording : str
        Id of the recording. This field and the following ones are not part of the key.
    window : tuple of float
        Start and stop of the window in the recording, in seconds.
    hints : mapping
        Input of providers that use no video.
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
        """Return all fields that may change the answer."""
        names = ("provider", "model", "system", "schema", "structured_output", "temperature", "top_p", "max_output_tokens", "seed")
        return {**{name: getattr(self, name) for name in names}, "parts": [item.identity() for item in self.parts]}

    @cached_property
    def key(self) -> str:
        """Hash of the identity. Equal requests have equal keys, wherever the video files are."""
        return _hash(self.identity())

    @property
    def clips(self) -> tuple[Clip, ...]:
        """The video parts."""
        return tuple(item for item in self.parts if isinstance(item, Clip))

    def describe(self) -> str:
        """Return the complete prompt as readable text."""
        return "\n\n".join(text for text in (self.system, *(item.describe() for item in self.parts)) if text)


@dataclass(frozen=True)
class Reply:
    """The reply of a model to a request.

    Attributes
    ----------
    text : str
    finish : {"stop", "length", "blocked"}
        Why the reply ends: it is complete, it reached the token limit, or the provider withheld it.
    detail : str
        The provider's explanation of a finish other than "stop".
    input_tokens, output_tokens : int, optional
        Billed tokens.
    model : str
        Version of the model that replied.
    raw : mapping
        The complete response of the provider.
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
