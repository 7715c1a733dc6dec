"""Fixtures for tests of language models: videos, a cache per test, and API keys that are not real."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethobench import Recording
from tests.mllm.drawing import draw_video, plain_video, social_recordings

KEY = "sk-not-a-real-key-0123456789"


@pytest.fixture(scope="session")
def social(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Three minutes of video with two drawn mice, and the reference annotation."""
    recording = social_recordings()[0]
    return recording.copy(id="mice", video=draw_video(recording, tmp_path_factory.mktemp("video") / "mice.mp4"))


@pytest.fixture(scope="session")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds of video that becomes brighter."""
    return plain_video(tmp_path_factory.mktemp("video") / "short.mp4")


@pytest.fixture(autouse=True)
def _isolated_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a new cache folder and API keys that are not real."""
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name in ("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT", "DASHSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
