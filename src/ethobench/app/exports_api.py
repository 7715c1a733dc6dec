"""HTTP API of exports that take long: clips, grids and overlay videos; and timelines and filmstrips.

==========================================  =====================================================================================
``POST /api/recordings/0/clips``            ``{"what": "bout", "track": "anna", "bout": {"start": 10, "stop": 40, "behavior":
                                            "attack", "subject": null}}``, or ``"what": "clips"`` or ``"grid"`` with
                                            ``"behavior"`` (null for all) and ``"all"`` (all recordings), or ``"what":
                                            "overlay"`` with ``"tracks"``; and ``margin``, ``max``, ``poses``, ``labels``,
                                            ``time``, ``height``, ``camera``. Answers a job
``GET  /api/recordings/0/timeline``         ``?format=svg&track=anna&track=ben``: the timeline as SVG, PDF or PNG; ``start`` and
                                            ``stop`` in seconds draw a part of it
``GET  /api/recordings/0/strip``            ``?start=10&stop=40&subject=``: a filmstrip of a segment as JPEG, 8 pictures
``GET  /api/jobs/1``                        ``{"job", "state", "stage", "fraction", "error", "notes", "name"}``; the state is
                                            waiting, running, done, failed or cancelled
``POST /api/jobs/1/cancel``                 cancel a job
``GET  /api/jobs/1/file``                   the file of a job that is done
==========================================  =====================================================================================
"""

from __future__ import annotations

import json
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from ethobench.app.background import BackgroundJobs, JobResult, JobState
from ethobench.app.project import Project
from ethobench.app.requests import change_route, query_integer, read_route
from ethobench.core import Recording
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.names import file_stem
from ethobench.figures.clips import (
    GRID_SIZE,
    ClipSummary,
    SelectedBout,
    select_bouts,
    write_clip,
    write_clips,
    write_grids,
    write_overlay,
)
from ethobench.figures.filmstrips import Filmstrips
from ethobench.figures.scenes import ClipStyle
from ethobench.figures.timelines import FORMATS, write_timeline

ONE = "/api/recordings/{recording:int}"
KINDS = ("bout", "clips", "grid", "overlay")
MAX_CLIPS = 500
MAX_FILMSTRIP_RECORDINGS = 16
MAX_STRIPS = 1000  # kept in memory, about 20 kB each
MEDIA_TYPES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}


class ExportsApi:
    """Handlers for the requests of the page for clips and timelines."""

    def __init__(self, project: Project, jobs: BackgroundJobs) -> None:
        self.project, self.jobs = project, jobs
        self._filmstrips = lru_cache(MAX_FILMSTRIP_RECORDINGS)(lambda index: Filmstrips(self._recording(index, [])))
        self._strips = lru_cache(MAX_STRIPS)(self._draw_strip)
        self._drawing = threading.Lock()

    @property
    def routes(self) -> list[Route]:
        """All routes."""
        job = "/api/jobs/{job:int}"
        return [
            change_route(f"{ONE}/clips", self.clips),
            read_route(f"{ONE}/timeline", self.timeline),
            read_route(f"{ONE}/strip", self.strip),
            read_route(job, self.status),
            read_route(f"{job}/file", self.file),
            change_route(f"{job}/cancel", self.cancel),
        ]

    def clips(self, request: Request, body: dict[str, Any]) -> Any:
        """Start to write clips, a grid or an overlay video."""
        index, options = request.path_params["recording"], ClipRequest.parse(body)
        indices = range(len(self.project.recordings)) if options.all_recordings else [index]
        recordings = [self._recording(i, options.tracks) for i in indices]
        recordings = [recording for recording in recordings if recording.annotations or options.kind == "overlay"]
        if not recordings:
            raise NotFoundError(f"{', '.join(options.tracks)!r} has annotated none of these recordings")
        return self.jobs.start(lambda folder: options.write(recordings, folder, self.project.name)).payload()

    def timeline(self, request: Request) -> Response:
        """Return the timeline of a recording as a file to download."""
        kind, names = request.query_params.get("format", "svg"), request.query_params.getlist("track")
        if kind not in FORMATS:
            raise EthobenchError(f"format must be one of {', '.join(FORMATS)}, got {kind!r}")
        recording = self._recording(request.path_params["recording"], names)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{file_stem(recording.id)}.{kind}"
            write_timeline(
                recording, path, [*recording.annotations], start=_seconds(request, "start") or 0.0, stop=_seconds(request, "stop")
            )
            return Response(path.read_bytes(), media_type=MEDIA_TYPES[kind], headers=_download_headers(path.name, []))

    def strip(self, request: Request) -> Response:
        """Return a filmstrip of a segment."""
        index, subject = request.path_params["recording"], request.query_params.get("subject") or None
        start, stop = query_integer(request, "start"), query_integer(request, "stop")
        stop = min(stop, self.project.recording(index).n_frames)
        with self._drawing:
            return Response(self._strips(index, start, stop, subject), media_type="image/jpeg")

    def _draw_strip(self, index: int, start: int, stop: int, subject: str | None) -> bytes:
        content = BytesIO()
        self._filmstrips(index).draw(start, stop, individual=subject).save(content, "JPEG", quality=82)
        return content.getvalue()

    def status(self, request: Request) -> Any:
        """Return the state of a job."""
        return self.jobs.job(request.path_params["job"]).payload()

    def cancel(self, request: Request, body: dict[str, Any]) -> Any:
        """Cancel a job."""
        return self.jobs.cancel(request.path_params["job"]).payload()

    def file(self, request: Request) -> Response:
        """Return the file of a job that is done."""
        job = self.jobs.job(request.path_params["job"])
        if job.state is not JobState.DONE or job.result is None or job.result.path is None:
            raise MismatchError(f"job {job.number} has no file ({job.state})")
        return FileResponse(
            job.result.path, media_type="application/octet-stream", headers=_download_headers(job.result.name, job.result.notes)
        )

    def _recording(self, index: int, names: Sequence[str]) -> Recording:
        """Return a recording with some of its tracks, or all if there are no names, and the videos that may be shown."""
        opened = self.project.recording(index)
        source = opened.recording
        tracks = {track.name: track.annotation for track in opened.tracks if not names or track.name in names}
        cameras = tuple(camera for camera in source.cameras if self.project.can_show(camera.path))
        return Recording(
            source.id,
            individual=source.individual,
            rate=opened.rate,
            n_frames=opened.n_frames,
            signals=opened.signals,
            annotations=tracks,
            video=cameras[0].path if cameras else None,
            cameras=cameras,
        )


@dataclass(frozen=True)
class ClipRequest:
    """What the page wants to export."""

    kind: str
    tracks: tuple[str, ...]
    behavior: str | None
    bout: dict[str, Any]
    margin: float
    max_bouts: int
    camera: int
    style: ClipStyle
    all_recordings: bool

    @classmethod
    def parse(cls, body: dict[str, Any]) -> ClipRequest:
        """Validate the body of a request."""
        kind, tracks = body.get("what"), body.get("tracks", [body.get("track")])
        if kind not in KINDS:
            raise EthobenchError(f"what must be one of {', '.join(KINDS)}, got {kind!r}")
        if not isinstance(tracks, list) or not all(isinstance(name, str) for name in tracks):
            raise EthobenchError("the tracks must be names")
        behavior, bout = body.get("behavior"), body.get("bout")
        if behavior is not None and not isinstance(behavior, str):
            raise EthobenchError(f"the behavior must be a name, got {behavior!r}")
        if kind == "bout" and not isinstance(bout, dict):
            raise EthobenchError("no bout is selected")
        margin = body.get("margin", 1.0)
        if not isinstance(margin, int | float) or not 0 <= margin <= 600:
            raise EthobenchError(f"margin must be a number of seconds between 0 and 600, got {margin!r}")
        default = GRID_SIZE if kind == "grid" else MAX_CLIPS
        max_bouts, camera, height = (_integer(body, *entry) for entry in (("max", default), ("camera", 0), ("height", 720)))
        style = ClipStyle(
            poses=body.get("poses") is True, labels=body.get("labels") is not False, time=body.get("time") is not False, height=height
        )
        return cls(
            str(kind),
            tuple(tracks),
            behavior,
            bout if isinstance(bout, dict) else {},
            float(margin),
            min(max(max_bouts, 1), MAX_CLIPS),
            camera,
            style,
            body.get("all") is True and kind in ("clips", "grid"),
        )

    def write(self, recordings: list[Recording], folder: Path, project: str) -> JobResult:
        """Write the files; several are packed into one ZIP file."""
        first = recordings[0]
        stem = file_stem(first.id if len(recordings) == 1 else project)
        if self.kind == "overlay":
            path = folder / "overlay.mp4"
            summary = write_overlay(first, path, style=self.style, camera=self.camera)
            return JobResult(path, f"{stem}.overlay.mp4", summary.notes)
        if self.kind == "bout":
            path = folder / "bout.mp4"
            summary = write_clip(self._bout(first), path, margin=self.margin, style=self.style, camera=self.camera)
            return JobResult(path, f"{stem}.{self._bout(first).start}.mp4", summary.notes)
        bouts = select_bouts(recordings, None if self.behavior is None else [self.behavior], max_bouts=self.max_bouts)
        options: dict[str, Any] = {"margin": self.margin, "style": self.style, "camera": self.camera}
        write = write_grids if self.kind == "grid" else write_clips
        return _packed(write(bouts, folder / "clips", **options), folder, f"{stem}.{self.kind}")

    def _bout(self, recording: Recording) -> SelectedBout:
        """Find the selected bout, so that nothing is exported that is not in the track."""
        if not recording.annotations:
            raise NotFoundError(f"recording {recording.id!r} has no track {', '.join(self.tracks)!r}")
        for bout in select_bouts([recording], [str(self.bout.get("behavior"))]):
            same_subject = bout.subject == (self.bout.get("subject") or "")
            if (bout.start, bout.stop) == (self.bout.get("start"), self.bout.get("stop")) and same_subject:
                return bout
        raise NotFoundError("the selected bout is not in the track any more; select it again")


def _packed(summary: ClipSummary, folder: Path, stem: str) -> JobResult:
    """Return the only file of a summary, or a ZIP file with all of them."""
    if len(summary.files) == 1:
        return JobResult(summary.files[0], f"{stem}.mp4", summary.notes)
    path = folder / "clips.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:  # videos are compressed already
        for file in sorted((folder / "clips").rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder / "clips").as_posix())
    return JobResult(path, f"{stem}.zip", summary.notes)


def _seconds(request: Request, name: str) -> float | None:
    """Return a time in seconds of the query; None if it has none."""
    text = request.query_params.get(name, "")
    try:
        seconds = float(text) if text else None
    except ValueError:
        seconds = float("nan")
    if seconds is not None and not 0 <= seconds < 1e9:
        raise EthobenchError(f"{name} must be a number of seconds, got {text!r}")
    return seconds


def _integer(body: dict[str, Any], name: str, default: int) -> int:
    value = body.get(name, default)
    if type(value) is not int:
        raise EthobenchError(f"{name} must be an integer, got {value!r}")
    return value


def _download_headers(name: str, notes: list[str]) -> dict[str, str]:
    return {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}", "x-ethobench-notes": quote(json.dumps(notes))}
