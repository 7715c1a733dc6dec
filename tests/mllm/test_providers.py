"""The client libraries against local servers with the same API: what is sent, how replies are parsed, and that keys never leak."""

from __future__ import annotations

import base64
import json
import logging

import pytest

from ethobench import Ethogram, Recording
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.mllm.annotate import build_requests, create_provider, read_replies
from ethobench.mllm.providers import Access, ProviderError, providers
from ethobench.mllm.providers.base import parse_retry_after
from ethobench.mllm.request import RequestSettings
from ethobench.mllm.retry import RetryPolicy
from ethobench.mllm.runner import RequestRunner
from ethobench.mllm.task import load_task, task_from_ethogram
from tests.mllm.conftest import KEY
from tests.mllm.outcomes import MODELS, STUBS, cases, run_case, true_segments
from tests.mllm.stubs import Block, Fail, GeminiStub, OpenAIStub, Say

pytestmark = pytest.mark.slow

EXPECTED = {
    "well-formed": ("well-formed", [], 1, 0),
    "fence": ("repaired", ["fence"], 1, 0),
    "stops in a segment": ("repaired", ["truncated"], 1, 0),
    "refusal": ("failed", [], 1, 0),
    "429, then an answer": ("well-formed", [], 2, 0),
    "500, 503, then an answer": ("well-formed", [], 3, 0),
    "body breaks off, then an answer": ("well-formed", [], 2, 0),
    "half a JSON body, then an answer": ("well-formed", [], 2, 0),
    "answer withheld": ("failed", [], 1, 0),
    "question blocked": ("failed", [], 1, 0),
    "wrong key for the API": ("failed", [], 1, 1),
}
SMALL = RequestSettings(fps=1)


@pytest.fixture
def clip(short) -> Recording:
    return Recording("short", video=short)


def send(provider_name, stub, recording, settings=SMALL, **access):
    provider = create_provider(provider_name, MODELS[provider_name], Access(base_url=stub.url, timeout=5, poll=0.01, **access))
    requests = build_requests(recording, load_task("calms21"), provider, settings)
    return requests, [RequestRunner(provider, retry_policy=RetryPolicy(attempts=1)).send(request) for request in requests.requests]


@pytest.mark.parametrize("provider_name", STUBS)
@pytest.mark.parametrize("case", EXPECTED)
def test_outcomes(provider_name, case, clip, tmp_path):
    edges, names = ["00:00", "00:02", "00:03", "00:06"], ["attack", "other", "mount"]
    segments = [{"start_time": a, "end_time": b, "behavior": n} for a, b, n in zip(edges, edges[1:], names, strict=False)]
    outcome, sent, resent, _ = run_case(provider_name, clip, cases(segments)[case], tmp_path / "answers", SMALL)
    assert (outcome.state, list(outcome.repairs), sent, resent) == EXPECTED[case]


@pytest.mark.slow
@pytest.mark.parametrize("provider_name", STUBS)
def test_a_correct_answer_gives_the_reference_annotation(provider_name, social, tmp_path):
    segments = true_segments(social)
    recording = social.copy(annotations={})
    outcome, sent, resent, predicted = run_case(
        provider_name, recording, [Say(json.dumps({"segments": segments}))], tmp_path, RequestSettings(height=90, fps=0.5)
    )
    assert (outcome.state, sent, resent) == ("well-formed", 1, 0)
    assert predicted.n_frames == social.n_frames
    truth = social.annotation().to_codes()
    assert (predicted.to_codes() == truth).mean() > 0.85  # the answer is in whole seconds
    hung, sent, *_ = run_case(
        provider_name, recording, cases(segments)["hangs, then an answer"], tmp_path / "2", RequestSettings(height=90, fps=0.5)
    )
    assert (hung.state, sent) == ("well-formed", 2)


def test_gemini_request(clip):
    with GeminiStub() as stub:
        requests, _ = send("gemini", stub, clip, RequestSettings(fps=2, max_output_tokens=999))
    method, path, headers = stub.received[-1]
    assert (method, path.rpartition("/")[2]) == ("POST", "gemini-2.5-flash:generateContent")
    assert {k.lower(): v for k, v in headers.items()}["x-goog-api-key"] == KEY
    body = stub.questions[0]
    config = body["generationConfig"]
    assert (config["temperature"], config["topP"], config["maxOutputTokens"]) == (0, 1, 999)
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["properties"]["segments"]["items"]["properties"]["behavior"]["enum"][0] == "attack"
    assert body["systemInstruction"]["parts"][0]["text"].startswith("You are")
    *words, video = body["contents"][0]["parts"]
    assert words[0]["text"] == requests.requests[0].parts[0].text
    assert video["videoMetadata"] == {"fps": 2.0}
    assert base64.urlsafe_b64decode(video["inlineData"]["data"]) == clip.video.read_bytes()


def test_gemini_uploads_a_video_once(clip):
    with GeminiStub() as stub:
        provider = create_provider("gemini", "gemini-2.5-pro", Access(base_url=stub.url, poll=0.01, transfer="upload"))
        task = load_task("calms21")
        runner = RequestRunner(provider)
        for draw in (0, 1):
            assert runner.send(build_requests(clip, task, provider, RequestSettings(), seed=draw).requests[0]).reply is not None
    assert list(stub.files.values()) == [clip.video.read_bytes()]
    sent = [q["contents"][0]["parts"][-1]["fileData"] for q in stub.questions]
    assert [one.get("fileUri") or one["file_uri"] for one in sent] == [f"{stub.url}/v1beta/files/f1"] * 2
    assert [q["generationConfig"]["seed"] for q in stub.questions] == [0, 1]


def test_gemini_takes_videos_at_an_address(clip):
    with GeminiStub() as stub:
        send("gemini", stub, clip, RequestSettings(input_type="link", video_url="gs://bucket/day1/"))
    sent = stub.questions[0]["contents"][0]["parts"][-1]["fileData"]
    assert (sent.get("fileUri") or sent["file_uri"]) == "gs://bucket/day1/short.mp4"
    assert not stub.files


def test_openai_request_with_frames(clip):
    with OpenAIStub() as stub:
        send("openai", stub, clip, RequestSettings(fps=0.5))
    body = stub.questions[0]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("gpt-4o", 0, 16_384)
    assert body["response_format"]["json_schema"]["strict"] is True
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    content = body["messages"][1]["content"]
    images = [p["image_url"]["url"] for p in content if p["type"] == "image_url"]
    times = [content[k - 1]["text"] for k, p in enumerate(content) if p["type"] == "image_url"]
    assert times == ["00:00", "00:02", "00:04"]
    assert all(base64.b64decode(p.removeprefix("data:image/jpeg;base64,")).startswith(b"\xff\xd8") for p in images)


def test_openai_request_with_a_video_or_a_url(clip):
    with OpenAIStub() as stub:
        send("openai", stub, clip, RequestSettings(input_type="video", structured_output="object"))
        send("openai", stub, clip, RequestSettings(input_type="link", video_url="https://host/x", structured_output="none"))
    inline, linked = (q["messages"][1]["content"][-1]["video_url"]["url"] for q in stub.questions)
    assert base64.b64decode(inline.removeprefix("data:video/mp4;base64,")) == clip.video.read_bytes()
    assert linked == "https://host/x/short.mp4"
    assert stub.questions[0]["response_format"] == {"type": "json_object"}
    assert "response_format" not in stub.questions[1]


def test_finish_reason_and_tokens_are_parsed(clip):
    for provider_name, stub_class in STUBS.items():
        with stub_class(Say('{"segments": [', cut=True)) as stub:
            _, (result,) = send(provider_name, stub, clip)
        assert result.reply.finish == "length"
        assert (result.reply.input_tokens, result.reply.output_tokens, result.reply.model) == (1000, 250, "stub-1")
        assert result.reply.text == '{"segments": ['
        with stub_class(Block()) as stub:
            _, (result,) = send(provider_name, stub, clip, RequestSettings(fps=2))
        assert (result.reply.finish, result.reply.text) == ("blocked", "")


@pytest.mark.parametrize("provider_name", STUBS)
def test_keys_leak_nowhere(provider_name, clip, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    messages = []
    echo = [Fail(500, message=f"you sent {KEY}"), Say(f'{{"segments": [], "you": "{KEY}"}}')]
    with STUBS[provider_name](*echo, Fail(400, message=f"bad key {KEY}")) as stub:
        provider = create_provider(provider_name, MODELS[provider_name], Access(base_url=stub.url, timeout=5))
        runner = RequestRunner(provider, retry_policy=RetryPolicy(initial_delay=0.01), log=messages.append)
        for settings in (SMALL, RequestSettings(fps=2)):
            requests = build_requests(clip, load_task("calms21"), provider, settings)
            result = runner.send(requests.requests[0])
            messages += [result.error, repr(result), repr(provider), str(read_replies(requests, [result])[1])]
    assert any(KEY in json.dumps(headers) for *_, headers in stub.received)  # the key was sent, as it must be
    assert not [text for text in messages if KEY in text]
    assert any("***" in text for text in messages)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".json" for path in files)
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert not [record for record in caplog.records if KEY in record.getMessage()]


@pytest.mark.parametrize(("provider_name", "variable"), [("gemini", "GEMINI_API_KEY or GOOGLE_API_KEY"), ("openai", "OPENAI_API_KEY")])
def test_a_missing_key_raises(provider_name, variable, clip, monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    provider = create_provider(provider_name, MODELS[provider_name])
    result = RequestRunner(provider).send(build_requests(clip, load_task("calms21"), provider, SMALL).requests[0])
    assert result.error == f"{provider_name} needs an API key in the environment variable {variable}"
    with pytest.raises(ProviderError, match="MY_KEY"):
        create_provider(provider_name, "m", Access(key_variable="MY_KEY")).key()


def test_a_local_server_needs_no_key(clip, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with OpenAIStub() as stub:
        _, (result,) = send("openai", stub, clip)
    assert result.reply is not None


def test_videos_that_are_too_large_or_too_long(clip):
    provider = create_provider("gemini", "gemini-2.5-pro", Access(transfer="inline"))
    provider.spec = provider.spec.model_copy(update={"inline_bytes": 10, "seconds": 3})
    with pytest.raises(EthobenchError, match=r"short: 6 s of video exceed the limit of gemini-2.5-pro, 3 s; use window="):
        build_requests(clip, load_task("calms21"), provider, RequestSettings())
    result = RequestRunner(provider).send(
        build_requests(clip, load_task("calms21"), provider, RequestSettings(window=3, overlap=1)).requests[0]
    )
    assert "MB" in result.error
    assert "window=" in result.error
    with pytest.raises(EthobenchError, match="supports input_type video or link, not frames"):
        build_requests(clip, load_task("calms21"), create_provider("gemini", "m"), RequestSettings(input_type="frames"))
    with pytest.raises(EthobenchError, match="a linked video cannot be cut"):
        build_requests(
            clip, load_task("calms21"), create_provider("gemini", "m"), RequestSettings(input_type="link", video_url="gs://b"), seconds=3
        )


def test_vertex_ai_has_no_uploads_and_no_batches(monkeypatch, clip, tmp_path):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    with GeminiStub() as stub:
        _, (result,) = send("gemini", stub, clip, transfer="upload")
        assert result.reply is not None, result.error
        assert "inlineData" in stub.questions[0]["contents"][0]["parts"][-1]
        assert stub.received[-1][1].endswith("publishers/google/models/gemini-2.5-flash:generateContent")
        provider = create_provider("gemini", "gemini-2.5-flash", Access(base_url=stub.url))
        with pytest.raises(ProviderError, match="Cloud Storage"):
            provider.submit_batch(tmp_path / "x.jsonl", "label")


def test_retry_after_header():
    assert parse_retry_after({"Retry-After": "2.5"}) == 2.5
    assert parse_retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert parse_retry_after({"retry-after": "soon"}) is None


def test_replay_reads_answers_from_files_and_folders(tmp_path):
    text = '{"segments": [{"start_time": 1, "end_time": 4, "behavior": "run"}]}'
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "one.json").write_text(text, encoding="utf-8")
    (folder / "two.txt").write_text(f"Sure! {text}", encoding="utf-8")
    lines = tmp_path / "batch.jsonl"
    gemini = {"key": "two", "response": GeminiStub.completion(GeminiStub.__new__(GeminiStub), Say(text))}
    openai = {
        "custom_id": "three",
        "response": {"status_code": 200, "body": OpenAIStub.completion(OpenAIStub.__new__(OpenAIStub), Block())},
    }
    lines.write_text("\n".join(json.dumps(row) for row in ({"recording": "one", "text": text}, gemini, openai)), encoding="utf-8")
    task = task_from_ethogram(Ethogram(["run"]))

    def replayed(path, name):
        provider = create_provider("replay", access=Access(answers=path))
        requests = build_requests(Recording(name, rate=10, n_frames=100), task, provider, RequestSettings())
        return read_replies(requests, [RequestRunner(provider).send(request) for request in requests.requests])

    for path, name, state in (
        (folder, "one", "well-formed"),
        (folder, "two", "repaired"),
        (lines, "one", "well-formed"),
        (lines, "two", "well-formed"),
        (lines, "three", "failed"),
        (folder, "nobody", "failed"),
    ):
        annotation, outcome = replayed(path, name)
        assert outcome.state == state
        assert annotation.start.tolist() == ([10] if state != "failed" else [])
    assert "no answer for 'nobody'" in replayed(folder, "nobody")[1].reasons[0]
    assert "no such file" in replayed(tmp_path / "nope", "one")[1].reasons[0]
    lines.write_text("[1]\n", encoding="utf-8")
    with pytest.raises(FormatError, match="line 1"):
        _ = create_provider("replay", access=Access(answers=lines)).answers


@pytest.mark.parametrize("kind", ["renewal", "random", "majority"])
def test_chance(kind):
    provider = create_provider("chance", kind)
    requests = build_requests(
        Recording("r", rate=10, n_frames=600),
        task_from_ethogram(Ethogram(["rest", "run"])),
        provider,
        RequestSettings(window=20, overlap=5),
    )
    result = [RequestRunner(provider).send(request) for request in requests.requests]
    annotation, outcome = read_replies(requests, result)
    assert outcome.state == "well-formed"
    assert annotation.to_frames().any(axis=1).all()
    assert result == [RequestRunner(provider).send(request) for request in requests.requests]
    with pytest.raises(ProviderError, match="must be one of renewal, random, majority"):
        create_provider("chance", "luck").send(requests.requests[0], None)


def test_registry():
    assert providers.names() == ("chance", "gemini", "openai", "replay")
    assert all(provider.title for provider in providers)
    with pytest.raises(NotFoundError, match="did you mean 'gemini'"):
        create_provider("gemnii")
    with pytest.raises(EthobenchError, match="`transfer` must be one of"):
        Access(transfer="pigeon")
