"""Videos: probing, frames at given times, clips, timestamps, and files that are not videos."""

from __future__ import annotations

import av
import numpy as np
import pytest

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.video import probe
from ethobench.mllm.video import encode_jpeg, read_frames, render_text, write_clip

pytestmark = pytest.mark.slow


def grey_at(seconds: float) -> float:
    """Return the gray value of `plain_video` at a time."""
    return 20 + 30 * np.floor(seconds * 10 + 1e-6) / 10


def test_probe(short):
    info = probe(short)
    assert (info.duration, info.rate, info.width, info.height, info.has_audio) == (6.0, 10.0, 96, 64, False)
    assert info.size == short.stat().st_size


@pytest.mark.parametrize(("start", "stop", "fps"), [(0, None, 1), (0, None, 2.5), (2, 5, 2), (1.55, 3.2, 4), (0, 6, 30), (5.9, None, 10)])
def test_frames_are_those_displayed_at_each_time(short, start, stop, fps):
    frames = list(read_frames(short, start, stop, fps=fps))
    end = 6.0 if stop is None else stop
    times = [k / fps for k in range(1000) if start + k / fps < end - 1e-6]
    assert [at for at, _ in frames] == pytest.approx(times)
    assert [float(p.mean()) for _, p in frames] == pytest.approx([grey_at(start + t) for t in times], abs=4)


def test_all_frames_of_a_section(short):
    frames = list(read_frames(short, 2, 5))
    assert [at for at, _ in frames] == pytest.approx(np.arange(30) / 10)
    assert len(list(read_frames(short))) == 60


def test_scaled_frames_with_timestamps(short):
    (_, first), *_, (at, last) = read_frames(short, 1, 5, fps=1, height=32, timestamps=True)
    assert first.shape == (32, 48, 3)
    assert at == 3.0
    for frame, text in ((first, "00:00"), (last, "00:03")):
        drawn = frame[2:9, 2 : 2 + 30, 0] > 127
        assert (drawn == render_text(text).astype(bool)).all()
    assert next(iter(read_frames(short, height=1000)))[1].shape == (64, 96, 3)


def test_a_clip_has_just_that_section(short, tmp_path):
    write_clip(short, tmp_path / "part.mp4", 2, 5, height=32)
    info = probe(tmp_path / "part.mp4")
    assert (info.duration, info.rate, info.height) == (3.0, 10.0, 32)
    gray_values = [float(p.mean()) for _, p in read_frames(tmp_path / "part.mp4", fps=1)]
    assert gray_values == pytest.approx([grey_at(t) for t in (2, 3, 4)], abs=4)
    write_clip(short, tmp_path / "slow.mp4", fps=2)
    assert len(list(read_frames(tmp_path / "slow.mp4"))) == 12
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["part.mp4", "slow.mp4"]


def test_jpeg_can_be_read_back(short):
    _, frame = next(iter(read_frames(short, 3)))
    coded = encode_jpeg(frame)
    assert coded.startswith(b"\xff\xd8")
    context = av.CodecContext.create("mjpeg", "r")
    frames = [*context.decode(av.Packet(coded)), *context.decode(None)]
    assert frames[0].to_ndarray(format="rgb24").mean() == pytest.approx(grey_at(3), abs=4)


def test_files_that_are_not_videos(short, tmp_path):
    for name, content, message in (
        ("text.mp4", b"hello", "damaged or its codec is unknown"),
        ("empty.mp4", b"", "damaged or its codec is unknown"),
        ("cut.mp4", short.read_bytes()[:900], "damaged or its codec is unknown"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match=rf"{name}.*{message}"):
            probe(tmp_path / name)
    with pytest.raises(FormatError, match="no such video"):
        probe(tmp_path / "nope.mp4")
    with av.open(str(tmp_path / "sound.wav"), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), dtype=np.int16), format="s16", layout="mono")
        frame.rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(FormatError, match=r"sound\.wav.*only sound"):
        probe(tmp_path / "sound.wav")


def test_a_section_without_frames_raises_and_writes_no_file(short, tmp_path):
    with pytest.raises(EthobenchError, match="no frame"):
        write_clip(short, tmp_path / "out.mp4", 100, 110)
    assert not list(tmp_path.iterdir())


def test_damage_in_the_middle(short, tmp_path):
    content = bytearray(short.read_bytes())
    middle = len(content) // 3
    content[middle : middle + 2000] = b"\xff" * 2000
    (tmp_path / "bad.mp4").write_bytes(content)
    try:
        count = len(list(read_frames(tmp_path / "bad.mp4")))
    except FormatError as error:
        assert "bad.mp4" in str(error)
    else:
        assert count <= 60
