"""Presentation times, and the pictures displayed at given times."""

from __future__ import annotations

import numpy as np
import pytest
from tests.video_files import picture_number, write_numbered_video

from ethobench.core.errors import FormatError
from ethobench.core.video import Pictures, constant_rate, presentation_times, probe

IRREGULAR = np.round(np.concatenate((np.arange(20) / 25, 1.1 + np.arange(20) / 10)), 3)
REGULAR = np.arange(40) / 30


def numbers_at(path, times, near):
    """Return the numbers of the displayed pictures."""
    grays = [None if picture is None else picture.to_ndarray(format="rgb24").mean() for picture in Pictures(path).at(times)]
    return [None if gray is None else picture_number(gray, number) for gray, number in zip(grays, near, strict=True)]


@pytest.mark.parametrize(
    ("name", "codec", "times"),
    [("a.mp4", "libx264", IRREGULAR), ("a.webm", "libvpx", IRREGULAR), ("a.avi", "mpeg4", REGULAR), ("b.mp4", "libx264", REGULAR)],
)
def test_each_time_shows_the_picture_that_was_encoded_for_it(tmp_path, name, codec, times):
    path = write_numbered_video(tmp_path / name, times, codec)
    assert np.allclose(presentation_times(path), times, atol=2e-3)
    middles = (times + np.append(times[1:], times[-1] + 0.02)) / 2
    assert numbers_at(path, middles.tolist(), range(40)) == [*range(40)]
    assert numbers_at(path, middles[25:].tolist(), range(25, 40)) == [*range(25, 40)], "after seeking"
    assert (constant_rate(presentation_times(path)) is None) == (times is IRREGULAR)


def test_one_picture_is_shown_until_the_next_and_none_after_the_end(tmp_path):
    path = write_numbered_video(tmp_path / "a.mp4", IRREGULAR)
    assert numbers_at(path, [0.0, 0.0, 0.77, 1.09, 1.1, 60.0], [0, 0, 19, 19, 20, 39]) == [0, 0, 19, 19, 20, None]
    assert list(Pictures(path).at([])) == []


@pytest.mark.slow
def test_a_truncated_video_ends_early_or_is_an_error_that_names_the_file(tmp_path):
    path = write_numbered_video(tmp_path / "a.webm", np.arange(120) / 30, "libvpx")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    numbers = numbers_at(path, ((np.arange(120) + 0.5) / 30).tolist(), range(120))
    assert numbers[:30] == [*range(30)]
    assert numbers[-1] is None
    path.write_bytes(content[:40])
    with pytest.raises(FormatError, match=r"a\.webm"):
        presentation_times(path)


def test_the_codec_is_reported(tmp_path):
    assert probe(write_numbered_video(tmp_path / "a.avi", REGULAR, "mpeg4")).codec == "mpeg4"


@pytest.mark.parametrize("rate", [0.5, 25.0, 29.97, 240.0])
def test_the_rate_of_regular_times_is_constant(rate):
    for n in (2, 3, 100):
        assert constant_rate(7.5 + np.arange(n) / rate) == pytest.approx(rate)
    for irregular in ([], [0.0], [3.0, 3.0], [0, 1, 2, 4], [0, 1, 1.2, 3]):
        assert constant_rate(np.array(irregular, dtype=float) / rate) is None


@pytest.mark.parametrize("damaged", [0, 3])
@pytest.mark.parametrize("n_decoded", [0, 1, 5])
def test_a_damaged_video_is_an_error_only_if_nothing_can_be_decoded(tmp_path, monkeypatch, damaged, n_decoded):
    path = write_numbered_video(tmp_path / "a.mp4", REGULAR)
    pictures = [*Pictures(path)][:n_decoded]

    def decode(self, *_):
        yield from pictures
        self.damaged += damaged

    monkeypatch.setattr(Pictures, "_decode", decode)
    if damaged and not n_decoded:
        with pytest.raises(FormatError, match=r"a\.mp4.*nothing can be decoded after 0.01 s"):
            [*Pictures(path).at([0.01, 9.0])]
    else:
        first, late = Pictures(path).at([0.01, 9.0])
        assert first is (pictures[0][1] if n_decoded else None)
        assert late is None


def test_the_last_picture_is_shown_for_one_frame(tmp_path):
    path = write_numbered_video(tmp_path / "a.mp4", [k / 10 for k in range(8)])
    assert numbers_at(path, [0.65, 0.7, 0.78, 0.82, 0.9], [6, 7, 7, 7, 7]) == [6, 7, 7, None, None]


def test_times_are_from_the_first_picture(tmp_path):
    path = write_numbered_video(tmp_path / "a.mkv", [0.5 + k / 10 for k in range(8)])
    assert presentation_times(path)[:3] == pytest.approx([0, 0.1, 0.2], abs=2e-3)
    assert numbers_at(path, [0.05, 0.15, 0.65], [0, 1, 6]) == [0, 1, 6]
    assert numbers_at(path, [0.35], [3]) == [3], "after seeking"
