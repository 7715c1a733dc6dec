"""The server as strangers and as its own page see it."""

from __future__ import annotations

import base64
import io
import json
import socket
import subprocess
import sys
import threading
import zipfile
from contextlib import ExitStack, suppress
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pytest

from ethobench import read_recordings
from ethobench.app.editing import apply_edits
from ethobench.app.opening import open_project
from ethobench.app.security import new_token
from ethobench.app.server import BoundedProtocol, static_files
from ethobench.core.errors import ReadWarning
from ethobench.formats import formats
from tests.app.conftest import SERVE, Client

pytestmark = pytest.mark.slow

TOKEN = "open-sesame"  # noqa: S105
API = f"/{TOKEN}/api"


def test_the_address_that_is_printed_answers(client):
    status, headers, page = client.request(f"/?token={TOKEN}")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert f"/{TOKEN}/static/main.js".encode() in page
    assert "set-cookie" not in headers
    policy = dict(directive.strip().split(" ", 1) for directive in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?token=",
        "/?token=wrong",
        f"/?token={TOKEN[:-1]}",
        f"/{TOKEN}x/api/project",
        "/api/project",
        "/static/main.js",
        "/wrong/static/main.js",
        "/api/recordings/0/video",
        f"/?token=wrong&token={TOKEN}",
    ],
)
def test_nothing_without_the_token(client, path):
    status, headers, content = client.request(path)
    assert status == 403
    assert b"lab" not in content
    assert "content-security-policy" in headers


@pytest.mark.parametrize("path", [f"/?token={TOKEN}", f"{API}/project", f"/{TOKEN}/static/main.js"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": "evil.example:{port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "https://127.0.0.1:{port}"},
    ],
)
def test_no_foreign_host_or_origin(client, path, headers):
    sent = {name: value.format(port=client.port) for name, value in headers.items()}
    assert client.request(path, **sent)[0] == 403


def test_requests_of_foreign_pages_are_refused(client):
    for site in ("cross-site", "same-site"):
        assert client.request(f"{API}/project", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")[0] == 403
        assert client.request(f"/?token={TOKEN}", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")[0] == 403
        assert client.request(f"/?token={TOKEN}", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")[0] == 200
        assert client.request(f"{API}/project", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")[0] == 403
    assert client.request(f"{API}/project", Sec_Fetch_Site="same-origin")[0] == 200


def test_requests_of_the_viewers_page_are_answered(client):
    origin = f"http://127.0.0.1:{client.port}"
    assert client.request(f"{API}/project", Origin=origin)[0] == 200
    assert client.request(f"{API}/project", Host=f"localhost:{client.port}", Origin=f"http://localhost:{client.port}")[0] == 200
    assert client.request("/api/project", X_Ethobench_Token=TOKEN)[0] == 200


def test_the_key_for_the_browser_works_once(project, serving):
    client = serving(project, launch="just-once")
    assert client.request("/?launch=wrong")[0] == 403
    status, headers, _ = client.request("/?launch=just-once")
    assert (status, headers["location"]) == (303, f"/?token={TOKEN}")
    assert client.request("/?launch=just-once")[0] == 403
    assert client.request("/?launch=")[0] == 403


def test_the_server_listens_on_localhost_only(client):
    with pytest.raises(OSError), socket.create_connection((_own_address(), client.port), timeout=2):
        pass


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no other address")
        address = probe.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has no other address")
    return str(address)


@pytest.mark.parametrize(
    "name",
    ["../server.py", "..%2fserver.py", "%2e%2e/server.py", "/etc/passwd", "%2fetc%2fpasswd", "main.js%00", "..\\server.py", "", "."],
)
def test_other_files_than_those_of_the_page_are_not_served(client, name):
    status, _, content = client.request(f"/{TOKEN}/static/{name}")
    assert status == 404
    assert b"import" not in content
    assert b"root:" not in content


def test_files_of_the_page_are_served(client):
    for name, content in static_files().items():
        status, headers, got = client.request(f"/{TOKEN}/static/{name}")
        assert (status, got) == (200, content)
        assert headers["content-type"].split(";")[0] in ("text/javascript", "text/css", "text/html", "image/svg+xml")


@pytest.mark.parametrize(
    "path", ["recordings/2", "recordings/-1", "recordings/x", "recordings/..%2f0", "recordings/0/nothing", "recordings/99999999999999"]
)
def test_unknown_recordings_are_not_found(client, path):
    assert client.request(f"{API}/{path}")[0] == 404


def test_the_overview(client, lab):
    facts = client.get("project")
    assert facts["name"] == "lab"
    assert [(r["id"], r["individual"], r["n_frames"], r["tracks"]) for r in facts["recordings"]] == [
        ("m1", "mouse1", 600, 2),
        ("m2", "mouse2", 600, 1),
    ]
    assert facts["recordings"][0]["disagreement"] == pytest.approx(0.1)
    assert facts["corrections"] == str(lab / "corrections")
    assert [b["name"] for b in facts["ethograms"][0]] == ["rest", "run", "groom", "other"]
    assert {f["name"] for f in facts["formats"]} == {f.name for f in formats if f.can_write and "annotations" in f.contents}


def test_tiles(client):
    query = "level=1&index=0&lane=track:0&lane=trace:0&lane=disagreement:0,1&lane=track:1"
    track, trace, differing, other = client.get(f"recordings/0/tiles?{query}")
    assert track["bouts"][0][1:4] == [0, 50, 0]
    assert other["bouts"][0][1:4] == [0, 5, 3]
    assert len(base64.b64decode(trace["low"])) == 3 * 512
    shares = np.frombuffer(base64.b64decode(differing["shares"]), dtype=np.uint8)
    assert shares[:4].tolist() == [254, 254, 127, 0]


@pytest.mark.parametrize(
    "lane", ["track:9", "track:-1", "track:x", "track", "track:0:7", "probability:0", "trace:1", "nothing:0", "", "disagreement:0,9"]
)
def test_unknown_lanes_are_not_found(client, lane):
    assert "no lane" in client.get(f"recordings/0/tiles?level=0&index=0&lane={lane}", 404)["error"]


@pytest.mark.parametrize(
    "query", ["level=-1&index=0", "level=0", "level=1e3&index=0", "level=0&index=²", "level=0&index=99999999999999999999"]
)
def test_invalid_numbers_are_refused(client, query):
    assert "must be an integer" in client.get(f"recordings/0/tiles?{quote(query, safe='=&')}&lane=track:0", 400)["error"]


def test_jumps(client):
    assert client.get("recordings/0/next?frame=0&among=anna&among=ben") == {"start": 50, "stop": 55}
    assert client.get("recordings/0/next?frame=50&forward=0") == {"start": 0, "stop": 5}
    assert client.get("recordings/0/next?frame=599") is None
    assert client.get("recordings/0/next?frame=0&border=ben") == {"start": 5, "stop": 5}
    assert client.get("recordings/0/uncertain") == []
    assert client.get("recordings/0/at?frame=52") == {
        "anna": [{"start": 50, "stop": 100, "behavior": 1, "subject": None, "target": None}],
        "ben": [{"start": 5, "stop": 55, "behavior": 0, "subject": None, "target": None}],
    }
    assert client.get("recordings/0/at?frame=160") == {"anna": [], "ben": []}
    assert client.get("suggestions")[0]["recording"] == 0


def test_corrections_over_the_wire(client, lab):
    response = client.post("recordings/0/start", {"name": "zoe", "copy": "anna"})
    assert (response["track"]["name"], response["track"]["revision"], response["track"]["undo"]) == ("zoe", 0, False)
    edits = [{"kind": "mark", "start": 0, "stop": 20, "behavior": "groom"}]
    response = client.post("recordings/0/edit", {"track": "zoe", "revision": 0, "edits": edits})
    assert (response["track"]["revision"], response["track"]["undo"], response["track"]["redo"]) == (1, True, False)
    assert "in the meantime" in client.post("recordings/0/edit", {"track": "zoe", "revision": 0, "edits": edits}, 409)["error"]
    response = client.post("recordings/0/undo", {"track": "zoe", "revision": 1})
    assert (response["track"]["undo"], response["track"]["redo"]) == (False, True)
    assert client.post("recordings/0/redo", {"track": "zoe", "revision": 2})["track"]["revision"] == 3
    assert "not a correction" in client.post("recordings/0/edit", {"track": "anna", "revision": 0, "edits": edits}, 400)["error"]
    assert "already an annotator" in client.post("recordings/1/start", {"name": "anna"}, 400)["error"]
    assert sorted(p.name for p in (lab / "corrections").iterdir()) == ["m1.zoe.csv", "recordings.csv"]


@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_undo_and_redo_of_an_older_state_are_refused(client, lab, verb):
    client.post("recordings/0/start", {"name": "zoe", "copy": "anna"})
    edits = [{"kind": "mark", "start": 0, "stop": 20, "behavior": "groom"}]
    client.post("recordings/0/edit", {"track": "zoe", "revision": 0, "edits": edits})
    client.post("recordings/0/undo", {"track": "zoe", "revision": 1})
    before = (lab / "corrections" / "m1.zoe.csv").read_bytes()
    for revision in (0, 1, 3):
        assert "in the meantime" in client.post(f"recordings/0/{verb}", {"track": "zoe", "revision": revision}, 409)["error"]
    for wrong in ({}, {"revision": "2"}, {"revision": None}, {"revision": True}):
        assert "must have a revision" in client.post(f"recordings/0/{verb}", {"track": "zoe", **wrong}, 400)["error"]
    assert (lab / "corrections" / "m1.zoe.csv").read_bytes() == before


@pytest.mark.parametrize("depth", [9, 990, 100_000])
def test_deeply_nested_changes_are_refused(client, lab, depth):
    client.post("recordings/0/start", {"name": "zoe", "copy": "anna"})
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        nested = opening * depth + "0" + closing * depth
        for field in ("track", "name", "copy", "edits", "spans", "other"):
            body = f'{{"revision": 0, "{field}": {nested}}}'
            for verb in ("start", "edit", "watch", "undo", "redo"):
                status, _, content = client.request(f"{API}/recordings/0/{verb}", "POST", body)
                assert (status, b"nested at most 8 levels deep" in content) == (400, True)


def test_too_many_edits_are_refused(client, lab):
    client.post("recordings/0/start", {"name": "zoe", "copy": "anna"})
    before = (lab / "corrections" / "m1.zoe.csv").read_bytes()
    edits = [{"kind": "mark", "start": 0, "stop": 20, "behavior": "groom"}] * 1001
    assert "at most 1000 edits" in client.post("recordings/0/edit", {"track": "zoe", "revision": 0, "edits": edits}, 413)["error"]
    assert (lab / "corrections" / "m1.zoe.csv").read_bytes() == before


def test_a_large_change_does_not_block_others(client, project, monkeypatch):
    """While one change is computed, another one is saved; then the first is of an older state, or is computed again."""
    client.post("recordings/0/start", {"name": "zoe", "copy": "anna"})
    client.post("recordings/0/start", {"name": "yan", "copy": "ben"})
    is_computing, may_go_on = threading.Event(), threading.Event()

    def apply_slowly(annotation, edits):
        if edits[0]["start"] == 0:
            is_computing.set()
            assert may_go_on.wait(60)
        return apply_edits(annotation, edits)

    monkeypatch.setattr("ethobench.app.project.apply_edits", apply_slowly)
    answers = []

    def change(start, revision=0, track="zoe"):
        edit = {"kind": "mark", "start": start, "stop": start + 20, "behavior": "groom"}
        return client.request(f"{API}/recordings/0/edit", "POST", {"track": track, "revision": revision, "edits": [edit]})[0]

    def change_while_computing(*others):
        is_computing.clear()
        may_go_on.clear()
        revision = project.recording(0).track("zoe").revision
        slow = threading.Thread(target=lambda: answers.append(change(0, revision)))
        slow.start()
        assert is_computing.wait(60)
        for other in others:
            other()
        may_go_on.set()
        slow.join()

    change_while_computing(
        lambda: answers.append(change(100, track="yan")),
        lambda: client.post("recordings/0/watch", {"track": "zoe", "spans": [[0, 600]]}),
    )
    assert answers == [200, 200]
    assert project.recording(0).track("zoe").annotation.to_codes()[:20].tolist() == [2] * 20
    change_while_computing(lambda: answers.append(change(200, revision=1)))
    assert answers[2:] == [200, 409]


def test_half_open_connections_do_not_block_the_page(lab):
    code = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n{SERVE}"
    with subprocess.Popen([sys.executable, "-c", code, str(lab)], stdout=subprocess.PIPE, text=True) as process, ExitStack() as stack:
        stack.callback(process.terminate)
        address = urlsplit(process.stdout.readline().strip())
        client, connections = Client(address.port), []
        for _ in range(400):
            connections.append(stack.enter_context(socket.create_connection(("127.0.0.1", address.port), timeout=10)))
            connections[-1].sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert client.request(f"/?{address.query}")[0] == 200
        assert all(client.request(f"/?{address.query}")[0] == 200 for _ in range(5))


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: ", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n."])
def test_slow_request_headers_time_out(client, monkeypatch, sent):
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.2)
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(sent)
        answer = b""
        with suppress(ConnectionResetError):
            while received := connection.recv(1000):
                answer += received
    assert answer.startswith(b"HTTP/1.1 403") if b"POST" in sent else answer == b""


@pytest.mark.parametrize("subject", ["a\rb", "a\0", "\ud800", "a\nb", " a"])
def test_names_that_files_cannot_hold_are_refused(client, lab, subject):
    client.post("recordings/0/start", {"name": "zoe", "copy": "anna"})
    before = (lab / "corrections" / "m1.zoe.csv").read_bytes()
    edits = [{"kind": "mark", "start": 0, "stop": 20, "behavior": "groom", "subject": subject}]
    response = client.post("recordings/0/edit", {"track": "zoe", "revision": 0, "edits": edits}, 400)
    assert "which files cannot store" in response["error"]
    assert (lab / "corrections" / "m1.zoe.csv").read_bytes() == before
    assert read_recordings(lab / "corrections" / "m1.zoe.csv", warn=False)[0].annotations["zoe"].subjects == ()


def test_changes_must_be_json_from_our_page(client, lab):
    path = f"{API}/recordings/0/start"
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        status, _, content = client.request(path, "POST", {"name": "zoe"}, content_type=kind)
        assert (status, b"application/json" in content) == (400, True)
    assert client.request(path, "POST", ["zoe"])[0] == 400
    assert client.request(path, "POST", {"name": "zoe"}, Origin="http://evil.example")[0] == 403
    assert client.request(path)[0] == 405
    assert "at most 1000000 bytes" in client.post("recordings/0/start", {"name": "x" * 1_100_000}, 413)["error"]
    for body in (
        {"track": "zoe", "revision": 0, "edits": "x"},
        {"track": "zoe", "revision": "0", "edits": []},
        {"edits": [1], "revision": 0},
    ):
        assert "revision and a list" in client.post("recordings/0/edit", body, 400)["error"]
    assert not (lab / "corrections").exists()


@pytest.mark.slow
def test_every_format_that_can_be_written_can_be_downloaded(client, tmp_path):
    for chosen in client.get("project")["formats"]:
        status, headers, content = client.request(f"{API}/recordings/0/export?track=anna&format={chosen['name']}")
        if chosen["name"] == "simba":
            assert (status, b"needs poses" in content) == (400, True)
            continue
        assert status == 200, (chosen, content)
        name = unquote(headers["content-disposition"].split("''")[1])
        assert name == f"m1.anna{chosen['suffix']}"
        assert isinstance(json.loads(unquote(headers["x-ethobench-notes"])), list)
        assert content
    _, _, everything = client.request(f"{API}/recordings/0/export?track=anna&format=tidy&all=1")
    (tmp_path / "all.csv").write_bytes(everything)
    assert [r.id for r in read_recordings(tmp_path / "all.csv")] == ["m1", "m2"]


def test_invalid_exports_are_refused(client):
    assert "no format 'docx'" in client.get("recordings/0/export?track=anna&format=docx", 404)["error"]
    assert "annotated none" in client.get("recordings/1/export?track=ben&format=tidy", 400)["error"]


def test_all_recordings_in_a_format_of_one_recording_per_file_are_a_zip_file(client, tmp_path):
    status, headers, content = client.request(f"{API}/recordings/0/export?track=anna&format=labels&all=1")
    assert (status, headers["content-disposition"].split("''")[1]) == (200, "lab.anna.zip")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        assert [name.split(".")[0] for name in names] == ["m1", "m2"]
        single = client.request(f"{API}/recordings/1/export?track=anna&format=labels")[2]
        assert archive.read(names[1]) == single


def test_a_video_is_served_in_ranges_and_only_from_inside_the_study(lab, tmp_path, serving):
    content = bytes(range(256)) * 40
    (lab / "m1.mp4").write_bytes(content)
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    (tmp_path / "passwords.txt").write_bytes(b"secret")
    (lab / "link.mp4").symlink_to(tmp_path / "secret.mp4")
    rows = "".join(
        f"{i},{i},10,m1_anna.csv,anna,{video}\n"
        for i, video in enumerate(["m1.mp4", "../secret.mp4", "link.mp4", "../passwords.txt", "m1_ben.csv"])
    )
    (lab / "recordings.csv").write_text(f"recording,individual,rate,annotations,annotator,video\n{rows}", encoding="utf-8")
    with pytest.warns(ReadWarning, match="frame rate and length of the video are unknown"):
        client = serving(open_project([str(lab)]))
    status, headers, got = client.request(f"{API}/recordings/0/video", Range="bytes=256-511")
    assert (status, got, headers["content-type"]) == (206, bytes(range(256)), "video/mp4")
    assert headers["content-range"] == "bytes 256-511/10240"
    assert client.request(f"{API}/recordings/0/video")[2] == content
    for index in range(1, 5):
        status, _, got = client.request(f"{API}/recordings/{index}/video")
        assert status == 404
        assert b"secret" not in got
        facts = client.get(f"recordings/{index}")
        assert not facts["video"]
        assert "outside the opened folders" in facts["video_note"]
    with pytest.warns(ReadWarning, match="frame rate and length of the video are unknown"):
        allowed = serving(open_project([str(lab)], videos=[tmp_path]))
    assert allowed.request(f"{API}/recordings/1/video")[2] == b"secret"
    assert allowed.request(f"{API}/recordings/3/video")[0] == 404


@pytest.mark.slow
def test_poses_over_the_wire(serving, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    client = serving(open_project(["synthetic/pose"]))
    facts = client.get("recordings/0/signals")
    assert facts["poses"]["individuals"] == ["resident", "intruder"]
    assert facts["poses"]["box"][:2] == [0, 0]
    status, _, content = client.request(f"{API}/recordings/0/poses?start=10&stop=12")
    assert (status, len(content)) == (200, 2 * 2 * len(facts["poses"]["keypoints"]) * 3 * 4)
    assert client.request(f"{API}/recordings/0/export?track=truth&format=simba")[0] == 200


def test_recordings_without_poses_have_none(client):
    assert client.get("recordings/0/signals")["poses"] is None
    assert "no poses" in client.get("recordings/0/poses?start=0&stop=1", 404)["error"]


def test_tokens_differ_and_are_long():
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 32
