"""Text on pictures: a font that has the characters of a text, boxes with text, and clock times."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

PADDING = 5
DIMMED = 0.42  # brightness of the picture behind text
INK = (245, 246, 248)
LAST_RESORT = "LastResort"
"""A font that has a box for each character."""


def clock_text(seconds: float, digits: int = 2) -> str:
    """Return a time as "M:SS.ss", with hours if there are any.

    >>> clock_text(83.456), clock_text(3600, 0)
    ('1:23.45', '1:00:00')
    """
    scale = 10**digits
    ticks = int(seconds * scale + 1e-6)
    total, rest = divmod(ticks, scale)
    hours, minutes, second = total // 3600, total // 60 % 60, total % 60
    text = f"{hours}:{minutes:02d}:{second:02d}" if hours else f"{minutes}:{second:02d}"
    return f"{text}.{rest:0{digits}d}" if digits else text


def font_for(text: str, size: int) -> Any:
    """Return a font for a text: DejaVu Sans, which matplotlib contains, or a font of the system that has more of its characters."""
    return _load(_font_path(frozenset(text)), size)


def missing_characters(texts: Iterable[str]) -> str:
    """Return the characters of texts that neither DejaVu Sans nor the best font of the system has, and which are drawn as boxes.

    >>> missing_characters(["groom", "чистка"])
    ''
    """
    missing = {c for text in texts for c in _uncovered(frozenset(text), _font_path(frozenset(text)))}
    return "".join(sorted(missing))


def font_families(texts: Iterable[str]) -> list[str]:
    """Return the font families for matplotlib that together have most characters of some texts."""
    from matplotlib.font_manager import FontProperties

    paths = dict.fromkeys([_default_font(), *(_font_path(frozenset(text)) for text in texts)])
    return list(dict.fromkeys(FontProperties(fname=path).get_name() for path in paths))


@lru_cache(maxsize=1024)
def _font_path(characters: frozenset[str]) -> str:
    default = _default_font()
    missing = _uncovered(characters, default)
    other = _system_font(missing) if missing else None
    return other if other is not None and len(_uncovered(characters, other)) < len(missing) else default


def _uncovered(characters: frozenset[str], path: str) -> frozenset[str]:
    return frozenset(c for c in characters if not c.isspace() and ord(c) not in _characters(path))


@lru_cache(maxsize=64)
def _load(path: str, size: int) -> Any:
    from PIL import ImageFont

    try:
        return ImageFont.truetype(path, size)
    except OSError:  # a distribution of matplotlib without its fonts
        return ImageFont.load_default(size)


@lru_cache(maxsize=1)
def _default_font() -> str:
    import matplotlib

    return str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf")


@lru_cache(maxsize=64)
def _characters(path: str) -> frozenset[int]:
    """Return the code points that a font has glyphs for."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()


@lru_cache(maxsize=256)
def _system_font(missing: frozenset[str]) -> str | None:
    """Return the font of the system that has most of these characters; None if none has any."""
    from matplotlib.font_manager import fontManager

    regular = (font for font in fontManager.ttflist if font.weight in (400, "normal", "regular", "medium"))
    paths = sorted({font.fname for font in regular if LAST_RESORT not in font.name.replace(" ", "")})
    counts = {path: sum(ord(character) in _characters(path) for character in missing) for path in paths}
    best = max(counts, key=lambda path: counts[path], default=None)
    return best if best is not None and counts[best] else None


@lru_cache(maxsize=4096)
def text_size(text: str, size: int) -> tuple[int, int]:
    """Return width and height of a line of text in pixels. The height depends on the font size only."""
    return int(font_for(text, size).getlength(text) + 0.999), int(size * 1.3 + 0.5)


@lru_cache(maxsize=4096)
def fit_text(text: str, size: int, width: int) -> str:
    """Shorten a text so that it is at most `width` pixels wide.

    >>> fit_text("approach", 12, 500), fit_text("approach", 12, 0)
    ('approach', '')
    """
    if text_size(text, size)[0] <= width:
        return text
    while text and text_size(f"{text}…", size)[0] > width:
        text = text[:-1]
    return f"{text}…" if text else ""


def dim(image: Any, box: tuple[int, int, int, int]) -> None:
    """Darken a rectangle of a picture (left, top, right, bottom), so that white text on it is legible."""
    from PIL import Image

    left, top, right, bottom = max(box[0], 0), max(box[1], 0), min(box[2], image.width), min(box[3], image.height)
    if right > left and bottom > top:
        region = image.crop((left, top, right, bottom))
        image.paste(Image.blend(Image.new("RGB", region.size, (8, 10, 14)), region, DIMMED), (left, top))
