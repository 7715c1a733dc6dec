"""Motion features of videos, for a teacher of recordings that have neither poses nor signals: computed once, kept in the user's cache."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from ethobench.app.recordings import OpenRecording
from ethobench.core import Signals
from ethobench.core.errors import EthobenchError
from ethobench.core.names import file_stem, file_stems
from ethobench.core.progress import Listener, progress_listener, progress_range
from ethobench.datasets.frame_features import open_features
from ethobench.formats.parse_cache import cache_folder
from ethobench.training.video_embedding import embed_videos


def needs_video_features(recording: OpenRecording) -> bool:
    """Return whether the first camera's video is all that a recording has to learn from."""
    source = recording.recording
    return not source.has_signals and bool(source.cameras) and not recording.locked


def has_video_features(recording: OpenRecording) -> bool:
    """Return whether the motion features of a recording's video are computed."""
    path = _features_path(_video(recording))
    return path.is_file() and path.with_name(f"{path.name}.json").is_file()


def read_video_features(recording: OpenRecording) -> Signals:
    """Return the motion features of a recording's video, one row for each frame of the viewer."""
    signals, _ = open_features([_features_path(_video(recording))], recording.rate, recording.n_frames)
    return signals


def compute_video_features(recordings: Sequence[OpenRecording], progress: Listener | None = None) -> list[str]:
    """Compute the motion features of videos. Those that are computed already are kept.

    Parameters
    ----------
    recordings : sequence of OpenRecording
        For which `needs_video_features` is true.
    progress : callable, optional
        Called with the stage and the fraction that is done. It may raise an error to interrupt.

    Returns
    -------
    list of str
        Why videos were skipped.

    Raises
    ------
    EthobenchError
        If no video can be read.
    """
    failures: list[str] = []
    with nullcontext() if progress is None else progress_listener(progress):
        for number, recording in enumerate(recordings):
            video = _video(recording)
            with progress_range(number / len(recordings), (number + 1) / len(recordings)):
                results = embed_videos([video], _features_path(video).parent)
                failures += [f"{video.name}: {result.error}" for result in results if result.error]
    if failures and len(failures) == len(recordings):
        raise EthobenchError(f"features of the videos cannot be computed: {failures[0]}")
    return failures


def _video(recording: OpenRecording) -> Path:
    return recording.recording.cameras[0].path.resolve()


def _features_path(video: Path) -> Path:
    """Return where the features of a video are cached; it changes if the file does. `embed_videos` names its files like the videos."""
    try:
        status = video.stat()
        identity = repr((str(video), status.st_size, status.st_mtime_ns))
    except OSError:
        identity = str(video)
    digest = hashlib.blake2b(identity.encode(), digest_size=12).hexdigest()
    (stem,) = file_stems([video.stem])
    return cache_folder() / "video_features" / f"{file_stem(video.stem)}-{digest}" / f"{stem}.npy"
