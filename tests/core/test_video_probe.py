"""Properties of video files, against the videos that were written and against streams with missing fields."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from types import SimpleNamespace

import pytest
from tests.video_files import write_video

from ethobench.core import video
from ethobench.core.errors import FormatError
from ethobench.core.video import probe

pytest.importorskip("av", reason="videos are read with PyAV")

STILL = [SimpleNamespace(pts=0, duration=None)]
"""Packets of a video without length."""


def probe_fields(tmp_path, monkeypatch, *, packets=(), container_duration=None, audio=(), **fields):
    """Probe a file whose header has only these fields."""
    path = tmp_path / "a.mp4"
    path.write_bytes(b"12345")
    empty = {
        "duration": None,
        "average_rate": None,
        "guessed_rate": None,
        "frames": 0,
        "start_time": None,
        "codec_context": SimpleNamespace(name="h264"),
    }
    stream = SimpleNamespace(**{**empty, "time_base": Fraction(1, 100), "width": 64, "height": 48, **fields})
    container = SimpleNamespace(duration=container_duration, streams=SimpleNamespace(audio=audio), demux=lambda _: packets)

    @contextmanager
    def opened(_path):
        yield container, stream

    monkeypatch.setattr(video, "open_video", opened)
    return probe(path)


def test_a_written_video(tmp_path):
    info = probe(str(write_video(tmp_path / "a.webm", 30, 10)))
    assert (info.rate, info.n_frames, info.width, info.height, info.has_audio) == (10, 30, 32, 32, False)
    assert info.duration == pytest.approx(3, abs=0.05)
    assert info.size == (tmp_path / "a.webm").stat().st_size


def test_the_header_states_rate_and_length(tmp_path, monkeypatch):
    info = probe_fields(tmp_path, monkeypatch, duration=250, average_rate=Fraction(30), guessed_rate=Fraction(25), frames=77, audio=[1])
    assert (info.duration, info.rate, info.n_frames, info.has_audio, info.size) == (2.5, 30, 77, True, 5)
    info = probe_fields(tmp_path, monkeypatch, container_duration=2_500_000, guessed_rate=Fraction(25))
    assert (info.duration, info.rate, info.n_frames, info.has_audio) == (2.5, 25, 62, False)
    assert probe_fields(tmp_path, monkeypatch, duration=1, average_rate=Fraction(25)).n_frames == 1


def test_without_a_length_the_packets_count(tmp_path, monkeypatch):
    packets = [SimpleNamespace(pts=pts, duration=duration) for pts, duration in ((100, 4), (196, 4), (192, None), (None, 4))]
    assert probe_fields(tmp_path, monkeypatch, packets=packets, average_rate=Fraction(25), start_time=100).duration == 1
    assert probe_fields(tmp_path, monkeypatch, packets=packets, average_rate=Fraction(25)).duration == 2
    with pytest.raises(FormatError, match="no frames"):
        probe_fields(tmp_path, monkeypatch, packets=packets[3:], average_rate=Fraction(25))


@pytest.mark.parametrize(
    "fields", [{"duration": 250}, {"duration": -1, "average_rate": Fraction(25)}, {"packets": STILL, "average_rate": Fraction(25)}]
)
def test_videos_without_length_or_rate_are_refused(tmp_path, monkeypatch, fields):
    with pytest.raises(FormatError, match="no length or no frame rate"):
        probe_fields(tmp_path, monkeypatch, **fields)
