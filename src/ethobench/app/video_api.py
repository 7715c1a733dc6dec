"""HTTP API of videos: the files with byte ranges, their clocks, conversion for the browser, and motion energy.

=============================================  ==================================================================================
``GET  /api/recordings/0/video?camera=0``      the video, or the requested byte range of it; ``&converted=1`` the converted one
``GET  /api/recordings/0/cameras``             ``{"rate", "irregular", "cameras": [{name, offset, codec, width, height, n_frames,
                                               converted, error}], "notes": []}``; frame k is at (k + 0.5) / rate seconds unless
                                               ``irregular``
``GET  /api/recordings/0/frame_times``         the start of each frame of a video with a variable frame rate: float64, seconds
``POST /api/recordings/0/convert``             ``{"camera": 0}``: convert for the browser in the background; answers a job
``POST /api/recordings/0/motion``              compute the motion energy in the background; answers a job
=============================================  ==================================================================================

Jobs are those of `ethobench.app.exports_api`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from ethobench.app.background import BackgroundJobs, JobResult
from ethobench.app.project import VIDEO_TYPES, Project
from ethobench.app.recordings import OpenRecording
from ethobench.app.requests import change_route, query_integer, read_route
from ethobench.app.traces import motion_lane
from ethobench.core import Recording
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.files import atomic_path
from ethobench.core.names import file_stem
from ethobench.core.video import Camera, probe
from ethobench.datasets.frame_times import FrameTimes, camera_times, frame_times
from ethobench.features.motion_energy import motion_energy
from ethobench.figures.video_writing import transcode
from ethobench.formats.parse_cache import cache_folder

ONE = "/api/recordings/{recording:int}"


class VideoApi:
    """Handlers for the requests of the page about videos."""

    def __init__(self, project: Project, jobs: BackgroundJobs) -> None:
        self.project, self.jobs = project, jobs

    @property
    def routes(self) -> list[Route]:
        """All routes."""
        return [
            read_route(f"{ONE}/video", self.video),
            read_route(f"{ONE}/cameras", self.cameras),
            read_route(f"{ONE}/frame_times", self.frame_times),
            change_route(f"{ONE}/convert", self.convert),
            change_route(f"{ONE}/motion", self.motion),
        ]

    def video(self, request: Request) -> Response:
        """Return the video of a camera, or the requested byte range of it."""
        camera = query_integer(request, "camera") if "camera" in request.query_params else 0
        path = self._camera(request.path_params["recording"], camera).path.resolve()
        if request.query_params.get("converted") == "1":
            path = converted_path(path)
            if not path.is_file():
                raise NotFoundError("this video is not converted yet")
        return FileResponse(path, media_type=VIDEO_TYPES[path.suffix.lower()])

    def cameras(self, request: Request) -> Response:
        """Describe the cameras of a recording and the clock of its frames; reads its signals."""
        index = request.path_params["recording"]
        recording, notes = self.project.recording(index), []
        try:
            times = _frame_times(recording)
        except EthobenchError as error:
            times = FrameTimes(recording.rate)
            notes.append(str(error))
        if times.times is not None:
            notes.append("the frame rate of the video varies; each row of the poses is one picture")
        payload = {
            "rate": times.rate,
            "irregular": times.times is not None,
            "cameras": [_describe(camera) for camera in self._cameras(index)],
            "notes": notes,
        }
        return JSONResponse(payload)

    def frame_times(self, request: Request) -> Response:
        """Return the start of each frame as little-endian float64, in seconds."""
        times = _frame_times(self.project.recording(request.path_params["recording"])).times
        if times is None:
            raise NotFoundError("the frames of this recording are regular")
        return Response(np.asarray(times, dtype="<f8").tobytes(), media_type="application/octet-stream")

    def convert(self, request: Request, body: dict[str, Any]) -> Any:
        """Convert the video of a camera to H.264, in the background; the result is cached."""
        camera = body.get("camera", 0)
        if type(camera) is not int:
            raise EthobenchError(f"camera must be an integer, got {camera!r}")
        path = self._camera(request.path_params["recording"], camera).path.resolve()
        target = converted_path(path)

        def work(folder: Path) -> JobResult:
            damaged = 0 if target.is_file() else transcode(path, target, overwrite=True)
            return JobResult(notes=[f"{path.name} is damaged: {damaged} packets were skipped"] if damaged else [])

        return self.jobs.start(work, f"convert {target.name}").payload()

    def motion(self, request: Request, body: dict[str, Any]) -> Any:
        """Compute the motion energy of the first camera in the background; the result is cached."""
        index = request.path_params["recording"]
        recording, camera = self.project.recording(index), self._camera(index, 0)

        def work(folder: Path) -> JobResult:
            if recording.motion is None:
                recording.motion = motion_lane(_cached_motion(recording, camera))
            return JobResult()

        return self.jobs.start(work, f"motion {index}").payload()

    def _cameras(self, index: int) -> list[Camera]:
        recording = self.project.recording(index).recording
        return [camera for camera in recording.cameras if self.project.can_show(camera.path)]

    def _camera(self, index: int, number: int) -> Camera:
        cameras = self._cameras(index)
        if not 0 <= number < len(cameras):
            raise NotFoundError("this recording has no video that can be shown")
        return cameras[number]


def _frame_times(recording: OpenRecording) -> FrameTimes:
    """Return the times of the frames as the viewer counts them."""
    source = recording.recording
    return frame_times(Recording(source.id, rate=recording.rate, signals=recording.signals, video=source.video))


def _describe(camera: Camera) -> dict[str, Any]:
    description: dict[str, Any] = {"name": camera.path.name, "offset": camera.offset, "error": ""}
    try:
        video = probe(camera.path)
    except EthobenchError as error:
        return {**description, "error": str(error), "converted": False}
    facts = {"codec": video.codec, "width": video.width, "height": video.height, "duration": video.duration}
    return {**description, **facts, "converted": converted_path(camera.path.resolve()).is_file()}


def converted_path(path: Path) -> Path:
    """Return where the converted version of a video is cached; it changes if the file does."""
    return cache_folder() / "converted_videos" / f"{_digest(path)}.mp4"


def _digest(path: Path, *more: object) -> str:
    status = path.stat()
    identity = repr((str(path), status.st_size, status.st_mtime_ns, *more))
    return f"{file_stem(path.stem)}-{hashlib.blake2b(identity.encode(), digest_size=12).hexdigest()}"


def _cached_motion(recording: OpenRecording, camera: Camera) -> np.ndarray[Any, Any]:
    times = camera_times(_frame_times(recording), camera, np.arange(recording.n_frames))
    clock = hashlib.blake2b(times.tobytes(), digest_size=8).hexdigest()
    path = cache_folder() / "motion" / f"{_digest(camera.path.resolve(), clock)}.npy"
    try:
        energy = np.load(path, allow_pickle=False)
        if energy.shape == times.shape:
            return np.asarray(energy, dtype=np.float32)
    except (OSError, ValueError, EOFError):  # not cached yet, or damaged
        pass
    energy = motion_energy(camera.path, times)
    with atomic_path(path, overwrite=True, durable=False) as temporary, temporary.open("wb") as file:
        np.save(file, energy)
    return energy
