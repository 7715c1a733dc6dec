"""Embedding of videos: one file of per-frame features for each video, and a manifest to train or predict with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, PathExistsError
from ethobench.core.files import atomic_path, read_json, write_json
from ethobench.core.messages import Message, Option
from ethobench.core.names import file_stems
from ethobench.core.progress import report_progress
from ethobench.core.video import VIDEO_SUFFIXES, VideoInfo, probe
from ethobench.datasets.draft_values import number_text
from ethobench.datasets.frame_features import FORMAT, FORMAT_VERSION
from ethobench.datasets.manifest_tables import MANIFEST
from ethobench.formats.tables import write_table
from ethobench.training.video_encoders import VideoEncoder, open_encoder

COLUMNS = ("recording", "individual", "rate", "video", "features")
REPORT_EVERY = 50


@dataclass(frozen=True)
class EmbeddedVideo:
    """Result of one video.

    Attributes
    ----------
    video, features : Path
        The video, and the NPY file of its features.
    status : str
        ``"computed"``, ``"finished before"`` or ``"failed"``.
    n_samples, n_missing : int
        Rows of the file, and those without features because the video has no picture there.
    rate : float
        Frames per second of the video.
    error : str
        Why it failed.
    """

    video: Path
    features: Path
    status: str
    n_samples: int = 0
    n_missing: int = 0
    rate: float = 0.0
    error: str = ""


def find_videos(paths: Iterable[str | Path]) -> list[Path]:
    """Return videos, and those in folders.

    Raises
    ------
    NotFoundError
        If a path does not exist, or a folder has no video.
    """
    videos: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in VIDEO_SUFFIXES and p.is_file()) if path.is_dir() else [path]
        if not inside or not inside[0].exists():
            raise NotFoundError(f"{path} has no videos" if path.is_dir() else f"{path} does not exist")
        videos += inside
    return list(dict.fromkeys(videos))


def embed_videos(
    videos: Sequence[str | Path], out: str | Path, encoder: str = "motion", *, trust_encoder: bool = False, overwrite: bool = False
) -> Iterator[EmbeddedVideo]:
    """Compute per-frame features of videos; yield the result of each video.

    ``OUT/VIDEO.npy`` has one row per sample, NaN where the video has no picture. ``OUT/VIDEO.npy.json`` states names, rate and stride, and
    the encoder. Files that are finished are kept. A video that cannot be read does not stop the others.

    Parameters
    ----------
    videos : sequence of path
        Videos and folders of videos.
    out : path
        Folder for the features.
    encoder : str
        ``"motion"``, or the path of an ONNX or TorchScript file that a TOML file beside it describes.
    trust_encoder : bool
        Whether a TorchScript file, which is a program, may be run.
    overwrite : bool
        Whether to replace features of another encoder.

    Raises
    ------
    PathExistsError
        If the folder has features of another encoder and `overwrite` is False.

    See Also
    --------
    write_embedding_manifest : list the features in a ``recordings.csv``.

    Examples
    --------
    >>> from ethobench import embed_videos
    >>> results = embed_videos([], folder / "features")
    >>> list(results)
    []
    """
    opened, folder = open_encoder(encoder, trust=trust_encoder), Path(out)
    sources = find_videos(videos)
    for video, stem in zip(sources, file_stems(path.stem for path in sources), strict=True):
        path = folder / f"{stem}.npy"
        existing = _existing(path, video)
        if existing is not None and existing.get("encoder") == opened.id:
            rows = np.load(path, mmap_mode="r", allow_pickle=False)
            yield EmbeddedVideo(video, path, "finished before", len(rows), int(existing["missing"]), float(existing["video_rate"]))
            continue
        if path.exists() and not overwrite:
            raise PathExistsError(
                Message(f"{path} already exists, from another encoder or another video (use ", Option("overwrite", True), " to replace it)")
            )
        path.unlink(missing_ok=True)
        try:
            yield _embed(video, path, opened)
        except (EthobenchError, OSError) as error:
            if isinstance(error, FormatError) and error.path == getattr(opened, "path", None):
                raise  # every video would fail
            yield EmbeddedVideo(video, path, "failed", error=str(error))


def _identity(video: Path) -> list[int]:
    """Return what changes when a video is replaced."""
    status = video.stat()
    return [status.st_size, status.st_mtime_ns]


def _existing(path: Path, video: Path) -> dict[str, Any] | None:
    """Return the metadata of a finished file of this video; None if there is none."""
    sidecar = path.with_name(f"{path.name}.json")
    if not (path.is_file() and sidecar.is_file() and video.is_file()):
        return None
    try:
        content = read_json(sidecar)
    except EthobenchError:
        return None
    keys = {"encoder", "missing", "video_rate", "video_identity"}
    is_valid = isinstance(content, dict) and keys <= {*content} and content.get("format_version") == FORMAT_VERSION
    return content if is_valid and content["video_identity"] == _identity(video) else None


def _embed(video: Path, path: Path, encoder: VideoEncoder) -> EmbeddedVideo:
    """Compute the features of one video and write them, after the metadata: metadata without features are of a video in progress."""
    info = probe(video)
    stride = encoder.stride(info.rate)
    times = (np.arange(0, info.n_frames, stride, dtype=np.float64) + 0.5) / info.rate
    filled = np.zeros(len(times), dtype=bool)
    values: np.memmap[Any, Any] | None = None
    path.parent.mkdir(parents=True, exist_ok=True)
    sidecar = path.with_name(f"{path.name}.json")
    with atomic_path(path) as temporary:
        for first, rows in encoder.encode(info, times):
            if values is None:
                values = _create(temporary, (len(times), rows.shape[1]))
            values[first : first + len(rows)] = rows
            filled[first : first + len(rows)] = True
            if first % REPORT_EVERY == 0:
                report_progress(video.name, first / len(times))
        if values is None:
            raise FormatError(video, "no picture can be decoded; is the file complete?")
        width = values.shape[1]
        values.flush()
        del values
        write_json(sidecar, _metadata(info, encoder, width, stride, int((~filled).sum())), overwrite=True)
    return EmbeddedVideo(video, path, "computed", len(times), int((~filled).sum()), info.rate)


def _create(path: Path, shape: tuple[int, int]) -> np.memmap[Any, Any]:
    """Create an NPY file of missing values in an existing empty file."""
    with path.open("r+b") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        offset = file.tell()
        file.truncate(offset + 4 * shape[0] * shape[1])
    values = np.memmap(path, dtype="<f4", mode="r+", offset=offset, shape=shape)
    values[:] = np.nan
    return values


def _metadata(info: VideoInfo, encoder: VideoEncoder, width: int, stride: int, missing: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "ethobench": version("ethobench"),
        "encoder": encoder.id,
        "names": encoder.names(width),
        "rate": info.rate / stride,
        "stride": stride,
        "video": info.path.name,
        "video_rate": info.rate,
        "video_frames": info.n_frames,
        "video_identity": _identity(info.path),
        "missing": missing,
    }


def write_embedding_manifest(results: Sequence[EmbeddedVideo], out: str | Path) -> Path | None:
    """Write a ``recordings.csv`` that lists videos and features, for `predict`, or for `train` once annotations are added.

    Parameters
    ----------
    results : sequence of EmbeddedVideo
    out : path
        The folder of the features.

    Returns
    -------
    Path or None
        None if there is one already, which is never changed.
    """
    path = Path(out) / MANIFEST
    embedded = [result for result in results if result.status != "failed"]
    if path.exists() or not embedded:
        return None
    rows = []
    for result in embedded:
        name = result.features.stem
        rows.append([name, name, number_text(result.rate), _relative(result.video, path.parent), result.features.name])
    with atomic_path(path) as temporary:
        write_table(temporary, COLUMNS, rows)
    return path


def _relative(path: Path, folder: Path) -> str:
    """Return a path relative to a folder, absolute if there is none (other drives)."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:
        return path.resolve().as_posix()
