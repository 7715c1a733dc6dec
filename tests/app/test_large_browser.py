"""Many bouts, behaviors, animals and scripts in a real browser; benchmarks/viewer.py has a million bouts."""

from __future__ import annotations

import numpy as np

from ethobench import Annotation, load_dataset, write_annotation
from tests.app.browsing import begin_correction, in_browser, keys, settle

pytestmark = in_browser
BOUTS, BEHAVIORS, FRAMES, RATE = 20_000, 50, 100_000, 30
SCRIPTS = ("behavior", "行動", "سلوك", "व्यवहार", "поведение", "🐭", "พฤติกรรม", "<b>", "'\"&")
ANIMALS = tuple(f"{name} {i}" for i, name in enumerate(("mouse", "マウス", "فأر", "चूहा", "мышь", "🐁") * 2))


def test_twenty_thousand_bouts_of_fifty_behaviors_and_twelve_animals_in_any_script(tmp_path, serve, visit):
    rng = np.random.default_rng(0)
    edges = np.stack([np.sort(rng.choice(FRAMES, 2 * (BOUTS // 12), replace=False)) for _ in ANIMALS])
    names = [f"{SCRIPTS[i % len(SCRIPTS)]} {i}" for i in range(BEHAVIORS)]
    subjects = np.repeat(ANIMALS, BOUTS // 12).tolist()
    codes = rng.integers(0, BEHAVIORS, len(subjects))
    labels = Annotation.from_bouts(
        edges[:, ::2].ravel(), edges[:, 1::2].ravel(), codes, names, RATE, FRAMES, subject=subjects, subjects=ANIMALS
    )
    write_annotation(labels, tmp_path / "labels.parquet", "tidy_parquet", recording="long")
    (tmp_path / "recordings.csv").write_text(f"recording,rate,annotations,annotator\nlong,{RATE},labels.parquet,anna\n", encoding="utf-8")
    page = visit(serve(tmp_path))
    assert {*page.locator(".chip").all_text_contents()} >= {f"{names[2]}3", f"{names[10]}"}
    begin_correction(page, "zoë 李", "a copy of anna")
    lanes = page.evaluate(
        "() => document.querySelector('eb-timeline').lanes.filter((l) => l.track?.name === 'zoë 李').map((l) => l.subject)"
    )
    assert [name for name in lanes if name] == [*ANIMALS]
    page.evaluate("() => document.querySelector('canvas.lanes').focus()")
    keys(page, "Shift+Digit2", "Home", *["+"] * 8, *["PageDown"] * 3, *["-"] * 8, "Control+ArrowRight", "i", "Shift+ArrowRight", "o", "3")
    page.wait_for_function("() => document.querySelector('#saved').textContent.startsWith('saved')")
    settle(page)
    saved = load_dataset(tmp_path)["long"].annotation("zoë 李")
    shown = page.text_content("output.frame").split("frame ")[1].split(" of")[0]
    position = int("".join(letter for letter in shown if letter.isdigit()))
    at = (saved.start <= position - 5) & (saved.stop > position - 5) & (saved.subject == saved.subjects.index(ANIMALS[1]))
    assert [saved.ethogram[int(code)].name for code in saved.behavior[at]] == [names[2]]
    others = [annotation.take(annotation.subject != annotation.subjects.index(ANIMALS[1])) for annotation in (saved, labels)]
    assert len(others[0]) == len(others[1])
