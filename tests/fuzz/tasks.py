"""What the fuzzing workers run: each task takes untrusted input and must read it or refuse it with an `EthobenchError`."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ethobench.core.errors import EthobenchError, FormatError, summarize_notes
from ethobench.formats import detect, formats, read_recordings

TOKEN = "fuzz"  # noqa: S105
OURS = "http://127.0.0.1:1"


def warm_up() -> None:
    """Import what readers import when they are first used, so that the limits measure the input alone."""
    import h5py  # noqa: F401
    import openpyxl  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401
    import yaml  # noqa: F401

    warnings.simplefilter("ignore")
    list(formats)


def sniff(path: str) -> str:
    """Detect the format of a file; that no format recognizes it is an answer too."""
    try:
        return detect(path).name
    except FormatError:
        return "not recognized"


def read(path: str, format: str | None = None) -> str:
    """Read a file with all that is loaded only when it is used; errors must name the file, in one line."""
    try:
        recordings = read_recordings(path, format, warn=False)
        for recording in recordings:
            for signals in (recording.signals, recording.features):
                if signals is not None:
                    len(signals)
            summarize_notes(recording.notes)
    except EthobenchError as error:
        if "\n" in str(error) or Path(path).name.split(".")[0] not in str(error):
            raise AssertionError(f"the message does not name the file in one line: {error}") from error
        raise
    return f"{len(recordings)} recordings"


def file(path: str, format: str) -> str:
    """Detect the format of a file, then read it."""
    sniff(path)
    return read(path, format)


def model(path: str) -> str:
    """Load a model folder and predict with it."""
    from ethobench.models import load_model

    recording = _recording()
    try:
        model = load_model(path)
    except EthobenchError as error:
        if path not in str(error):
            raise AssertionError(f"the message does not name the folder: {error}") from error
        raise
    prediction = model.predict(recording)
    if len(prediction.probabilities) != recording.n_frames:
        raise AssertionError(f"{len(prediction.probabilities)} probabilities for {recording.n_frames} frames")
    return model.name


@lru_cache(maxsize=1)
def _recording() -> Any:
    from ethobench import load_dataset

    return load_dataset("synthetic/tag", individuals=3, seconds=20, folds=3).recordings[0]


def answer(number: int) -> str:
    """Parse a mutated answer of a multimodal model; one without an annotation must have a reason."""
    from tests.mllm.fuzz import check, mutated

    answer = check(mutated(number))
    if answer.failed:
        raise EthobenchError(answer.reason)
    return f"{len(answer.annotation)} bouts"


def request(method: str, address: str, body: str, headers: dict[str, str] | None = None) -> str:
    """Send a request to the viewer; a status of 500 or above is a failure."""
    path, _, query = address.partition("?")
    content = body.encode("utf-8", "surrogatepass")
    sent_headers = {"host": "127.0.0.1:1", "content-type": "application/json", "content-length": str(len(content)), **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method or "GET",
        "scheme": "http",
        "path": f"/{TOKEN}{path}",
        "raw_path": quote(f"/{TOKEN}{path}", errors="surrogatepass").encode(),
        "query_string": query.encode("utf-8", "surrogatepass"),
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in sent_headers.items()],
        "client": ("127.0.0.1", 2),
        "server": ("127.0.0.1", 1),
    }
    sent: list[dict[str, Any]] = []
    pending = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return pending.pop() if pending else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(_viewer()(scope, receive, send))
    status = next(message["status"] for message in sent if message["type"] == "http.response.start")
    if status >= 500:
        raise AssertionError(f"status {status}: {b''.join(m.get('body', b'') for m in sent)[:300]!r}")
    foreign = sent_headers["host"] != "127.0.0.1:1" or sent_headers.get("origin", OURS) != OURS
    if status < 400 and (foreign or sent_headers.get("sec-fetch-site", "none") not in ("none", "same-origin")):
        raise AssertionError(f"status {status} for a request from elsewhere: {sent_headers}")
    if status >= 400:
        raise EthobenchError(f"status {status}")
    return str(status)


@lru_cache(maxsize=1)
def _viewer() -> Any:
    """Return the viewer on a folder with a tag recording, a pose recording and annotations of both."""
    import tempfile

    from ethobench import Annotation, write_annotation
    from ethobench.app.opening import open_project
    from ethobench.app.server import make_app

    root = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
    annotation = Annotation.from_frames([i // 10 % 2 for i in range(40)], ["a", "b"], 10)
    (root / "m1_tag.csv").write_text("time,AccX\n" + "".join(f"{i / 10},{i * 0.25}\n" for i in range(40)), encoding="utf-8")
    header = "scorer,net,net,net\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n"
    (root / "m2_poses.csv").write_text(header + "".join(f"{i},{i},2.5,0.9\n" for i in range(40)), encoding="utf-8")
    for name in ("m1_anna.csv", "m2_anna.csv"):
        write_annotation(annotation, root / name, "tidy")
    rows = ["m1,m1,10,m1_tag.csv,m1_anna.csv,anna", "m2,m2,10,m2_poses.csv,m2_anna.csv,anna"]
    (root / "recordings.csv").write_text(
        "\n".join(["recording,individual,rate,signals,annotations,annotator", *rows]) + "\n", encoding="utf-8"
    )
    project = open_project([str(root)])
    project.start(0, "zoe", "anna")
    return make_app(project, 1, TOKEN)


TASKS: dict[str, Callable[..., Any]] = {
    "sniff": sniff,
    "read": read,
    "file": file,
    "model": model,
    "answer": answer,
    "request": request,
}
