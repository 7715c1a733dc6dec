"""Blind mode: the server sends a blind page nothing of other annotators and of models."""

from __future__ import annotations

import json

import pytest

from ethobench.app.blinding import blind_annotator, blinded
from ethobench.app.opening import open_project
from tests.app.conftest import TOKEN

ANNA_BOUT = {"kind": "mark", "start": 7, "stop": 61, "behavior": "groom"}


class BlindClient:
    """A page of one annotator that is blind."""

    def __init__(self, client, annotator, **headers):
        self.client, self.headers = client, {"x_ethobench_annotator": annotator, **headers}

    def ask(self, path, body=None, status=200):
        method = "GET" if body is None else "POST"
        received, _, content = self.client.request(f"/{TOKEN}/api/{path}", method, body, **self.headers)
        assert received == status, content
        return content


@pytest.fixture(params=[True, False], ids=["started blind", "blind page"])
def pages(request, lab, serving):
    """Pages of zoe and yan, who both label blindly, on a server that is blind, or with pages that are."""
    client = serving(open_project([str(lab)], blind=request.param))
    headers = {} if request.param else {"x_ethobench_blind": "1"}
    zoe, yan = BlindClient(client, "zoe", **headers), BlindClient(client, "y%C3%A4n", **headers)
    zoe.ask("recordings/0/start", {"name": "zoe", "copy": None})
    zoe.ask("recordings/0/edit", {"track": "zoe", "revision": 0, "edits": [ANNA_BOUT]})
    yan.ask("recordings/0/start", {"name": "yän", "copy": None})
    return zoe, yan


def test_no_answer_names_others_or_contains_their_bouts(pages):
    _, yan = pages
    reads = ["project", "recordings/0", "recordings/1", "ethogram", "suggestions", "recordings/0/at?frame=10", "recordings/0/uncertain"]
    reads += ["recordings/0/next?frame=0&forward=1", "agreement?first=zoe&second=anna"]
    for path in reads:
        content = yan.ask(path).decode()
        assert not any(f'"{name}"' in content for name in ("zoe", "anna", "ben")), path
    assert json.loads(yan.ask("recordings/0/at?frame=10")) == {"yän": None}
    assert [track["name"] for track in json.loads(yan.ask("recordings/0"))["tracks"]] == ["yän"]
    assert json.loads(yan.ask("project"))["recordings"][0]["observed_by"] == {"yän": 0.0}
    assert all(row["bouts"] == row["fixed_bouts"] == 0 for row in json.loads(yan.ask("ethogram"))["behaviors"])


def test_nothing_of_others_can_be_requested(pages):
    zoe, yan = pages
    assert b"bouts" in zoe.ask("recordings/0/tiles?level=0&index=0&lane=track:0")
    assert b"groom" in zoe.ask("recordings/0/export?track=zoe&format=tidy")
    tiles = json.loads(yan.ask("recordings/0/tiles?level=0&index=0&lane=track:0"))
    assert tiles[0]["bouts"] == []
    yan.ask("recordings/0/tiles?level=0&index=0&lane=track:1", status=404)
    for name in ("zoe", "anna"):
        yan.ask(f"recordings/0/export?track={name}&format=tidy", status=400)
        yan.ask(f"recordings/0/bout?track={name}&index=0", status=404)
        yan.ask("recordings/1/start", {"name": "yän", "copy": name}, 404)
        yan.ask("recordings/0/clips", {"what": "clips", "track": name}, 404)
    yan.ask("recordings/0/edit", {"track": "zoe", "revision": 1, "edits": [ANNA_BOUT]}, 400)
    yan.ask("recordings/0/undo", {"track": "zoe", "revision": 1}, 400)
    yan.ask("recordings/1/start", {"name": "zoe", "copy": None}, 403)
    for path, body in (("teacher", None), ("teacher/review?n=5", None), ("teacher/train", {}), ("teacher/origins?recording=0", None)):
        assert b"blind" in yan.ask(path, body, 403)


def test_a_blind_page_edits_behaviors_but_not_the_labels_of_others(pages):
    _, yan = pages
    editor = json.loads(yan.ask("ethogram"))
    kept = [{**row, "from": [row["name"]]} for row in editor["behaviors"]]
    added = json.loads(yan.ask("ethogram", {"revision": editor["revision"], "behaviors": [*kept, {"name": "dig"}]}))
    assert [row["name"] for row in added["behaviors"]][-1] == "dig"
    merged = [{**kept[0], "from": ["rest", "run"]}, *kept[2:], {"name": "dig", "from": ["dig"]}]
    yan.ask("ethogram", {"revision": added["revision"], "behaviors": merged}, 403)
    points = [{**row, "point": row["name"] == "groom"} for row in kept]
    refused = yan.ask("ethogram", {"revision": added["revision"], "behaviors": [*points, {"name": "dig", "from": ["dig"]}]}, 400)
    assert b"must remain a state" in refused


def test_a_page_that_is_not_blind_sees_everyone(lab, serving):
    client = serving(open_project([str(lab)]))
    client.post("recordings/0/start", {"name": "zoe", "copy": None})
    names = [track["name"] for track in client.get("recordings/0")["tracks"]]
    assert names == ["anna", "ben", "zoe"]


def test_a_blind_request_ends(project):
    with blinded("zoe"):
        assert project.recordings[0].tracks == []
        assert blind_annotator() == "zoe"
    assert len(project.recordings[0].tracks) == 2
