"""The cache of replies: checksums, damaged files and format versions."""

from __future__ import annotations

import json

import pytest

from ethobench.core.errors import FormatError, ReadWarning
from ethobench.mllm.cache import ReplyCache
from ethobench.mllm.request import Reply
from ethobench.mllm.runner import RequestRunner
from tests.mllm.scripted import GOOD, Scripted, make_request


def rewrite(path, **changes) -> None:
    """Change fields of a cached reply; None removes a field."""
    content = {**json.loads(path.read_text(encoding="ascii")), **changes}
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}), encoding="ascii")


def test_a_reply_with_one_changed_character_is_renamed_and_requested_again(tmp_path):
    cache = ReplyCache(tmp_path)
    runner = RequestRunner(Scripted(Reply("from 1 s to 2 s", raw={"parts": [1, 2.5, None]}), GOOD), cache)
    runner.send(make_request())
    path = cache.path(make_request().key)
    path.write_text(path.read_text(encoding="ascii").replace("from 1 s", "from 7 s"), encoding="ascii")
    with pytest.warns(ReadWarning, match="does not match its checksum"):
        assert runner.send(make_request()).reply == GOOD
    assert cache.get(make_request()) == GOOD
    assert path.with_suffix(".damaged").exists()


def test_replies_without_a_checksum_are_accepted_with_one_warning(tmp_path):
    cache = ReplyCache(tmp_path)
    rewrite(cache.put(make_request(), GOOD), sha256=None)
    with pytest.warns(ReadWarning, match="without a checksum cannot be verified"):
        assert cache.get(make_request()) == GOOD
    assert cache.get(make_request()) == GOOD  # no second warning, which would be an error


@pytest.mark.parametrize("version", [None, 0, 2, "1"])
def test_unknown_format_versions_are_refused_and_the_file_is_kept(version, tmp_path):
    cache = ReplyCache(tmp_path)
    path = cache.put(make_request(), GOOD)
    rewrite(path, format_version=version)
    with pytest.raises(FormatError, match=r"format_version .* is not supported, this version of ethobench reads 1"):
        cache.get(make_request())
    assert path.exists()


def test_replies_are_stored_before_they_are_parsed_and_damaged_files_renamed(tmp_path):
    cache = ReplyCache(tmp_path)
    not_json = Reply("\ud800 not JSON \x00", raw={"x": "\udfff"})
    runner = RequestRunner(Scripted(not_json), cache)
    runner.send(make_request())
    path = cache.path(make_request().key)
    assert cache.get(make_request()) == not_json
    assert json.loads(path.read_text(encoding="ascii"))["request"]["parts"][0] == {"text": "question"}
    for damaged in ('{"reply": {"text"', "[1]", '{"reply": 3, "format_version": 1}'):
        path.write_text(damaged, encoding="utf-8")
        with pytest.warns(ReadWarning, match="damaged reply"):
            assert cache.get(make_request()) is None
        assert path.with_suffix(".damaged").exists()
    assert runner.send(make_request()).reply == GOOD
    assert not [p for p in tmp_path.rglob(".*") if p.is_file()]
