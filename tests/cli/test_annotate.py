"""`ethobench annotate` as a user runs it, with local servers in place of the providers; killed while a batch is running."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time

import pytest

from ethobench import read_annotation, read_recordings
from tests.cli.running import START, ethobench
from tests.mllm.conftest import KEY
from tests.mllm.drawing import plain_video
from tests.mllm.stubs import Fail, GeminiStub, OpenAIStub, Say

ROWS = [("00:00", "00:04", "grooming"), ("00:04", "00:06", "other")]
GOOD = json.dumps({"segments": [{"start_time": a, "end_time": b, "behavior": name} for a, b, name in ROWS]})


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Two videos, and the command to annotate them."""
    videos = [plain_video(tmp_path / f"cage{k}.mp4") for k in (1, 2)]
    for name in [name for name in os.environ if name.startswith(("GOOGLE", "GEMINI", "OPENAI", "DASHSCOPE"))]:
        monkeypatch.delenv(name)
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))

    def annotate(*arguments: object, chosen=videos) -> subprocess.CompletedProcess[str]:
        return ethobench("annotate", *chosen, "--task", "grooming", *arguments)

    annotate.folder, annotate.videos = tmp_path, videos
    return annotate


@pytest.mark.slow
def test_annotations_are_written_and_can_be_read(lab):
    out = lab.folder / "out"
    with GeminiStub(always=Say(f"```json\n{GOOD}\n```")) as stub:
        options = ("--provider", "gemini", "--model", "gemini-2.5-flash", "--base-url", stub.url, "--out", out, "--fps", 2)
        first = lab(*options, "--max-concurrent", 1)
        assert first.returncode == 0, first.stderr
        assert "cage1: repaired (fence 1)" in first.stdout
        assert "2 videos annotated" in first.stdout
        annotation = read_annotation(out / "cage1.csv")
        assert (annotation.start.tolist(), annotation.stop.tolist(), annotation.n_frames, annotation.rate) == ([0, 40], [40, 60], 60, 10.0)
        with (out / "outcomes.csv").open(encoding="utf-8") as file:
            assert [(row["recording"], row["state"], row["repairs"]) for row in csv.DictReader(file)] == [
                ("cage1", "repaired", "fence 1"),
                ("cage2", "repaired", "fence 1"),
            ]
        sent = len(stub.questions)
        assert sent == 1  # both videos have the same content, so it is one request
        before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
        again = lab(*options)
        assert (again.returncode, len(stub.questions)) == (0, sent)
        assert "2 of 2 videos are already annotated" in again.stdout
        elsewhere = lab(*options[:-4], "--out", lab.folder / "other", "--fps", 2, "--to", "segments")
        assert (elsewhere.returncode, len(stub.questions)) == (0, sent)
        assert json.loads((lab.folder / "other" / "cage1.json").read_text(encoding="utf-8"))["segments"][0]["end_time"] == 4.0
        assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    replayed = lab("--provider", "replay", "--answers", out / "answers", "--out", lab.folder / "replayed")
    assert replayed.returncode == 0, replayed.stderr
    assert read_annotation(lab.folder / "replayed" / "cage1.csv").start.tolist() == [0, 40]


def test_changed_answers_are_refused(lab):
    out, video = lab.folder / "out", lab.videos[:1]
    assert lab("--provider", "chance", "--out", out, chosen=video).returncode == 0
    file = out / "answers" / "cage1.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    replay = ("--provider", "replay", "--answers", out / "answers", "--out", lab.folder / "replayed")
    content["answers"][0]["reply"]["text"] += " "
    file.write_text(json.dumps(content), encoding="utf-8")
    for arguments in (replay, ("--provider", "chance", "--out", out)):
        refused = lab(*arguments, chosen=video)
        assert refused.returncode == 1
        assert "does not match its checksum" in refused.stdout + refused.stderr
    del content["answers"][0]["sha256"]
    file.write_text(json.dumps(content), encoding="utf-8")
    accepted = lab(*replay, chosen=video)
    assert accepted.returncode == 0, accepted.stderr
    assert "no checksums" in accepted.stderr


def test_long_names_of_videos(lab):
    """A name that a file system just holds with .mp4 is too long with .boris."""
    name = "実験室の小鼠ab" * 12 + "abcdefghijk"
    video = lab.videos[0].rename(lab.folder / f"{name}.mp4")
    out = lab.folder / "out"
    options = ("--provider", "chance", "--out", out, "--to", "boris")
    done = lab(*options, chosen=[video])
    assert done.returncode == 0, done.stderr
    (written,) = out.glob("*.boris")
    assert "1 of 1 videos are already annotated" in lab(*options, chosen=[video]).stdout
    assert read_recordings(written)[0].id == name
    replayed = lab("--provider", "replay", "--answers", out / "answers", "--out", lab.folder / "replayed", chosen=[video])
    assert replayed.returncode == 0, replayed.stderr


def test_changed_files_are_not_overwritten(lab):
    out = lab.folder / "out"
    options = ("--provider", "chance", "--out", out)
    assert lab(*options).returncode == 0
    changed = lab(*options, "--seed", 1)
    assert changed.returncode == 1
    assert "was written with other settings; choose another folder" in changed.stderr
    with (out / "cage1.csv").open("a", encoding="utf-8") as file:
        file.write("cage1,grooming,50,55,,\n")
    edited = (out / "cage1.csv").read_bytes()
    refused = lab(*options)
    assert refused.returncode == 1
    assert "was changed after it was written" in refused.stderr
    assert (out / "cage1.csv").read_bytes() == edited


def test_prompts_and_estimates_send_nothing(lab):
    options = ("--provider", "gemini", "--model", "gemini-2.5-pro", "--base-url", "http://127.0.0.1:9", "--out", lab.folder / "out")
    prompts = lab(*options, "--show-prompt", "--window", 4, "--overlap", 2)
    assert prompts.returncode == 0, prompts.stderr
    assert prompts.stdout.count("=== cage1") == 2
    assert "- grooming: " in prompts.stdout
    assert prompts.stdout == lab(*options, "--show-prompt", "--window", 4, "--overlap", 2).stdout
    estimate = lab(*options, "--estimate")
    assert estimate.returncode == 0, estimate.stderr
    assert "2 videos, 1 requests, 0 of them in the cache" in estimate.stdout
    assert "cost: about $0.0" in estimate.stdout
    assert "time: about" in estimate.stdout
    assert not (lab.folder / "out").exists()
    unknown = lab("--provider", "openai", "--model", "mystery", "--out", lab.folder / "out", "--estimate")
    assert "there is no price for mystery" in unknown.stdout


@pytest.mark.slow
def test_failures_and_budgets_end_with_one_line_and_exit_code_1(lab):
    out = lab.folder / "out"
    with OpenAIStub(Say("I won't."), always=Fail(400, message=f"no {KEY}")) as stub:
        options = ("--provider", "openai", "--model", "gpt-4o", "--base-url", stub.url, "--fps", 1, "--out", out)
        refused = lab(*options, chosen=lab.videos[:1])
        assert refused.returncode == 1
        assert "error: 1 of 1 videos have no annotation" in refused.stderr
        assert not (out / "cage1.csv").exists()
        assert "I won't." in (out / "answers" / "cage1.json").read_text(encoding="utf-8")
        broken = lab(*options, "--seed", 3, chosen=lab.videos[1:])
        assert broken.returncode == 1
        assert "openai returned status 400: no ***" in broken.stdout
        sent = len(stub.questions)
        over_budget = lab(*options, "--seed", 4, "--max-cost", 0.001, chosen=lab.videos[1:])
        assert over_budget.returncode == 1
        assert "error: stopped before the maximum cost" in over_budget.stderr
        assert len(stub.questions) == sent
    for done in (refused, broken, over_budget):
        assert "Traceback" not in done.stderr
        assert KEY not in done.stdout + done.stderr


@pytest.mark.slow
def test_invalid_input(lab, tmp_path):
    (tmp_path / "text.mp4").write_text("hello", encoding="utf-8")
    options = ("--provider", "chance", "--out", tmp_path / "out")
    for arguments, code, message in (
        ((tmp_path / "text.mp4", "--task", "grooming", *options), 1, "text.mp4: the video is damaged"),
        ((tmp_path / "nope.mp4", "--task", "grooming", *options), 1, "no such video file"),
        ((lab.videos[0], lab.videos[0], "--task", "grooming", *options), 1, "duplicate video names: cage1"),
        ((lab.videos[0], "--task", "nope", *options), 1, "no task 'nope'"),
        ((lab.videos[0], "--task", "grooming", "--provider", "oracle", "--out", tmp_path), 1, "no provider 'oracle'"),
        ((lab.videos[0], "--task", "grooming", *options, "--time-format", "weeks"), 1, "`time_format` must be one of"),
        ((lab.videos[0], "--task", "grooming", *options, "--to", "sleap"), 1, "choose another format with --to"),
        ((lab.videos[0], "--task", "grooming"), 2, "Missing option"),
    ):
        done = ethobench("annotate", *arguments)
        assert done.returncode == code, done.stderr
        assert message in " ".join(done.stderr.replace("│", " ").split())
        assert "Traceback" not in done.stderr
    helped = ethobench("annotate", "--help")
    assert "--show-prompt" in helped.stdout
    assert "GEMINI_API_KEY" in helped.stdout


@pytest.mark.slow
def test_examples_and_initial_annotations(lab):
    study = lab.folder / "study"
    study.mkdir()
    plain_video(study / "example.mp4")
    (study / "example.json").write_text(GOOD, encoding="utf-8")
    (study / "recordings.csv").write_text(
        "recording,rate,annotations,annotator,video\nexample,10,example.json,anna,example.mp4\n", encoding="utf-8"
    )
    initial = lab.folder / "initial"
    initial.mkdir()
    (initial / "cage1.json").write_text('[{"start_time": 0, "end_time": 2, "behavior": "other"}]', encoding="utf-8")
    with GeminiStub(always=Say(GOOD)) as stub:
        options = ("--provider", "gemini", "--model", "gemini-2.5-flash", "--base-url", stub.url, "--out", lab.folder / "out")
        done = lab(*options, "--examples", study, "--example-seconds", 3, "--initial", initial, chosen=lab.videos[:1])
    assert done.returncode == 0, done.stderr
    texts = [content.get("text", "") for content in stub.questions[0]["contents"][0]["parts"]]
    assert any(text.startswith("Example 1 of 1") for text in texts)
    assert any("until 00:02" in text for text in texts)
    annotation = read_annotation(lab.folder / "out" / "cage1.csv")
    assert (annotation.start.tolist(), annotation.behavior.tolist()) == ([0, 20, 40], [1, 0, 1])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_batch_survives_kill_9_while_polling(lab):
    out = lab.folder / "out"
    with GeminiStub(always=Say(GOOD)) as stub:
        stub.batch_is_done = False
        options = ("--provider", "gemini", "--model", "gemini-2.5-flash", "--base-url", stub.url, "--out", out, "--batch", "--poll", "0.05")
        command = [*START, "annotate", *map(str, lab.videos), "--task", "grooming", *map(str, options)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            deadline = time.monotonic() + 60
            while stub.polls < 3 and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            run.kill()
        assert len(stub.batches) == 1
        assert not list(out.glob("*.csv")) if out.exists() else True
        stub.batch_is_done = True
        resumed = lab(*options)
        assert resumed.returncode == 0, resumed.stderr
        assert "was already submitted as batches/1" in resumed.stderr
        assert len(stub.batches) == 1
    assert sorted(path.name for path in out.glob("cage*.csv")) == ["cage1.csv", "cage2.csv"]
