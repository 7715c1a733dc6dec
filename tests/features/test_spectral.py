"""Spectral features of sine waves."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench.features.spectral import spectral_features


@pytest.mark.parametrize("rate", [25.0, 200.0])
def test_the_dominant_frequency_is_that_of_a_sine(rate):
    time = np.arange(0, 40, 1 / rate)
    waves = np.where(time < 20, np.sin(2 * np.pi * 2 * time), np.sin(2 * np.pi * 6 * time))[None]
    frames = np.array([int(10 * rate), int(30 * rate)])
    columns, names = spectral_features([("w", waves)], rate, frames, [int(4 * rate)])
    by_name = dict(zip(names, columns, strict=True))
    strongest = next(values for name, values in by_name.items() if "strongest" in name)
    assert 2**strongest == pytest.approx([2, 6], rel=0.1)
    for low, high, window in ((1.5, 2.5, 0), (5, 7.5, 1)):
        name = max((n for n in by_name if "Hz" in n), key=lambda n: by_name[n][window])
        edges = name.split("/")[1].removesuffix("Hz").split("-")
        assert float(edges[0]) < high
        assert float(edges[1]) > low
