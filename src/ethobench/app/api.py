"""What the page can ask for. Recordings and lanes are looked up by number, tracks by name; nothing is ever taken for a path."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any
from urllib.parse import quote

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from ethobench.app.disagreement import next_span
from ethobench.app.drawing import Drawing
from ethobench.app.export import export
from ethobench.app.facts import moment_facts, project_facts, recording_facts, signal_facts, track_facts, uncertain_facts
from ethobench.app.project import VIDEO_TYPES, Project
from ethobench.app.suggestions import suggest
from ethobench.app.traces import pose_frames
from ethobench.core import Poses
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError

MOST_BYTES = 1_000_000
MOST_LANES = 100
MAX_EDITS = 1000  # the page sends one or two
MAX_DEPTH = 8  # nested lists and objects; the page sends three
BODY_SECONDS = 30.0


class TooLargeError(EthobenchError):
    """A request that is larger than the viewer accepts."""


class Api:
    """The viewer's requests, answered from one project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._drawings: dict[int, Drawing] = {}

    @cached_property
    def routes(self) -> list[Route]:
        """All routes."""
        one = "/api/recordings/{place:int}"
        reads: dict[str, Callable[[Request], Response]] = {
            "/api/project": self.overview,
            "/api/suggestions": self.suggestions,
            one: self.recording,
            f"{one}/signals": self.signals,
            f"{one}/tiles": self.tiles,
            f"{one}/poses": self.poses,
            f"{one}/at": self.at,
            f"{one}/next": self.next,
            f"{one}/uncertain": self.uncertain,
            f"{one}/export": self.export,
            f"{one}/video": self.video,
        }
        changes = (self.start, self.edit, self.watch, self.undo, self.redo)
        return [
            *(Route(path, _told(answer), methods=["GET"]) for path, answer in reads.items()),
            *(Route(f"{one}/{change.__name__}", _changing(change), methods=["POST"]) for change in changes),
        ]

    def overview(self, request: Request) -> Response:
        """Give the list of recordings, the ethograms and the formats."""
        return JSONResponse(project_facts(self.project))

    def recording(self, request: Request) -> Response:
        """Give a recording's tracks."""
        return JSONResponse(recording_facts(self.project, request.path_params["place"]))

    def signals(self, request: Request) -> Response:
        """Give a recording's lanes of signals, and how to draw its poses."""
        return JSONResponse(signal_facts(self._entry(request)))

    def tiles(self, request: Request) -> Response:
        """Give one tile of several lanes."""
        place, lanes = request.path_params["place"], request.query_params.getlist("lane")[:MOST_LANES]
        drawing = self._drawings.setdefault(place, Drawing(self.project.entry(place)))
        level, index = _whole(request, "level"), _whole(request, "index")
        return JSONResponse([drawing.tile(lane, level, index) for lane in lanes])

    def poses(self, request: Request) -> Response:
        """Give the positions of a stretch of frames."""
        poses = self._entry(request).signals
        if not isinstance(poses, Poses):
            raise NotFoundError("this recording has no poses")
        return Response(pose_frames(poses, _whole(request, "start"), _whole(request, "stop")), media_type="application/octet-stream")

    def at(self, request: Request) -> Response:
        """Give what every track says at one frame."""
        return JSONResponse(moment_facts(self._entry(request), _whole(request, "frame")))

    def next(self, request: Request) -> Response:
        """Give the next stretch of disagreement, or the next border of a track's bouts."""
        entry, frame, forward = self._entry(request), _whole(request, "frame"), request.query_params.get("forward") != "0"
        if "border" in request.query_params:
            annotation = entry.track(request.query_params["border"]).annotation
            borders = iv.boundaries(annotation.start, annotation.stop) if len(annotation) else np.zeros(0, dtype=np.int64)
            found = next_span(iv.Intervals(borders, borders), frame, forward=forward)
        else:
            found = next_span(entry.differences(request.query_params.getlist("among")), frame, forward=forward)
        return JSONResponse(None if found is None else {"start": found[0], "stop": found[1]})

    def uncertain(self, request: Request) -> Response:
        """Give the least certain bouts, the least certain first."""
        return JSONResponse(uncertain_facts(self._entry(request)))

    def suggestions(self, request: Request) -> Response:
        """Give the stretches worth labelling next."""
        found = suggest([entry.evidence() for entry in self.project.entries])
        return JSONResponse([{"recording": s.recording, "start": s.start, "stop": s.stop, "doubt": round(s.doubt, 4)} for s in found])

    def export(self, request: Request) -> Response:
        """Give a track as a file to download; what its format could not hold stands in a header."""
        query = request.query_params
        places = [*range(len(self.project.entries))] if query.get("all") == "1" else [request.path_params["place"]]
        made = export(self.project, places, query.get("track", ""), query.get("format", ""))
        headers = {
            "content-disposition": f"attachment; filename*=utf-8''{quote(made.name)}",
            "x-ethobench-notes": quote(json.dumps(made.notes)),
        }
        return Response(made.content, media_type="application/octet-stream", headers=headers)

    def video(self, request: Request) -> Response:
        """Give the video, or the part of it that is asked for."""
        path = self.project.video(request.path_params["place"])
        if path is None:
            raise NotFoundError("this recording has no video that can be shown")
        return FileResponse(path, media_type=VIDEO_TYPES[path.suffix.lower()])

    def start(self, place: int, body: dict[str, Any]) -> Any:
        """Begin a correction."""
        copy = body.get("copy")
        return self._track(place, self.project.start(place, body.get("name"), None if copy is None else str(copy)).name)

    def edit(self, place: int, body: dict[str, Any]) -> Any:
        """Change a correction."""
        edits = body.get("edits")
        if not isinstance(edits, list) or not all(isinstance(e, dict) for e in edits) or type(body.get("revision")) is not int:
            raise EthobenchError("a change has a revision and a list of edits")
        if len(edits) > MAX_EDITS:
            raise TooLargeError(f"a change has at most {MAX_EDITS} edits, not {len(edits)}; send several changes")
        return self._track(place, self.project.edit(place, str(body.get("track")), _revision(body), edits).name)

    def watch(self, place: int, body: dict[str, Any]) -> Any:
        """Count what was played or stepped through as observed."""
        subject = body.get("subject")
        if subject is not None and not isinstance(subject, str):
            raise EthobenchError(f"the subject is a name, not {subject!r}")
        return self._track(place, self.project.watch(place, str(body.get("track")), body.get("spans"), subject).name)

    def undo(self, place: int, body: dict[str, Any]) -> Any:
        """Take a change back."""
        return self._track(place, self.project.undo(place, str(body.get("track")), _revision(body)).name)

    def redo(self, place: int, body: dict[str, Any]) -> Any:
        """Repeat a change that was taken back."""
        return self._track(place, self.project.redo(place, str(body.get("track")), _revision(body)).name)

    def _entry(self, request: Request) -> Any:
        return self.project.entry(request.path_params["place"])

    def _track(self, place: int, name: str) -> dict[str, Any]:
        entry = self.project.entry(place)
        return {"track": track_facts(entry, entry.track(name)), "disagreement": entry.disagreement}


def _told(answer: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """Run a reader in a thread; errors that tell a user something become answers that do."""

    @wraps(answer)
    async def respond(request: Request) -> Response:
        try:
            return await run_in_threadpool(answer, request)
        except (EthobenchError, OSError) as error:
            return _failure(error, "cannot be read")

    return respond


def _changing(change: Callable[[int, dict[str, Any]], Any]) -> Callable[[Request], Any]:
    @wraps(change)
    async def respond(request: Request) -> Response:
        try:
            body = await _body(request)
            return JSONResponse(await run_in_threadpool(change, request.path_params["place"], body))
        except (EthobenchError, OSError) as error:
            return _failure(error, "not saved")

    return respond


def _failure(error: Exception, what: str) -> Response:
    if isinstance(error, TimeoutError):  # an OSError too
        return JSONResponse({"error": f"{what}: the request was not complete within {BODY_SECONDS:g} s"}, 408)
    if isinstance(error, OSError):
        return JSONResponse({"error": f"{what}: {error.strerror or error}"}, 500)
    statuses = {NotFoundError: 404, MismatchError: 409, TooLargeError: 413}
    status = next((status for kind, status in statuses.items() if isinstance(error, kind)), 400)
    return JSONResponse({"error": str(error)}, status)


async def _body(request: Request) -> dict[str, Any]:
    """Receive and parse the body of a change."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise EthobenchError("a change is sent as application/json")
    content = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.stream():
            content += chunk
            if len(content) > MOST_BYTES:
                raise TooLargeError(f"a change has at most {MOST_BYTES} bytes; this one is too large")
    return await run_in_threadpool(_parse, bytes(content))


def _parse(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except RecursionError:
        raise EthobenchError(f"a change is nested at most {MAX_DEPTH} deep") from None
    except ValueError:
        raise EthobenchError("a change is sent as JSON") from None
    if not isinstance(body, dict):
        raise EthobenchError("a change is a JSON object")
    level: list[Any] = [body]
    for _ in range(MAX_DEPTH):
        nested = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in nested for value in values if isinstance(value, dict | list)]
        if not level:
            return body
    raise EthobenchError(f"a change is nested at most {MAX_DEPTH} deep")


def _revision(body: dict[str, Any]) -> int:
    revision = body.get("revision")
    if type(revision) is not int:
        raise EthobenchError("a change names the revision that it was made to, a whole number")
    return revision


def _whole(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise EthobenchError(f"{name} is a whole number, not {text!r}")
    return int(text)
