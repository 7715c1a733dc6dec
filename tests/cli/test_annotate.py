"""`ethobench annotate` as a user runs it, against stubs; with a kill -9 while a batch is worked on."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ethobench import read_annotation, read_recordings
from tests.mllm.conftest import KEY
from tests.mllm.drawing import plain_video
from tests.mllm.stubs import Fail, GeminiStub, OpenAIStub, Say

pytestmark = pytest.mark.slow  # each command starts a process

ROWS = [("00:00", "00:04", "grooming"), ("00:04", "00:06", "other")]
GOOD = json.dumps({"segments": [{"start_time": a, "end_time": b, "behavior": name} for a, b, name in ROWS]})
PROGRAM = """
from ethobench.cli import annotate, app, main
if "annotate" not in [command.name for command in app.registered_commands]:
    app.command("annotate")(annotate.run)
main()
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", PROGRAM, "annotate", *map(str, arguments)]


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE", "GEMINI", "OPENAI", "DASHSCOPE"))}
    keys = {"GEMINI_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    return {**kept, **keys, "ETHOBENCH_CACHE": str(folder / "cache"), "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


@pytest.fixture
def lab(tmp_path):
    """Two videos, and the command to annotate them."""
    videos = [plain_video(tmp_path / f"cage{k}.mp4") for k in (1, 2)]

    def annotate(*arguments: object, chosen=videos) -> subprocess.CompletedProcess[str]:
        told = command(*chosen, "--task", "grooming", *arguments)
        return subprocess.run(told, capture_output=True, text=True, encoding="utf-8", env=environment(tmp_path), check=False)

    annotate.folder, annotate.videos = tmp_path, videos
    return annotate


def test_videos_become_annotations_that_everything_reads(lab):
    out = lab.folder / "out"
    with GeminiStub(always=Say(f"```json\n{GOOD}\n```")) as stub:
        asked = ("--provider", "gemini", "--model", "gemini-2.5-flash", "--base-url", stub.url, "--out", out, "--fps", 2)
        first = lab(*asked, "--at-once", 1)
        assert first.returncode == 0, first.stderr
        assert "cage1: repaired (fence 1)" in first.stdout
        assert "2 videos annotated" in first.stdout
        found = read_annotation(out / "cage1.csv")
        assert (found.start.tolist(), found.stop.tolist(), found.n_frames, found.rate) == ([0, 40], [40, 60], 60, 10.0)
        with (out / "outcomes.csv").open(encoding="utf-8") as file:
            assert [(row["recording"], row["state"], row["repairs"]) for row in csv.DictReader(file)] == [
                ("cage1", "repaired", "fence 1"),
                ("cage2", "repaired", "fence 1"),
            ]
        sent = len(stub.questions)
        assert sent == 1  # both videos have the same content, so it is one question
        before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
        again = lab(*asked)
        assert (again.returncode, len(stub.questions)) == (0, sent)
        assert "2 of 2 videos were annotated before" in again.stdout
        elsewhere = lab(*asked[:-4], "--out", lab.folder / "other", "--fps", 2, "--to", "segments")
        assert (elsewhere.returncode, len(stub.questions)) == (0, sent)
        assert json.loads((lab.folder / "other" / "cage1.json").read_text(encoding="utf-8"))["segments"][0]["end_time"] == 4.0
        assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    replayed = lab("--provider", "replay", "--answers", out / "answers", "--out", lab.folder / "replayed")
    assert replayed.returncode == 0, replayed.stderr
    assert read_annotation(lab.folder / "replayed" / "cage1.csv").start.tolist() == [0, 40]


def test_kept_answers_that_were_changed_are_refused(lab):
    out, video = lab.folder / "out", lab.videos[:1]
    assert lab("--provider", "chance", "--out", out, chosen=video).returncode == 0
    file = out / "answers" / "cage1.json"
    kept = json.loads(file.read_text(encoding="utf-8"))
    replay = ("--provider", "replay", "--answers", out / "answers", "--out", lab.folder / "replayed")
    kept["answers"][0]["reply"]["text"] += " "
    file.write_text(json.dumps(kept), encoding="utf-8")
    for arguments in (replay, ("--provider", "chance", "--out", out)):
        refused = lab(*arguments, chosen=video)
        assert refused.returncode == 1
        assert "changed since it was kept" in refused.stdout + refused.stderr
    del kept["answers"][0]["sha256"]
    file.write_text(json.dumps(kept), encoding="utf-8")
    accepted = lab(*replay, chosen=video)
    assert accepted.returncode == 0, accepted.stderr
    assert "without checksums" in accepted.stderr


def test_long_names_of_videos(lab):
    """A name that a file system just holds with .mp4 is too long with .boris."""
    name = "実験室の小鼠ab" * 12 + "abcdefghijk"
    video = lab.videos[0].rename(lab.folder / f"{name}.mp4")
    out = lab.folder / "out"
    asked = ("--provider", "chance", "--out", out, "--to", "boris")
    done = lab(*asked, chosen=[video])
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.boris")
    assert "1 of 1 videos were annotated before" in lab(*asked, chosen=[video]).stdout
    assert read_recordings(made)[0].id == name
    replayed = lab("--provider", "replay", "--answers", out / "answers", "--out", lab.folder / "replayed", chosen=[video])
    assert replayed.returncode == 0, replayed.stderr


def test_nothing_is_overwritten(lab):
    out = lab.folder / "out"
    asked = ("--provider", "chance", "--out", out)
    assert lab(*asked).returncode == 0
    changed = lab(*asked, "--seed", 1)
    assert changed.returncode == 1
    assert "was made from other questions; choose another --out" in changed.stderr
    with (out / "cage1.csv").open("a", encoding="utf-8") as file:
        file.write("cage1,grooming,50,55,,\n")
    edited = (out / "cage1.csv").read_bytes()
    refused = lab(*asked)
    assert refused.returncode == 1
    assert "is not as this command left it" in refused.stderr
    assert (out / "cage1.csv").read_bytes() == edited


def test_prompts_and_estimates_send_nothing(lab):
    asked = ("--provider", "gemini", "--model", "gemini-2.5-pro", "--base-url", "http://127.0.0.1:9", "--out", lab.folder / "out")
    shown = lab(*asked, "--show-prompt", "--window", 4, "--overlap", 2)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("=== cage1") == 2
    assert "- grooming: " in shown.stdout
    assert shown.stdout == lab(*asked, "--show-prompt", "--window", 4, "--overlap", 2).stdout
    told = lab(*asked, "--estimate")
    assert told.returncode == 0, told.stderr
    assert "2 videos, 1 questions, 0 of them answered before" in told.stdout
    assert "dollars: about 0.0" in told.stdout
    assert "minutes: about" in told.stdout
    assert not (lab.folder / "out").exists()
    unknown = lab("--provider", "openai", "--model", "mystery", "--out", lab.folder / "out", "--estimate")
    assert "no price is known for mystery" in unknown.stdout


def test_failures_and_budgets_end_with_one_line_and_exit_code_1(lab):
    out = lab.folder / "out"
    with OpenAIStub(Say("I won't."), always=Fail(400, message=f"no {KEY}")) as stub:
        asked = ("--provider", "openai", "--model", "gpt-4o", "--base-url", stub.url, "--fps", 1, "--out", out)
        refused = lab(*asked, chosen=lab.videos[:1])
        assert refused.returncode == 1
        assert "error: 1 of 1 videos have no annotation" in refused.stderr
        assert not (out / "cage1.csv").exists()
        assert "I won't." in (out / "answers" / "cage1.json").read_text(encoding="utf-8")
        broken = lab(*asked, "--seed", 3, chosen=lab.videos[1:])
        assert broken.returncode == 1
        assert "openai answered 400: no ***" in broken.stdout
        sent = len(stub.questions)
        poor = lab(*asked, "--seed", 4, "--max-cost", 0.001, chosen=lab.videos[1:])
        assert poor.returncode == 1
        assert "error: stopped before the limit" in poor.stderr
        assert len(stub.questions) == sent
    for done in (refused, broken, poor):
        assert "Traceback" not in done.stderr
        assert KEY not in done.stdout + done.stderr


def test_mistakes(lab, tmp_path):
    (tmp_path / "text.mp4").write_text("hello", encoding="utf-8")
    asked = ("--provider", "chance", "--out", tmp_path / "out")
    for arguments, code, told in (
        ((tmp_path / "text.mp4", "--task", "grooming", *asked), 1, "text.mp4: the video is damaged"),
        ((tmp_path / "nope.mp4", "--task", "grooming", *asked), 1, "no such video file"),
        ((lab.videos[0], lab.videos[0], "--task", "grooming", *asked), 1, "these stand twice: cage1"),
        ((lab.videos[0], "--task", "nope", *asked), 1, "no task 'nope'"),
        ((lab.videos[0], "--task", "grooming", "--provider", "oracle", "--out", tmp_path), 1, "no provider 'oracle'"),
        ((lab.videos[0], "--task", "grooming", *asked, "--times", "weeks"), 1, "times is one of"),
        ((lab.videos[0], "--task", "grooming", *asked, "--to", "sleap"), 1, "choose another --to"),
        ((lab.videos[0], "--task", "grooming"), 2, "Missing option"),
    ):
        done = subprocess.run(command(*arguments), capture_output=True, text=True, encoding="utf-8", env=environment(tmp_path), check=False)
        assert done.returncode == code, done.stderr
        assert told in " ".join(done.stderr.replace("│", " ").split())
        assert "Traceback" not in done.stderr
    helped = subprocess.run(command("--help"), capture_output=True, text=True, encoding="utf-8", env=environment(tmp_path), check=False)
    assert "--show-prompt" in helped.stdout
    assert "GEMINI_API_KEY" in helped.stdout


def test_examples_and_given_beginnings(lab):
    study = lab.folder / "study"
    study.mkdir()
    plain_video(study / "known.mp4")
    (study / "known.json").write_text(GOOD, encoding="utf-8")
    (study / "recordings.csv").write_text(
        "recording,rate,annotations,annotator,video\nknown,10,known.json,anna,known.mp4\n", encoding="utf-8"
    )
    given = lab.folder / "given"
    given.mkdir()
    (given / "cage1.json").write_text('[{"start_time": 0, "end_time": 2, "behavior": "other"}]', encoding="utf-8")
    with GeminiStub(always=Say(GOOD)) as stub:
        asked = ("--provider", "gemini", "--model", "gemini-2.5-flash", "--base-url", stub.url, "--out", lab.folder / "out")
        done = lab(*asked, "--examples", study, "--example-seconds", 3, "--given", given, chosen=lab.videos[:1])
    assert done.returncode == 0, done.stderr
    texts = [part.get("text", "") for part in stub.questions[0]["contents"][0]["parts"]]
    assert any(text.startswith("Example 1 of 1") for text in texts)
    assert any("until 00:02" in text for text in texts)
    found = read_annotation(lab.folder / "out" / "cage1.csv")
    assert (found.start.tolist(), found.behavior.tolist()) == ([0, 20, 40], [1, 0, 1])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system knows no kill -9")
def test_a_batch_survives_kill_9_while_polling(lab):
    out = lab.folder / "out"
    with GeminiStub(always=Say(GOOD)) as stub:
        stub.batch_is_done = False
        asked = ("--provider", "gemini", "--model", "gemini-2.5-flash", "--base-url", stub.url, "--out", out, "--batch", "--poll", "0.05")
        told = command(*lab.videos, "--task", "grooming", *asked)
        with subprocess.Popen(told, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(lab.folder)) as run:
            deadline = time.monotonic() + 60
            while stub.polls < 3 and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            run.kill()
        assert len(stub.batches) == 1
        assert not list(out.glob("*.csv")) if out.exists() else True
        stub.batch_is_done = True
        resumed = lab(*asked)
        assert resumed.returncode == 0, resumed.stderr
        assert "was handed in before as batches/1" in resumed.stderr
        assert len(stub.batches) == 1
    assert sorted(path.name for path in out.glob("cage*.csv")) == ["cage1.csv", "cage2.csv"]
