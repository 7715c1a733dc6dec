"""Times drawn into pictures, with a font of eleven characters, so that no font file is needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.formats.text import format_clock

GLYPHS = {
    "0": "01110 10001 10011 10101 11001 10001 01110",
    "1": "00100 01100 00100 00100 00100 00100 01110",
    "2": "01110 10001 00001 00110 01000 10000 11111",
    "3": "01110 10001 00001 00110 00001 10001 01110",
    "4": "00010 00110 01010 10010 11111 00010 00010",
    "5": "11111 10000 11110 00001 00001 10001 01110",
    "6": "01110 10000 10000 11110 10001 10001 01110",
    "7": "11111 00001 00010 00100 01000 01000 01000",
    "8": "01110 10001 10001 01110 10001 10001 01110",
    "9": "01110 10001 10001 01111 00001 00001 01110",
    ":": "00000 00100 00100 00000 00100 00100 00000",
}
ROWS_PER_PICTURE = 120


def draw_time(picture: NDArray[np.uint8], seconds: float) -> None:
    """Write a time, as whole seconds that have passed, white on black into the upper left corner.

    Parameters
    ----------
    picture : array of uint8 (height, width, 3)
        Changed in place.
    seconds : float
    """
    scale = max(1, picture.shape[0] // ROWS_PER_PICTURE)
    text = glyph_rows(format_clock(int(seconds)))
    box = np.kron(np.pad(text, 2), np.ones((scale, scale), dtype=np.uint8)) * 255
    height, width = min(box.shape[0], picture.shape[0]), min(box.shape[1], picture.shape[1])
    picture[:height, :width] = box[:height, :width, None]


def glyph_rows(text: str) -> NDArray[np.uint8]:
    """Return a text as seven rows of zeros and ones."""
    glyphs = [np.array([[int(c) for c in row] for row in GLYPHS[character].split()], dtype=np.uint8) for character in text]
    return np.concatenate([np.pad(glyph, ((0, 0), (0, 1))) for glyph in glyphs], axis=1)
