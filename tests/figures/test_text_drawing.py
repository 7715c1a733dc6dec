"""Text on pictures."""

from __future__ import annotations

from ethobench.figures.text_drawing import clock_text, fit_text, font_for, missing_characters, text_size


def test_a_character_that_no_font_has_changes_neither_the_font_of_the_others_nor_their_size():
    private = "\U000f1234"  # a code point for private use
    assert missing_characters(["groom", f"a{private}"]) == private
    assert font_for(f"groom {private}", 12).path == font_for("groom", 12).path


def test_texts_are_shortened_to_their_width():
    text = "a long name of a behavior"
    for width in (0, 20, 60, 400):
        short = fit_text(text, 12, width)
        assert text_size(short, 12)[0] <= width
        assert short in (text, "") or (short.endswith("…") and text.startswith(short[:-1]))


def test_times_are_truncated_not_rounded():
    assert [clock_text(s) for s in (0, 0.019, 59.999, 3599.999, 3661.5)] == ["0:00.00", "0:00.01", "0:59.99", "59:59.99", "1:01:01.50"]
