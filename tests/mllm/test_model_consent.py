"""A saved model folder is untrusted: by itself it can neither send anything nor read files outside of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ethobench import Dataset, Ethogram, Recording, Signals, load_model
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.mllm.model import Mllm
from ethobench.models.network_use import ConsentError
from ethobench.models.saving import digest_files
from tests.mllm.drawing import plain_video
from tests.mllm.stubs import GeminiStub, OpenAIStub, Say

PRIVATE = "not-for-you-0123456789"
OTHER = '{"segments": [{"start_time": "00:00", "end_time": "00:06", "behavior": "rest"}]}'
LABELS = Ethogram(["rest", "run"])


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A study of one recording with signals and a video."""
    root = tmp_path_factory.mktemp("study")
    plain_video(root / "r1.mp4")
    rows = [f"{frame / 10},{np.sin(frame)}" for frame in range(60)]
    (root / "r1.csv").write_text("\n".join(["time,AccX", *rows]) + "\n", encoding="utf-8")
    (root / "recordings.csv").write_text("recording,individual,rate,signals,video\nr1,a,10,r1.csv,r1.mp4\n", encoding="utf-8")
    return root


@pytest.fixture
def recording(study) -> Recording:
    return Recording("r1", rate=10, n_frames=60, signals=Signals(np.zeros((60, 1)), ("AccX",), 10), video=study / "r1.mp4")


def downloaded(folder: Path, **params: object) -> Path:
    """Save a model as another person would have made it; nothing is contacted for that."""
    Mllm(**params).fit(Dataset((), LABELS, name="mine")).save(folder)
    return folder


def rewrite(folder: Path, name: str, **changes: object) -> None:
    """Change a JSON file of a saved model, and its digest with it."""
    content = json.loads((folder / name).read_text(encoding="utf-8"))
    (folder / name).write_text(json.dumps({**content, **changes}), encoding="utf-8")
    card = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    (folder / "model.json").write_text(json.dumps({**card, "digest": digest_files(folder)}), encoding="utf-8")


def predict(*arguments: object):
    from ethobench.cli import app

    return CliRunner().invoke(app, ["predict", *map(str, arguments)])


@pytest.mark.parametrize(("stub_class", "provider"), [(OpenAIStub, "openai"), (GeminiStub, "gemini")])
def test_a_downloaded_folder_sends_nothing_without_consent(stub_class, provider, study, recording, tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_DATABASE_PASSWORD", PRIVATE)
    with stub_class(always=Say(OTHER)) as thief:
        stolen = {"provider": provider, "model": "m", "base_url": thief.url, "key_variable": "LAB_DATABASE_PASSWORD"}
        folder = downloaded(tmp_path / "model", **stolen)
        done = predict(folder, study, "--out", tmp_path / "out")
        assert isinstance(done.exception, ConsentError)
        with pytest.raises(ConsentError, match=r"base_url .*key_variable 'LAB_DATABASE_PASSWORD'.*may not set.* base_url=") as refusal:
            load_model(folder)
        with pytest.raises(ConsentError, match="key_variable"):
            load_model(folder, allow_network=True, base_url=thief.url)
        stated = {"base_url": thief.url, "key_variable": "LAB_DATABASE_PASSWORD"}
        with pytest.raises(ConsentError, match=r"would send video to .*127\.0\.0\.1.* LAB_DATABASE_PASSWORD\. Nothing was sent"):
            load_model(folder, **stated).predict(recording)
        assert thief.received == []
    assert PRIVATE not in str(refusal.value)


@pytest.mark.slow
def test_with_consent_the_destination_is_printed_first(study, tmp_path):
    with OpenAIStub(always=Say(OTHER)) as stub:
        folder = downloaded(tmp_path / "model", provider="openai", model="m", base_url=stub.url)
        server = f"base_url={stub.url}"
        refused = predict(folder, study, "--out", tmp_path / "out", "--param", server)
        assert stub.received == []
        assert "would send video of 1 recording to openai (m) at 127.0.0.1" in str(refused.exception)
        assert not (tmp_path / "out").exists()
        done = predict(folder, study, "--out", tmp_path / "out", "--param", server, "--allow-network")
        assert done.exit_code == 0, done.output
        assert len(stub.questions) == 1
    host = stub.url.removeprefix("http://")
    assert f"network: {folder} sends video of 1 recording to openai (m) at {host}, with the key in OPENAI_API_KEY" in done.stderr
    assert "1 bouts" in done.stdout


@pytest.fixture
def view(monkeypatch):
    """Run ``ethobench view`` up to the point where it would serve its page; the projects that it would serve are in `projects`."""
    from ethobench.app import server
    from ethobench.cli import app

    projects = []
    monkeypatch.setattr(server, "serve", lambda project, *_, **__: projects.append(project))

    def run(*arguments: object):
        return CliRunner().invoke(app, ["view", *map(str, arguments), "--no-browser"])

    run.projects = projects
    return run


@pytest.mark.parametrize(("stub_class", "provider"), [(OpenAIStub, "openai"), (GeminiStub, "gemini")])
def test_the_viewer_sends_nothing_without_consent(stub_class, provider, study, view, tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_DATABASE_PASSWORD", PRIVATE)
    with stub_class(always=Say(OTHER)) as thief:
        stolen = {"base_url": thief.url, "key_variable": "LAB_DATABASE_PASSWORD"}
        folder = downloaded(tmp_path / "model", provider=provider, model="m", **stolen)
        corrections = ("--corrections", tmp_path / "corrections")
        unstated = view(study, "--model", folder, *corrections)
        assert isinstance(unstated.exception, ConsentError)
        allowed_only = view(study, "--model", folder, "--allow-network", *corrections)
        assert isinstance(allowed_only.exception, ConsentError)
        assert "base_url=" in str(allowed_only.exception)
        stated = [option for name, value in stolen.items() for option in ("--param", f"{name}={value}")]
        stated_only = view(study, "--model", folder, *stated, *corrections)
        assert isinstance(stated_only.exception, ConsentError)
        assert "would send video of 1 recording" in str(stated_only.exception)
        assert thief.received == []
    assert view.projects == []
    for refused in (unstated, allowed_only, stated_only):
        assert PRIVATE not in f"{refused.exception}{refused.output}"


@pytest.mark.slow
def test_the_viewer_prints_the_destination_first(study, view, tmp_path):
    with OpenAIStub(always=Say(OTHER)) as stub:
        folder = downloaded(tmp_path / "model", provider="openai", model="m", base_url=stub.url)
        consent = ("--param", f"base_url={stub.url}", "--allow-network")
        done = view(study, "--model", folder, *consent, "--corrections", tmp_path / "corrections")
        assert done.exit_code == 0, done.output
        assert len(stub.questions) == 1
    host = stub.url.removeprefix("http://")
    assert f"network: model sends video of 1 recording to openai (m) at {host}, with the key in OPENAI_API_KEY" in done.stderr
    (project,) = view.projects
    assert [(track.name, len(track.annotation)) for track in project.recordings[0].tracks] == [("model", 1)]


@pytest.mark.parametrize("pair", ["base_url", "=http://localhost"])
def test_settings_for_the_viewers_models_are_pairs(pair, study, view, tmp_path):
    done = view(study, "--model", downloaded(tmp_path / "model", provider="replay"), "--param", pair)
    assert done.exit_code == 2
    assert "is not NAME=VALUE" in done.stderr
    assert view.projects == []


def test_the_default_address_of_a_provider_needs_consent_too(recording, tmp_path):
    folder = downloaded(tmp_path / "model", provider="gemini", model="gemini-2.5-flash")
    use = load_model(folder).network_use()
    assert (use.host, use.key_variables) == ("generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY"))
    with pytest.raises(ConsentError, match=r"at generativelanguage\.googleapis\.com"):
        load_model(folder).predict(recording)


def test_answers_and_urls_are_stated_by_the_user(recording, tmp_path):
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "r1.json").write_text(OTHER, encoding="utf-8")
    folder = downloaded(tmp_path / "model", provider="replay", answers=str(tmp_path / "answers"))
    with pytest.raises(ConsentError, match="names answers"):
        load_model(folder)
    assert len(load_model(folder, answers=str(tmp_path / "answers")).predict(recording).annotation) == 1
    linked = downloaded(tmp_path / "linked", provider="gemini", model="m", input_type="link", video_url="gs://elsewhere")
    with pytest.raises(ConsentError, match="names video_url"):
        load_model(linked)
    with pytest.raises(EthobenchError, match="provider cannot be set"):
        load_model(folder, provider="chance")


def test_tasks_travel_with_the_model_and_are_read_from_nowhere_else(recording, tmp_path):
    task = tmp_path / "mine.toml"
    task.write_text('animals = "one rat"\n[[behavior]]\nname = "rest"\ndefinition = "lies"\n[[behavior]]\nname = "run"\n', encoding="utf-8")
    folder = downloaded(tmp_path / "model", provider="replay", task=str(task))
    task.unlink()
    loaded = load_model(folder)
    assert (loaded.task.animals, loaded.task.ethogram["rest"].definition) == ("one rat", "lies")
    rewrite(folder, "examples.json", task=None)
    with pytest.raises(FormatError, match="files outside it are not read"):
        load_model(folder)


CLIP = {"digest": "", "start": 0.0, "stop": 5.0, "is_full_video": True, "fps": None, "height": None, "timestamps": False}


@pytest.mark.parametrize(
    ("file", "content", "input_type", "message"),
    [
        (None, "", "video", "the video of example 0 is missing"),
        ("example0.mp4", PRIVATE, "video", "not a video"),
        ("example0.mp4", "#EXTM3U\nsecret.txt\n", "frames", "not a video"),
        (None, "", "link", "not below the video_url"),
    ],
)
def test_worked_examples_are_videos_of_the_folder(file, content, input_type, message, tmp_path):
    (tmp_path / "secret.txt").write_text(PRIVATE, encoding="utf-8")
    folder = downloaded(tmp_path / "model", provider="gemini", model="m")
    if file:
        (folder / file).write_text(content, encoding="utf-8")
    clip = {**CLIP, "input_type": input_type, "url": str(tmp_path / "secret.txt")}
    rewrite(folder, "examples.json", examples=[{"segments": [], "duration": 5.0, "behavior": "", "clip": clip}])
    with pytest.raises(FormatError, match=message):
        load_model(folder, allow_network=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes of POSIX")
@pytest.mark.parametrize("name", ["example0.mp4", "training.json", "model.json", "out_of_fold", "boost/weights.safetensors"])
def test_links_out_of_the_folder_are_refused(name, tmp_path):
    folder = downloaded(tmp_path / "model", provider="replay")
    outside = tmp_path / "outside"
    if name == "out_of_fold":
        outside.mkdir()
    else:
        outside.write_bytes((folder / name).read_bytes() if (folder / name).is_file() else PRIVATE.encode())
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    with pytest.raises(FormatError, match="points outside the folder"):
        load_model(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes of POSIX")
def test_pipes_and_special_names_are_refused_and_links_within_are_not(tmp_path):
    folder = downloaded(tmp_path / "model", provider="replay")
    (folder / "CARD.md").rename(folder / "README.md")
    (folder / "CARD.md").symlink_to("README.md")
    rewrite(folder, "training.json")
    load_model(folder)
    (folder / "pipe").symlink_to(".")
    with pytest.raises(FormatError, match="a link to a folder"):
        load_model(folder)
    (folder / "pipe").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(FormatError, match="not a regular file or folder"):
        load_model(folder)
    (folder / "pipe").unlink()
    (folder / "a\\..\\b").write_text("", encoding="utf-8")
    with pytest.raises(FormatError, match="has a path separator"):
        load_model(folder)
