"""Encoders of video: `motion`, which needs no weights, and networks of the user as ONNX or TorchScript files.

``encoder.toml`` beside ``encoder.onnx`` or ``encoder.pt`` describes its input::

    size = [224, 224]              # width and height in pixels
    mean = [0.485, 0.456, 0.406]   # of values from 0 to 1, by color; default 0
    std = [0.229, 0.224, 0.225]    # default 1
    color = "rgb"                  # or "gray"
    frames = 1                     # pictures of a sample; with more, they are `step` frames apart
    step = 1
    stride = 1                     # frames from one sample to the next
    layout = "NCHW"                # NTCHW or NCTHW for several pictures
    batch = 16
    output = 0                     # number of the output, where there are several
"""

from __future__ import annotations

import hashlib
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.core.messages import Message, Option
from ethobench.core.processes import thread_count
from ethobench.core.video import Pictures, VideoInfo
from ethobench.features.video_motion import MAX_RATE, NAMES, MotionEncoder, estimate_background, reduced_size, to_gray
from ethobench.training.device import choose_device, require_torch

MOTION = "motion"
MOTION_REVISION = 1
"""Raised when motion features change, so that features of two revisions are not mixed."""
LAYOUTS = {"NCHW": 1, "NTCHW": 2, "NCTHW": 2}
Samples = NDArray[np.float32]
Run = Callable[[Samples], Samples]


class VideoEncoder(Protocol):
    """Computes features of the pictures of a video.

    Attributes
    ----------
    id : str
        Name and revision, or name and hash of the file; features of different encoders have different ids.
    """

    id: str

    def stride(self, rate: float) -> int:
        """Return the frames from one sample to the next."""

    def encode(self, info: VideoInfo, times: NDArray[np.float64]) -> Iterator[tuple[int, Samples]]:
        """Yield the first sample and the features (n_samples, n_features) of consecutive samples; samples that are skipped are missing.

        Parameters
        ----------
        info : VideoInfo
        times : array of float64
            Time of each sample in seconds, increasing.
        """

    def names(self, width: int) -> list[str]:
        """Return the names of the features."""


class MotionVideoEncoder:
    """The encoder `motion`; see `ethobench.features.video_motion`."""

    id = f"{MOTION}{MOTION_REVISION}"

    def stride(self, rate: float) -> int:
        """Return the frames from one sample to the next: about 30 samples per second."""
        return max(1, round(rate / MAX_RATE))

    def encode(self, info: VideoInfo, times: NDArray[np.float64]) -> Iterator[tuple[int, Samples]]:
        """Yield the features of one sample at a time."""
        size = reduced_size(info.width, info.height)
        encoder = MotionEncoder(estimate_background(info.path, info.duration, size), info.rate / self.stride(info.rate))
        for sample, picture in enumerate(Pictures(info.path).at(times.tolist())):
            if picture is not None:
                yield sample, encoder.encode(to_gray(picture, size))[None]

    def names(self, width: int) -> list[str]:
        """Return the names of the features."""
        return [f"{self.id}/{name}" for name in NAMES]


@dataclass(frozen=True)
class EncoderInput:
    """Input of a network, from the TOML file beside it; see the module."""

    size: tuple[int, int]
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    color: str = "rgb"
    frames: int = 1
    step: int = 1
    stride: int = 1
    layout: str = "NCHW"
    batch: int = 16
    output: int = 0

    @classmethod
    def read(cls, path: Path) -> EncoderInput:
        """Read the description of an encoder.

        Raises
        ------
        FormatError
            If the file does not exist, or a value is not valid.
        """
        if not path.is_file():
            example = "size = [224, 224], mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225], stride = 1, one per line"
            raise FormatError(path, f"no such file: it describes the input of the encoder, such as: {example}")
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FormatError(path, f"not a valid TOML file ({error})") from None
        expected = [field.name for field in fields(cls)]
        if unknown := [name for name in values if name not in expected]:
            raise FormatError(path, f"unknown settings: {', '.join(unknown)}; expected: {', '.join(expected)}")
        if "size" not in values:
            raise FormatError(path, "no size; such as: size = [224, 224]")
        try:
            settings: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
            described = cls(**settings)
            described._check()
        except (TypeError, ValueError) as error:
            raise FormatError(path, f"invalid value: {error}") from None
        return described

    def _check(self) -> None:
        if len(self.size) != 2 or not all(isinstance(n, int) and 0 < n <= 4096 for n in self.size):
            raise ValueError(f"size must be width and height in pixels, got {list(self.size)}")
        if self.color not in ("rgb", "gray"):
            raise ValueError(f'color must be "rgb" or "gray", got {self.color!r}')
        for name in ("frames", "step", "stride", "batch"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ValueError(f"{name} must be an integer >= 1, got {getattr(self, name)!r}")
        if not isinstance(self.output, int) or self.output < 0:
            raise ValueError(f"output must be an integer >= 0, got {self.output!r}")
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {self.layout!r}")
        if self.frames > 1 and self.layout == "NCHW":
            raise ValueError("several frames need the layout NTCHW or NCTHW")
        for name in ("mean", "std"):
            values = getattr(self, name)
            if len(values) not in (1, self.channels) or not all(np.isfinite(v) and (name == "mean" or v > 0) for v in values):
                raise ValueError(f"{name} must be one number, or {self.channels}, got {list(values)}")

    @property
    def channels(self) -> int:
        """Number of colors."""
        return 3 if self.color == "rgb" else 1

    def picture(self, picture: Any) -> Samples:
        """Return a picture of PyAV as an array (channels, height, width), normalized."""
        resized = picture.reformat(width=self.size[0], height=self.size[1], format="rgb24" if self.color == "rgb" else "gray").to_ndarray()
        values = np.asarray(resized, dtype=np.float32).reshape(self.size[1], self.size[0], self.channels).transpose(2, 0, 1) / 255
        mean, std = (np.array(v, dtype=np.float32)[:, None, None] for v in (self.mean, self.std))
        return np.asarray((values - mean) / std)

    def join(self, samples: list[list[Samples]]) -> Samples:
        """Return samples of one or several pictures in the layout of the network."""
        values = np.stack([np.stack(pictures) for pictures in samples])
        if self.layout == "NCHW":
            return np.ascontiguousarray(values[:, 0])
        return np.ascontiguousarray(values.transpose(0, 2, 1, 3, 4) if self.layout == "NCTHW" else values)


class NetworkEncoder:
    """A network of the user; see the module for its description.

    Parameters
    ----------
    path : Path
        ``.onnx``, or ``.pt`` for TorchScript.
    trust : bool
        Whether the user trusts the file. TorchScript is a program, which is run.
    """

    def __init__(self, path: Path, *, trust: bool = False) -> None:
        if not path.is_file():
            raise FormatError(path, "no such file")
        self.input = EncoderInput.read(path.with_suffix(".toml"))
        content = path.read_bytes()
        digest = hashlib.blake2b(content + repr(self.input).encode(), digest_size=4).hexdigest()
        self.id = f"{path.stem}-{digest}"
        self.path = path
        if path.suffix.lower() == ".onnx":
            self.run = _open_onnx(path, content, self.input.output)
        else:
            if not trust:
                raise EthobenchError(
                    Message(
                        f"{path} is a TorchScript file, which is a program and not only weights: running it can do whatever its author "
                        "wrote. If you trust it, use ",
                        Option("trust_encoder", True),
                        "; otherwise export the network to ONNX",
                    )
                )
            self.run = _open_torchscript(path, self.input.output)

    def stride(self, rate: float) -> int:
        """Return the frames from one sample to the next."""
        return self.input.stride

    def encode(self, info: VideoInfo, times: NDArray[np.float64]) -> Iterator[tuple[int, Samples]]:
        """Yield the features of a batch of samples at a time."""
        described = self.input
        offsets = (np.arange(described.frames) - (described.frames - 1) / 2) * described.step / info.rate
        needed, inverse = np.unique(np.maximum(np.round(times[:, None] + offsets, 6), 0), return_inverse=True)
        pictures = enumerate(Pictures(info.path).at(needed.tolist()))
        buffer: dict[int, Samples | None] = {}
        first, batch = 0, []
        for sample, indices in enumerate(inverse.reshape(len(times), described.frames)):
            buffer = {index: values for index, values in buffer.items() if index >= indices[0]}
            while indices[-1] not in buffer:
                index, picture = next(pictures)
                buffer[index] = None if picture is None else described.picture(picture)
            sequence = [values for index in indices if (values := buffer[int(index)]) is not None]
            if len(sequence) == described.frames:
                batch.append(sequence)
            if batch and (len(sequence) < described.frames or len(batch) == described.batch):
                yield first, self._encode(batch)
                batch = []
            first = first if batch else sample + 1
        if batch:
            yield first, self._encode(batch)

    def _encode(self, batch: list[list[Samples]]) -> Samples:
        """Run the network; maps and tokens are averaged."""
        try:
            values = self.run(self.input.join(batch))
        except EthobenchError:
            raise
        except Exception as error:  # whatever the runtime of the network raises
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise FormatError(self.path, f"the encoder failed on {len(batch)} samples ({lines[-1]})") from None
        if values.ndim < 2 or len(values) != len(batch) or values.dtype.kind not in "fiu":
            raise FormatError(self.path, f"expected one row of numbers per sample, got an output of shape {values.shape} for {len(batch)}")
        if values.ndim > 2:
            values = values.mean(axis=1 if values.ndim == 3 else tuple(range(2, values.ndim)))
        return np.asarray(values, dtype=np.float32)

    def names(self, width: int) -> list[str]:
        """Return the names of the features: numbers after the id of the encoder."""
        return [f"{self.id}/{i}" for i in range(width)]


def open_encoder(name: str, *, trust: bool = False) -> VideoEncoder:
    """Open an encoder.

    Parameters
    ----------
    name : str
        ``"motion"``, or the path of an ONNX (``.onnx``) or TorchScript (``.pt``) file.
    trust : bool
        Whether a TorchScript file may be run.

    Raises
    ------
    NotFoundError
        If there is no such encoder.
    EthobenchError
        If a TorchScript file is not trusted.

    Examples
    --------
    >>> open_encoder("motion").id
    'motion1'
    """
    if name == MOTION:
        return MotionVideoEncoder()
    if Path(name).suffix.lower() in (".onnx", ".pt"):
        return NetworkEncoder(Path(name), trust=trust)
    raise NotFoundError(f"no encoder {name!r}; use {MOTION}, or the path of an .onnx or .pt file")


def _open_onnx(path: Path, content: bytes, output: int) -> Run:
    """Open an ONNX network; from memory, so that it cannot refer to other files."""
    try:
        import onnxruntime
    except ImportError:
        raise EthobenchError(f"{path}: ONNX encoders need onnxruntime; install it with: pip install 'ethobench[onnx]'") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = thread_count()
    try:
        session = onnxruntime.InferenceSession(content, options, providers=onnxruntime.get_available_providers())
    except Exception as error:  # onnxruntime raises its own classes for damaged files
        raise FormatError(path, f"not a valid ONNX file, or its weights are in another file ({str(error).splitlines()[0]})") from None
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1:
        raise FormatError(path, f"expected one input, got {len(inputs)}: {', '.join(each.name for each in inputs)}")
    if output >= len(outputs):
        raise FormatError(path, f"output {output} does not exist; the network has {len(outputs)}")
    return lambda samples: np.asarray(session.run([outputs[output].name], {inputs[0].name: samples})[0])


def _open_torchscript(path: Path, output: int) -> Run:
    """Open a TorchScript network that the user trusts."""
    require_torch("a TorchScript encoder")
    import torch

    device = choose_device()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated
            module = torch.jit.load(str(path), map_location=device).eval()  # type: ignore[no-untyped-call]
    except Exception as error:  # torch raises RuntimeError and others for damaged files
        raise FormatError(path, f"not a valid TorchScript file ({str(error).strip().splitlines()[0]})") from None

    def run(samples: Samples) -> Samples:
        with torch.inference_mode():
            values = module(torch.from_numpy(samples).to(device))
        values = values[output] if isinstance(values, (tuple, list)) else values
        return np.asarray(values.cpu().numpy())

    return run
