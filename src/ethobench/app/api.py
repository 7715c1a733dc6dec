"""HTTP API of the viewer. Recordings and lanes are addressed by number, tracks by name; no request contains a file path."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any
from urllib.parse import quote

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ethobench.app.annotator_agreement import agreement_payload
from ethobench.app.blinding import HiddenError, blind_annotator
from ethobench.app.disagreement import next_span
from ethobench.app.ethogram_import import import_entries
from ethobench.app.payloads import (
    bout_payload,
    entry_payload,
    ethogram_editor_payload,
    find_bout,
    moment_payload,
    project_payload,
    recording_payload,
    signal_payload,
    subset_payload,
    track_payload,
    uncertain_payload,
)
from ethobench.app.project import Project, export
from ethobench.app.recordings import LaneTiles
from ethobench.app.requests import MAX_BYTES, TooLargeError, failure, query_integer, read_body
from ethobench.app.suggestions import suggest
from ethobench.app.traces import pose_frames
from ethobench.core import Poses
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, NotFoundError

MAX_IMPORT_BYTES = 16_000_000  # of a file from which behaviors are imported, in base64
MAX_LANES = 100
MAX_EDITS = 1000  # the page sends one or two


class Api:
    """Handlers for the requests of the page, for one project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._lane_tiles: dict[int, LaneTiles] = {}

    @cached_property
    def routes(self) -> list[Route]:
        """All routes."""
        one = "/api/recordings/{recording:int}"
        reads: dict[str, Callable[[Request], Response]] = {
            "/api/project": self.overview,
            "/api/ethogram": self.ethogram,
            "/api/agreement": self.agreement,
            "/api/suggestions": self.suggestions,
            one: self.recording,
            f"{one}/signals": self.signals,
            f"{one}/tiles": self.tiles,
            f"{one}/poses": self.poses,
            f"{one}/at": self.at,
            f"{one}/bout": self.bout,
            f"{one}/next": self.next,
            f"{one}/uncertain": self.uncertain,
            f"{one}/export": self.export,
        }
        changes = (self.start, self.edit, self.watch, self.undo, self.redo)
        session_changes: dict[str, Callable[[dict[str, Any]], Any]] = {
            "/api/ethogram": self.edit_ethogram,
            "/api/ethogram/undo": self.undo_ethogram,
            "/api/subset": self.draw_subset,
        }
        imports = _session_handler(self.import_ethogram, MAX_IMPORT_BYTES)
        return [
            *(Route(path, _read_handler(answer), methods=["GET"]) for path, answer in reads.items()),
            *(Route(path, _session_handler(change), methods=["POST"]) for path, change in session_changes.items()),
            Route("/api/ethogram/import", imports, methods=["POST"]),
            *(Route(f"{one}/{change.__name__}", _change_handler(change), methods=["POST"]) for change in changes),
        ]

    def overview(self, request: Request) -> Response:
        """Return the recordings, ethograms and formats."""
        self.project.refresh_ethogram()
        return JSONResponse(project_payload(self.project))

    def recording(self, request: Request) -> Response:
        """Return the tracks of a recording."""
        return JSONResponse(recording_payload(self.project, request.path_params["recording"]))

    def signals(self, request: Request) -> Response:
        """Return the signal lanes of a recording, and its skeleton."""
        return JSONResponse(signal_payload(self._recording(request)))

    def tiles(self, request: Request) -> Response:
        """Return one tile of several lanes."""
        index, lanes = request.path_params["recording"], request.query_params.getlist("lane")[:MAX_LANES]
        lane_tiles = self._lane_tiles.setdefault(index, LaneTiles(self.project.recording(index)))
        level, tile = query_integer(request, "level"), query_integer(request, "index")
        return JSONResponse([lane_tiles.tile(lane, level, tile) for lane in lanes])

    def poses(self, request: Request) -> Response:
        """Return the keypoint positions of a range of frames."""
        poses = self._recording(request).signals
        if not isinstance(poses, Poses):
            raise NotFoundError("this recording has no poses")
        return Response(
            pose_frames(poses, query_integer(request, "start"), query_integer(request, "stop")), media_type="application/octet-stream"
        )

    def at(self, request: Request) -> Response:
        """Return the bouts of every track at one frame."""
        return JSONResponse(moment_payload(self._recording(request), query_integer(request, "frame")))

    def bout(self, request: Request) -> Response:
        """Return the details of a bout: by its index in a track, or by its frames and behavior."""
        recording, query = self._recording(request), request.query_params
        track = query.get("track", "")
        if "index" in query:
            return JSONResponse(bout_payload(recording, track, query_integer(request, "index")))
        start, stop, behavior = (query_integer(request, name) for name in ("start", "stop", "behavior"))
        return JSONResponse(find_bout(recording, track, start, stop, behavior, query.get("subject", "")))

    def ethogram(self, request: Request) -> Response:
        """Return the behaviors of the session, for the ethogram editor."""
        self.project.refresh_ethogram()
        return JSONResponse(ethogram_editor_payload(self.project))

    def edit_ethogram(self, body: dict[str, Any]) -> Any:
        """Change the ethogram of the session."""
        warnings = self.project.edit_ethogram(_revision(body), body.get("behaviors"), body.get("confirmed"))
        return {**ethogram_editor_payload(self.project), "warnings": warnings}

    def undo_ethogram(self, body: dict[str, Any]) -> Any:
        """Undo the last change of the ethogram."""
        warnings = self.project.undo_ethogram(_revision(body))
        return {**ethogram_editor_payload(self.project), "warnings": warnings}

    def import_ethogram(self, body: dict[str, Any]) -> Any:
        """Return the behaviors of an uploaded file; nothing is saved."""
        name, content = body.get("name"), body.get("content")
        if not isinstance(name, str) or not isinstance(content, str):
            raise EthobenchError("an import must have a name and the content of a file, in base64")
        try:
            decoded = base64.b64decode(content, validate=True)
        except ValueError:
            raise EthobenchError("the content of the file is not valid base64") from None
        return [entry_payload(entry) for entry in import_entries(name, decoded)]

    def draw_subset(self, body: dict[str, Any]) -> Any:
        """Draw recordings or segments for agreement between annotators."""
        count, seed, seconds = body.get("count"), body.get("seed"), body.get("seconds")
        if type(count) is not int or type(seed) is not int or (seconds is not None and type(seconds) not in (int, float)):
            raise EthobenchError("a draw needs a number of segments, a seed, and the length of a segment in seconds")
        self.project.subset.draw(self.project.recordings, count, seconds, seed)
        return subset_payload(self.project)

    def agreement(self, request: Request) -> Response:
        """Return the agreement of two annotators."""
        query = request.query_params
        is_subset = query.get("subset") == "1"
        return JSONResponse(agreement_payload(self.project, query.get("first", ""), query.get("second", ""), subset=is_subset))

    def next(self, request: Request) -> Response:
        """Return the next range of disagreement, or the next bout border of a track."""
        recording, frame, forward = self._recording(request), query_integer(request, "frame"), request.query_params.get("forward") != "0"
        if "border" in request.query_params:
            annotation = recording.track(request.query_params["border"]).annotation
            borders = iv.boundaries(annotation.start, annotation.stop) if len(annotation) else np.zeros(0, dtype=np.int64)
            span = next_span(iv.Intervals(borders, borders), frame, forward=forward)
        else:
            span = next_span(recording.differences(request.query_params.getlist("among")), frame, forward=forward)
        return JSONResponse(None if span is None else {"start": span[0], "stop": span[1]})

    def uncertain(self, request: Request) -> Response:
        """Return the least certain bouts, least certain first."""
        return JSONResponse(uncertain_payload(self._recording(request)))

    def suggestions(self, request: Request) -> Response:
        """Return the windows to label next."""
        suggestions = [] if blind_annotator() is not None else suggest([recording.evidence() for recording in self.project.recordings])
        return JSONResponse(
            [{"recording": s.recording, "start": s.start, "stop": s.stop, "uncertainty": round(s.uncertainty, 4)} for s in suggestions]
        )

    def export(self, request: Request) -> Response:
        """Return a track as a file to download; a header lists what its format could not store."""
        query = request.query_params
        indices = [*range(len(self.project.recordings))] if query.get("all") == "1" else [request.path_params["recording"]]
        file = export(self.project, indices, query.get("track", ""), query.get("format", ""))
        headers = {
            "content-disposition": f"attachment; filename*=utf-8''{quote(file.name)}",
            "x-ethobench-notes": quote(json.dumps(file.notes)),
        }
        return Response(file.content, media_type="application/octet-stream", headers=headers)

    def start(self, index: int, body: dict[str, Any]) -> Any:
        """Start a correction."""
        copy, subjects, name = body.get("copy"), body.get("subjects") or [], body.get("name")
        if blind_annotator() not in (None, name.strip() if isinstance(name, str) else name):
            raise HiddenError("in blind mode, labels are saved under the name of the page's annotator")
        if not isinstance(subjects, list) or not all(isinstance(subject, str) for subject in subjects):
            raise EthobenchError("the subjects must be a list of names")
        return self._track(index, self.project.start(index, name, None if copy is None else str(copy), subjects).name)

    def edit(self, index: int, body: dict[str, Any]) -> Any:
        """Edit a correction."""
        edits = body.get("edits")
        if not isinstance(edits, list) or not all(isinstance(e, dict) for e in edits) or type(body.get("revision")) is not int:
            raise EthobenchError("the request must have a revision and a list of edits")
        if len(edits) > MAX_EDITS:
            raise TooLargeError(f"a request can have at most {MAX_EDITS} edits, got {len(edits)}; send several requests")
        return self._track(index, self.project.edit(index, str(body.get("track")), _revision(body), edits).name)

    def watch(self, index: int, body: dict[str, Any]) -> Any:
        """Mark frames that were played or stepped through as observed."""
        subject = body.get("subject")
        if subject is not None and not isinstance(subject, str):
            raise EthobenchError(f"the subject must be text, got {subject!r}")
        return self._track(index, self.project.watch(index, str(body.get("track")), body.get("spans"), subject).name)

    def undo(self, index: int, body: dict[str, Any]) -> Any:
        """Undo the last edit."""
        return self._track(index, self.project.undo(index, str(body.get("track")), _revision(body)).name)

    def redo(self, index: int, body: dict[str, Any]) -> Any:
        """Redo the last undone edit."""
        return self._track(index, self.project.redo(index, str(body.get("track")), _revision(body)).name)

    def _recording(self, request: Request) -> Any:
        return self.project.recording(request.path_params["recording"])

    def _track(self, index: int, name: str) -> dict[str, Any]:
        recording = self.project.recording(index)
        track = track_payload(recording, recording.track(name))
        return {"track": track, "disagreement": recording.disagreement, "subjects": list(recording.subjects)}


def _read_handler(answer: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """Run a handler in a thread and turn errors into JSON responses."""

    @wraps(answer)
    async def respond(request: Request) -> Response:
        try:
            return await run_in_threadpool(answer, request)
        except (EthobenchError, OSError) as error:
            return failure(error, "cannot be read")

    return respond


def _change_handler(change: Callable[[int, dict[str, Any]], Any]) -> Callable[[Request], Any]:
    @wraps(change)
    async def respond(request: Request) -> Response:
        try:
            body = await read_body(request)
            return JSONResponse(await run_in_threadpool(change, request.path_params["recording"], body))
        except (EthobenchError, OSError) as error:
            return failure(error, "not saved")

    return respond


def _session_handler(change: Callable[[dict[str, Any]], Any], max_bytes: int = MAX_BYTES) -> Callable[[Request], Any]:
    """Handle a change that does not concern a single recording."""

    @wraps(change)
    async def respond(request: Request) -> Response:
        try:
            body = await read_body(request, max_bytes)
            return JSONResponse(await run_in_threadpool(change, body))
        except (EthobenchError, OSError) as error:
            return failure(error, "not saved")

    return respond


def _revision(body: dict[str, Any]) -> int:
    revision = body.get("revision")
    if type(revision) is not int:
        raise EthobenchError("the request must have a revision, which is an integer")
    return revision
