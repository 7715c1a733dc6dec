"""HTTP API of the teacher. Requests and answers are JSON; recordings are addressed by number, no request contains a file path.

Errors are ``{"error": message}`` with status 400 (not possible), 403 (in blind mode: all of these requests), 404 (no such recording or
behavior), 409 (changed in the meantime, or a training is running) or 413 (too large).

===========================================  =====================================================================================
``GET  /api/teacher``                        status, see below; poll it once per second while ``state`` is not ``idle``
``POST /api/teacher/prepare``                compute features in the background; the server does so when it starts
``POST /api/teacher/videos``                 compute motion features of the videos of recordings that have neither poses nor signals
``POST /api/teacher/train``                  ``{"annotators": ["anna"]}``: train on the labels of the first of these who labeled a
                                             recording (empty: corrections, then annotators); answers the status at once
``POST /api/teacher/cancel``                 cancel the training; the former predictions remain
``GET  /api/teacher/review?n=20&annotator=`` bouts to review, best first: ``[{recording, start, stop, behavior, subject, target,
                                             probability, kind, gain, reason}]``; kind is predicted, missed or cluster
``POST /api/teacher/review``                 a decision: ``{"recording": 0, "annotator": "anna", "decision": "accepted", "bout":
                                             {start, stop, behavior, subject, target, probability, kind}, "adjusted": {start, stop,
                                             behavior, subject, target}, "origin": "teacher", "revision": 3, "exclusive": true}``;
                                             decision is accepted, adjusted, rejected or skipped; ``adjusted`` only if adjusted;
                                             ``origin`` is teacher, similar or cluster; ``revision`` may be omitted. Answers
                                             ``{"track": name}``; read the recording again for the changed track
``GET  /api/teacher/origins?recording=0``    decisions so far: ``[{annotator, start, stop, behavior, decision, origin, time, ...}]``
``POST /api/teacher/similar``                ``{"recording": 0, "start": 10, "stop": 40, "n": 20, "subject": null}``: segments of all
                                             recordings, nearest first: ``[{recording, start, stop, subject, similarity}]``
``GET  /api/teacher/clusters?n=12&by=``      clusters, largest first: ``[{number, share, recordings, segments, examples: [segment],
                                             labeled: {behavior: share}}]``; ``by=subject`` for segments of single animals
``POST /api/teacher/clusters``               name clusters: ``{"n": 12, "by": "", "clusters": [3, 5], "behavior": "rearing",
                                             "annotator": "anna", "as": "suggestions"}`` or ``"as": "labels"``; the behavior must
                                             be in the ethogram. Answers ``{"suggested": 17}`` or ``{"labeled": 17}``
``POST /api/teacher/save``                   ``{"name": "first model"}``: save a model folder; answers ``{"folder": "..."}``
===========================================  =====================================================================================

The status has ``state`` (``idle``, ``preparing``, ``training``, ``evaluating``, ``failed``, ``cancelled``), ``stage`` and ``progress``
(0 to 1) of what is running, ``message`` (why it failed), ``trainings`` (their number: when it grows, the track named ``track`` has
changed), ``seconds`` (duration of the last training), ``videos`` (the number of videos whose features could be computed, because no
recording has poses or signals), ``notes``, ``quality`` (held-out quality of the last training, see
`ethobench.models.teaching_quality.Quality`, or null while it is measured), and ``history`` (one row per evaluated training).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ethobench.app.blinding import refuse_if_blind
from ethobench.app.origins import ACCEPTED, ADJUSTED, CLUSTER, REJECTED, SIMILAR, SKIPPED, TEACHER
from ethobench.app.requests import failure, query_integer, read_body
from ethobench.app.teaching import Teaching
from ethobench.core.errors import EthobenchError
from ethobench.models.review import Candidate

DECISIONS = (ACCEPTED, ADJUSTED, REJECTED, SKIPPED)
ORIGINS = (TEACHER, SIMILAR, CLUSTER)
MAX_ANNOTATORS = 50


class TeachingApi:
    """Handlers for the requests of the page to the teacher of one project."""

    def __init__(self, teaching: Teaching) -> None:
        self.teaching = teaching

    @property
    def routes(self) -> list[Route]:
        """All routes."""
        root = "/api/teacher"
        reads = {root: self.status, f"{root}/review": self.review, f"{root}/origins": self.origins, f"{root}/clusters": self.clusters}
        changes = {
            "prepare": self.prepare,
            "videos": self.embed_videos,
            "train": self.train,
            "cancel": self.cancel,
            "review": self.decide,
            "similar": self.similar,
            "clusters": self.name_clusters,
            "save": self.save,
        }
        return [
            *(Route(path, _read_handler(answer), methods=["GET"]) for path, answer in reads.items()),
            *(Route(f"{root}/{name}", _change_handler(change), methods=["POST"]) for name, change in changes.items()),
        ]

    def status(self, request: Request) -> Any:
        """Return what the teacher is doing, and the quality of its last training."""
        return self.teaching.status()

    def review(self, request: Request) -> Any:
        """Return the bouts to review next."""
        return self.teaching.review(query_integer(request, "n"), request.query_params.getlist("annotator")[:MAX_ANNOTATORS])

    def origins(self, request: Request) -> Any:
        """Return the decisions about suggested bouts of a recording."""
        return self.teaching.recorded_origins(query_integer(request, "recording"))

    def clusters(self, request: Request) -> Any:
        """Return clusters as candidates for behaviors."""
        return self.teaching.clusters(query_integer(request, "n"), by_subject=request.query_params.get("by") == "subject")

    def prepare(self, body: dict[str, Any]) -> Any:
        """Compute features in the background."""
        self.teaching.prepare()
        return self.teaching.status()

    def embed_videos(self, body: dict[str, Any]) -> Any:
        """Compute motion features of the videos in the background."""
        self.teaching.embed_videos()
        return self.teaching.status()

    def train(self, body: dict[str, Any]) -> Any:
        """Start a training."""
        annotators = body.get("annotators", [])
        is_list = isinstance(annotators, list) and len(annotators) <= MAX_ANNOTATORS
        if not is_list or not all(isinstance(name, str) for name in annotators):
            raise EthobenchError(f"annotators must be a list of at most {MAX_ANNOTATORS} names")
        self.teaching.train(annotators)
        return self.teaching.status()

    def cancel(self, body: dict[str, Any]) -> Any:
        """Cancel the training."""
        self.teaching.cancel()
        return self.teaching.status()

    def decide(self, body: dict[str, Any]) -> Any:
        """Accept, adjust, reject or skip a suggested bout."""
        decision, origin = _choice(body, "decision", DECISIONS), _choice({"origin": TEACHER, **body}, "origin", ORIGINS)
        revision = body.get("revision")
        if revision is not None and type(revision) is not int:
            raise EthobenchError(f"the revision must be an integer, got {revision!r}")
        annotator, index = _text(body, "annotator"), _integer(body, "recording")
        self.teaching.decide(
            index,
            annotator,
            decision,
            _bout(body.get("bout")),
            adjusted=_bout(body.get("adjusted")) if decision == ADJUSTED else None,
            origin=origin,
            revision=revision,
            exclusive=body.get("exclusive") is not False,
        )
        return {"track": annotator}

    def similar(self, body: dict[str, Any]) -> Any:
        """Return segments that resemble a marked one."""
        frames = _integer(body, "start"), _integer(body, "stop")
        return self.teaching.similar(
            _integer(body, "recording"), *frames, _integer({"n": 20, **body}, "n"), _optional_text(body, "subject")
        )

    def name_clusters(self, body: dict[str, Any]) -> Any:
        """Name clusters."""
        numbers = body.get("clusters")
        if not isinstance(numbers, list):
            raise EthobenchError("clusters must be a list of numbers")
        return self.teaching.name_clusters(
            _integer(body, "n"),
            numbers,
            _text(body, "behavior"),
            _text(body, "annotator"),
            by_subject=body.get("by") == "subject",
            as_labels=_choice({"as": "suggestions", **body}, "as", ("suggestions", "labels")) == "labels",
        )

    def save(self, body: dict[str, Any]) -> Any:
        """Save the model of the last training."""
        return {"folder": str(self.teaching.save(_text(body, "name")).resolve())}


def _read_handler(answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
    @wraps(answer)
    async def respond(request: Request) -> Response:
        try:
            refuse_if_blind("the predictions of models")
            return JSONResponse(await run_in_threadpool(answer, request))
        except (EthobenchError, OSError) as error:
            return failure(error, "cannot be read")

    return respond


def _change_handler(change: Callable[[dict[str, Any]], Any]) -> Callable[[Request], Any]:
    @wraps(change)
    async def respond(request: Request) -> Response:
        try:
            refuse_if_blind("the predictions of models")
            body = await read_body(request)
            return JSONResponse(await run_in_threadpool(change, body))
        except (EthobenchError, OSError) as error:
            return failure(error, "not saved")

    return respond


def _bout(value: object) -> Candidate:
    """Return a bout of a request; its recording is set by the caller."""
    if not isinstance(value, dict):
        raise EthobenchError("a bout must be an object with start, stop and behavior")
    probability = value.get("probability", 0.5)
    if type(probability) not in (int, float) or not 0 <= probability <= 1:
        raise EthobenchError(f"the probability must be a number from 0 to 1, got {probability!r}")
    kind = value.get("kind", "predicted")
    return Candidate(
        "",
        _integer(value, "start"),
        _integer(value, "stop"),
        _text(value, "behavior"),
        _optional_text(value, "subject"),
        _optional_text(value, "target"),
        float(probability),
        kind if isinstance(kind, str) else "",
    )


def _integer(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if type(value) is not int or not 0 <= value < 10**15:
        raise EthobenchError(f"{name} must be an integer, got {value!r}")
    return value


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise EthobenchError(f"{name} must be text, got {value!r}")
    return value


def _optional_text(body: dict[str, Any], name: str) -> str | None:
    return None if body.get(name) in (None, "") else _text(body, name)


def _choice(body: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    value = body.get(name)
    if value not in choices:
        raise EthobenchError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return str(value)
