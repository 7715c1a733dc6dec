"""How questions are put: everything here may change an answer."""

from __future__ import annotations

from dataclasses import dataclass

from ethobench.core.errors import EthobenchError
from ethobench.mllm.schema import STYLES

FORMS = ("auto", "video", "frames", "link")
STRUCTURED = ("schema", "object", "none")


@dataclass(frozen=True)
class Settings:
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
    times: str = "MM:SS"
    form: str = "auto"
    address: str = ""
    structured: str = "schema"
    temperature: float = 0.0
    top_p: float = 1.0
    max_output_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, known in (("times", STYLES), ("form", FORMS), ("structured", STRUCTURED)):
            if getattr(self, name) not in known:
                raise EthobenchError(f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}")
        for name in ("fps", "height", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise EthobenchError(f"{name} must be above zero, not {value:g}")
        if (self.form == "link") != bool(self.address):
            raise EthobenchError("form 'link' and an address go together: where the provider finds the videos")
        if self.form == "link" and (self.window or self.height or self.timestamps):
            raise EthobenchError("a video at an address is sent as it is: leave out window, height and timestamps")
