"""Filmstrips show the animals, or the signals, of a segment."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Recording
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.datasets.synthetic import make_dataset
from ethobench.figures.filmstrips import PICTURE_SIZE, Filmstrips
from ethobench.figures.scenes import GROUND
from tests.video_files import write_video

WIDTH, HEIGHT = PICTURE_SIZE


@pytest.fixture(scope="module")
def poses():
    return make_dataset("pose", individuals=1, seconds=20).recordings[0]


def drawn_share(picture):
    """Return the share of pixels that differ from the ground."""
    return (np.abs(np.asarray(picture, dtype=int) - GROUND).sum(axis=2) > 30).mean()


def test_every_picture_of_a_strip_shows_the_animals(poses):
    strip = Filmstrips(poses).draw(30, 120, n=5)
    assert strip.size == (5 * WIDTH, HEIGHT)
    shares = [drawn_share(strip.crop((k * WIDTH, 0, (k + 1) * WIDTH, HEIGHT))) for k in range(5)]
    assert min(shares) > 0.002


def test_a_strip_of_one_animal_shows_it_larger(poses):
    one = poses.signals.individuals[0]
    strips = Filmstrips(poses)
    apart = max(range(0, 540, 30), key=lambda start: np.ptp(np.nanmean(poses.signals.positions[start], axis=1), axis=0).sum())
    assert drawn_share(strips.draw(apart, apart + 1, n=1, individual=one)) > drawn_share(strips.draw(apart, apart + 1, n=1))


def test_a_signal_is_plotted_in_one_picture():
    recording = make_dataset("tag", individuals=1, seconds=20).recordings[0]
    picture = Filmstrips(recording).draw(100, 160)
    assert picture.size == PICTURE_SIZE
    assert drawn_share(picture) > 0.1


def test_a_video_is_shown_completely_without_poses_and_an_unreadable_one_is_replaced_by_poses(tmp_path, poses):
    write_video(tmp_path / "arena.webm", 60, 30)
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    strip = Filmstrips(Recording("arena", rate=30, n_frames=60, video=tmp_path / "arena.webm")).draw(0, 60, n=2)
    assert strip.size == (2 * WIDTH, HEIGHT)
    assert drawn_share(strip) > 0.3
    broken = Recording("a", rate=poses.rate, signals=poses.signals, video=tmp_path / "broken.mp4")
    assert drawn_share(Filmstrips(broken).draw(30, 60)) > 0.002


def test_wrong_segments_and_recordings_are_refused(poses):
    with pytest.raises(ParameterError, match="start < stop"):
        Filmstrips(poses).draw(40, 40)
    with pytest.raises(ParameterError, match="between 1 and"):
        Filmstrips(poses).draw(40, 50, n=0)
    with pytest.raises(EthobenchError, match="no poses and no signals"):
        Filmstrips(Recording("empty", rate=10, n_frames=100))
