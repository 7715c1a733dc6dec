"""Figures for papers: what is drawn is what the annotations say, at the stated size, with text that cannot do harm."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ethobench as eb
from ethobench.core.errors import EthobenchError, NotFoundError, ParameterError, PathExistsError
from ethobench.figures.plots import style, tables
from ethobench.figures.plots.behavior import MAX_SPANS, merge_spans, spread
from ethobench.figures.plots.groups import individual_means

SVG = "{http://www.w3.org/2000/svg}"
ETHOGRAM = eb.Ethogram(["rest", "run", "groom", "other"], "other")
HOSTILE = ("<script>alert(1)</script>", "$\\frac{", "a\x00b\nc\u202e", "攻撃 🐭", "x" * 500)


def random_annotation(seed: int = 0, n_frames: int = 400, ethogram: eb.Ethogram = ETHOGRAM) -> eb.Annotation:
    rng = np.random.default_rng(seed)
    codes = np.repeat(rng.integers(0, len(ethogram), n_frames // 10), 10)
    return eb.Annotation.from_frames(codes, ethogram, 10)


def recordings(n: int = 4) -> list[eb.Recording]:
    groups = ("control", "treated")
    return [
        eb.Recording(f"r{k}", f"m{k // 2}", annotations={"anna": random_annotation(k)}, metadata={"treatment": groups[k // 2 % 2]})
        for k in range(n)
    ]


def walk(n: int = 300) -> eb.Recording:
    angle = np.linspace(0, 6 * np.pi, n)
    center = np.stack((100 + 50 * np.cos(angle), 80 + 30 * np.sin(angle)), axis=1)
    positions = np.stack((center - np.array([2, 0]), center + np.array([2, 0])), axis=1)[:, None]
    positions[50:60] = np.nan
    poses = eb.Poses(positions, np.ones((n, 1, 2)), ("mouse",), ("nose", "tail"), 10.0)
    return eb.Recording("walk", rate=10.0, signals=poses, annotations={"anna": random_annotation(1, n)})


def spans_of(axes, color):
    """Return the bars of a color as (left, right, top), rounded."""
    from matplotlib.colors import to_hex

    chosen = [c for c in axes.collections if len(c.get_facecolor()) and to_hex(c.get_facecolor()[0]) == color]
    boxes = [path.get_extents() for collection in chosen for path in collection.get_paths()]
    return sorted((round(b.x0, 6), round(b.x1, 6), round(b.y0, 6)) for b in boxes)


EVERY = {
    "ethogram": random_annotation,
    "raster": recordings,
    "budget": recordings,
    "transitions": recordings,
    "durations": recordings,
    "confusion": lambda: eb.score(random_annotation(1), random_annotation(2)),
    "agreement": lambda: eb.agreement({"anna": random_annotation(1), "ben": random_annotation(2)}),
    "learning_curve": lambda: [{"recordings": n, "mean": n / 20, "low": n / 30, "high": n / 15, "model": "rf"} for n in (2, 4, 8)],
    "occupancy": walk,
    "trajectory": walk,
    "group_comparison": lambda: tables.group_table(recordings(8), "treatment"),
    "reliability": lambda: [{"behavior": "rest", "probability": p, "share": p, "frames": 10} for p in (0.1, 0.9)],
}


@pytest.mark.parametrize("kind", EVERY)
def test_every_figure_takes_axes_and_returns_them_without_touching_pyplot(kind, tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw, source = getattr(eb.plot, kind), EVERY[kind]()
    figure = eb.plot.figure(120, 70)
    left, right = figure.subplots(1, 2)
    assert draw(source, right) is right
    assert not left.has_data()
    alone = draw(source)
    assert alone.get_figure().get_size_inches()[0] * 25.4 == pytest.approx(89)
    path = eb.plot.save(alone, tmp_path / "f.svg")
    root = ElementTree.parse(path).getroot()  # noqa: S314
    assert float(root.get("width").removesuffix("pt")) == pytest.approx(89 / 25.4 * 72, abs=0.01)
    assert alone.get_xlabel()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_pyplot_is_never_imported():
    import subprocess
    import sys

    code = (
        "import sys, ethobench as eb\n"
        "a = eb.Annotation.from_frames([0, 0, 1, 1], ['a', 'b'], rate=1)\n"
        "eb.plot.ethogram(a); eb.plot.budget(a); eb.plot.durations(a)\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


@pytest.mark.parametrize(
    "kind", ["ethogram", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("raster", "budget", "transitions", "durations"))]
)
def test_names_from_files_are_text_and_nothing_else(kind, tmp_path):
    ethogram = eb.Ethogram([*HOSTILE, "other"], "other")
    source = [eb.Recording(name, annotations={"a": random_annotation(k, ethogram=ethogram)}) for k, name in enumerate(HOSTILE)]
    axes = getattr(eb.plot, kind)(source[0] if kind == "ethogram" else source)
    path = eb.plot.save(axes, tmp_path / "f.svg")
    tree = ElementTree.parse(path)  # noqa: S314
    assert not list(tree.iter(f"{SVG}script"))
    texts = {"".join(element.itertext()) for element in tree.iter(f"{SVG}text")}
    assert any(text.startswith("<script>") for text in texts)
    assert any(text.startswith("$\\frac{") for text in texts), "no formula"
    assert max(map(len, texts)) < 80, "long names are shortened"
    eb.plot.save(axes, tmp_path / "f.pdf")


def test_sizes_fonts_and_formats(tmp_path):
    axes = eb.plot.ethogram(random_annotation(), eb.plot.figure(183, 50).add_subplot())
    pdf = eb.plot.save(axes, tmp_path / "f.pdf").read_bytes()
    width, height = map(float, re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", pdf).groups())
    assert (width / 72 * 25.4, height / 72 * 25.4) == pytest.approx((183, 50), abs=0.01)
    assert b"/Type /Font" in pdf
    assert b"/FontFile2" in pdf, "TrueType fonts are embedded"
    assert b"/Type3" not in pdf
    from PIL import Image

    with Image.open(eb.plot.save(axes, tmp_path / "f.png")) as picture:
        assert picture.size == pytest.approx((183 / 25.4 * 300, 50 / 25.4 * 300), abs=1)
    with pytest.raises(PathExistsError):
        eb.plot.save(axes, tmp_path / "f.png")
    with pytest.raises(ParameterError, match="ends with none of them"):
        eb.plot.save(axes, tmp_path / "f.exe")
    with pytest.raises(ParameterError, match="between 10 and 2000"):
        eb.plot.figure(0)
    sizes = {text.get_fontsize() for text in [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label]}
    assert min(sizes) >= 6.5, "smaller text is not legible in print"


def test_users_keep_their_sizes_on_their_own_figures():
    from matplotlib.figure import Figure

    axes = eb.plot.ethogram(random_annotation(), Figure().add_subplot())
    assert {text.get_fontsize() for text in axes.get_yticklabels()} == {10.0}


def test_bars_of_an_ethogram_are_the_bouts():
    labels = random_annotation(3)
    axes = eb.plot.ethogram(labels, colors={"run": "#123456"})
    expected = [(s / 10, e / 10) for s, e in zip(*labels.spans("run"), strict=True)]
    assert [(left, right) for left, right, _ in spans_of(axes, "#123456")] == expected
    assert [text.get_text() for text in axes.get_yticklabels()] == ["rest", "run", "groom"], "without the background"


def test_unobserved_time_is_hatched_and_point_events_are_ticks():
    ethogram = eb.Ethogram([eb.Behavior("bite", point=True), "rest"])
    labels = eb.Annotation.from_bouts([5, 20], [5, 40], ["bite", "rest"], ethogram, 10, 100, observed=np.arange(100) < 60)
    axes = eb.plot.ethogram(labels)
    hatched = [c for c in axes.collections if c.get_hatch()]
    assert [tuple(c.get_paths()[0].get_extents().intervalx) for c in hatched] == [(6.0, 10.0)] * 2
    ticks = [c.get_segments() for c in axes.collections if type(c).__name__ == "LineCollection"]
    assert [segment[0][0][0] for segment in ticks] == [0.5]


@pytest.mark.slow
def test_a_million_bouts_are_drawn_as_a_bounded_figure(tmp_path):
    n = 1_000_000
    start = np.arange(n) * 2
    labels = eb.Annotation.from_bouts(start, start + 1, np.zeros(n, dtype=int), ["rest"], 30, 2 * n)
    path = eb.plot.save(eb.plot.ethogram(labels), tmp_path / "f.svg")
    assert path.stat().st_size < 1_000_000


@given(st.lists(st.tuples(st.floats(0, 90), st.floats(0, 10)), max_size=200), st.integers(1, 60))
def test_merged_spans_cover_the_same_and_little_more(pairs, limit):
    pairs = sorted(pairs)
    start = np.array([s for s, _ in pairs])
    stop = np.array([s + d for s, d in pairs])
    low, high = merge_spans(start, stop, 100.0, limit)
    assert len(low) <= max(limit + 1, len(start) if len(start) <= limit else 0)
    for s, e in zip(start, stop, strict=True):
        assert any(a <= s and e <= b for a, b in zip(low, high, strict=True))
    assert (np.diff(low) >= 0).all()
    assert MAX_SPANS > 1000


def naive_transitions(annotation: eb.Annotation) -> Counter:
    previous, counts = None, Counter()
    for code in annotation.behavior:
        name = annotation.ethogram[int(code)].name
        if name == "other":
            continue
        if previous not in (None, name):
            counts[previous, name] += 1
        previous = name
    return counts


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_transitions_against_a_naive_count(seed):
    labels = random_annotation(seed)
    rows = tables.transition_table(labels)
    assert {(row["behavior"], row["next"]): row["count"] for row in rows if row["count"]} == naive_transitions(labels)
    for name in ("rest", "run", "groom"):
        shares = [row["share"] for row in rows if row["behavior"] == name]
        assert None in shares or sum(shares) == pytest.approx(1)


def test_transitions_do_not_cross_recordings_and_subjects():
    start, stop, names = [0, 10, 20], [5, 15, 25], ["rest", "run", "rest"]
    labels = eb.Annotation.from_bouts(start, stop, names, ["rest", "run"], 10, 30, subject=["a", "b", "a"])
    assert not any(row["count"] for row in tables.transition_table({"1": labels, "2": labels}))
    with pytest.raises(EthobenchError, match="no transitions"):
        eb.plot.transitions(labels)


def test_budgets_against_frames():
    data = recordings()
    rows = tables.budget_table(data, by="individual")
    for row in rows:
        frames = np.concatenate([r.annotation().to_codes() for r in data if r.individual == row["unit"]])
        assert row["share"] == pytest.approx((frames == ETHOGRAM.code(row["behavior"])).mean())
    axes = eb.plot.budget(rows)
    widths = Counter()
    for bar in axes.patches:
        widths[round(bar.get_y(), 3)] += bar.get_width()
    assert [*widths.values()] == pytest.approx([100, 100])
    with pytest.raises(ParameterError, match="recording, individual or all"):
        tables.budget_table(data, by="cage")
    assert {row["unit"] for row in tables.budget_table(data, by="all")} == {"all"}


def test_overlapping_behaviors_are_not_stacked():
    frames = np.ones((50, 2), dtype=bool)
    axes = eb.plot.budget({"a": eb.Annotation.from_frames(frames, ["rest", "run"], 10)})
    assert not axes.patches
    assert len(axes.collections) == 4, "a dot and a mean for each behavior"


def test_duration_curves_end_at_one_and_name_the_median():
    labels = random_annotation(5)
    axes = eb.plot.durations(labels)
    for name, line in zip(("rest", "run", "groom"), axes.lines, strict=False):
        spans = labels.spans(name)
        x, y = line.get_data()
        assert y[-1] == 100
        assert x[-1] == pytest.approx((spans.stop - spans.start).max() / 10)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    spans = labels.spans("rest")
    median = np.median(spans.stop - spans.start) / 10
    assert texts[0] == f"rest ({median:.3g} s, n = {len(spans.start)})"


def test_confusion_numbers_are_row_percentages():
    truth = eb.Annotation.from_frames([0, 0, 0, 0, 1, 1], ["rest", "run"], rate=1)
    pred = eb.Annotation.from_frames([0, 0, 0, 1, 1, 1], ["rest", "run"], rate=1)
    axes = eb.plot.confusion(eb.score(pred, truth))
    assert [text.get_text() for text in axes.texts] == ["75", "25", "100", "4", "2", "frames"]
    overlapping = eb.Annotation.from_frames(np.ones((6, 2)), ["rest", "run"], rate=1)
    with pytest.raises(EthobenchError, match="overlap"):
        eb.plot.confusion(eb.score(overlapping, overlapping))


def test_reliability_needs_probabilities_and_agrees_with_the_frames():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    truth = eb.Annotation.from_frames((rng.random(2000) < p).astype(int), ["rest", "run"], rate=10)
    prediction = eb.Prediction(np.stack((1 - p, p), axis=1), truth.ethogram, 10, exclusive=True)
    rows = [row for row in tables.reliability_table(eb.score(prediction, truth)) if row["behavior"] == "run"]
    for k, row in enumerate(rows):
        inside = (p >= k / 10) & (p < (k + 1) / 10)
        assert row["frames"] == pytest.approx(inside.sum(), abs=2)
        assert row["share"] == pytest.approx((truth.to_codes()[inside] == 1).mean(), abs=0.02)
    with pytest.raises(EthobenchError, match="needs predictions with probabilities"):
        eb.plot.reliability(eb.score(truth, truth))


def test_occupancy_is_the_share_of_tracked_time():
    axes = eb.plot.occupancy(walk(), bins=12)
    mesh = next(c for c in axes.collections if type(c).__name__ == "QuadMesh")
    assert np.ma.filled(mesh.get_array(), 0).sum() == pytest.approx(100)
    path = tables.position_table(walk())
    assert np.isnan(path["x"][50:60]).all()
    assert path["x"][0] == pytest.approx(150), "the centroid of both keypoints"
    assert tables.position_table(walk(), keypoint="tail")["x"][0] == pytest.approx(152)
    with pytest.raises(NotFoundError, match="nose, tail"):
        eb.plot.occupancy(walk(), keypoint="ear")
    with pytest.raises(EthobenchError, match="never tracked"):
        eb.plot.occupancy({"x": [np.nan], "y": [np.nan]})
    with pytest.raises(EthobenchError, match="no poses"):
        eb.plot.trajectory(recordings()[0])


def test_a_trajectory_is_interrupted_where_tracking_is():
    axes = eb.plot.trajectory(walk())
    segments = axes.collections[0].get_segments()
    assert len(segments) == 299 - 11
    labels = walk().annotation()
    colored = eb.plot.trajectory(walk(), behaviors=["run"], zones={"nest": [[60, 60], [90, 60], [90, 90], [60, 90]]})
    frames = labels.to_frames()[:, 1]
    full_range = [k for k in range(299) if not 49 <= k <= 59]
    assert len(colored.collections[1].get_segments()) == sum(frames[k] for k in full_range)
    assert "nest" in {text.get_text().strip() for text in colored.texts}


def test_recordings_of_one_animal_are_one_dot():
    rows = tables.group_table(recordings(8), "treatment")
    means = individual_means(rows)
    assert len(means) == 4 * 3
    axes = eb.plot.group_comparison(rows)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["control (n = 2)", "treated (n = 2)"]
    assert not [c for c in axes.collections if type(c).__name__ == "LineCollection"], "no interval of two animals"
    with pytest.raises(NotFoundError, match=r"no 'dose'.*treatment"):
        tables.group_table(recordings(), "dose")
    with pytest.raises(EthobenchError, match="no values to compare"):
        eb.plot.group_comparison(rows, groups=["absent"])


def test_the_interval_of_a_group_mean_is_students():
    from scipy.stats import ttest_1samp

    values = [0.1, 0.2, 0.25, 0.3]
    rows = [{"individual": str(k), "group": "g", "behavior": "b", "value": v} for k, v in enumerate(values)]
    axes = eb.plot.group_comparison(rows, percent=False)
    (segment,) = next(c for c in axes.collections if type(c).__name__ == "LineCollection").get_segments()
    expected = ttest_1samp(values, 0).confidence_interval(0.95)
    assert (segment[0][0], segment[1][0]) == pytest.approx((expected.low, expected.high))


def test_a_comparison_is_drawn_with_its_own_estimates():
    groups = {
        "control": {"mean": 0.4, "low": 0.3, "high": 0.5, "values": {"a": 0.45, "b": 0.35, "c": None}},
        "drug": {"mean": 0.2, "low": 0.1, "high": 0.3, "values": {"d": 0.2}},
    }
    result = {
        "groups": ["control", "drug"],
        "rows": [{"behavior": "rest", "measure": "share", "groups": groups, "pairs": [{"p_corrected": 0.02}]}],
    }
    axes = eb.plot.group_comparison(result)
    lines = [segment for c in axes.collections if type(c).__name__ == "LineCollection" for segment in c.get_segments()]
    assert [(a[0], b[0]) for a, b in lines] == [pytest.approx((30, 50)), pytest.approx((10, 30))], "also of a single labeled animal"
    assert [text.get_text() for text in axes.texts] == ["p = 0.02"]
    with pytest.raises(NotFoundError, match="no measure 'latency_s'; available: share"):
        eb.plot.group_comparison(result, measure="latency_s")
    rows = [{**result["rows"][0], "by": {"sex": sex}, "pairs": [{"p_corrected": p}]} for sex, p in (("f", 0.5), ("m", 0.25))]
    axes = eb.plot.group_comparison({**result, "rows": rows})
    assert [label.get_text() for label in axes.get_yticklabels()] == ["rest, f", "rest, m"]
    assert [text.get_text() for text in axes.texts] == ["p = 0.5", "p = 0.25"]
    several = {**result["rows"][0], "pairs": [{"p_corrected": 0.9}] * 3, "p_corrected": 0.04}
    assert [text.get_text() for text in eb.plot.group_comparison({**result, "rows": [several]}).texts] == ["p = 0.04"]


def test_notebooks_show_figures():
    png, size = eb.plot.ethogram(random_annotation()).figure._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert size["width"] == round(89 / 25.4 * 140)


def test_dots_that_would_hide_each_other_are_apart():
    offsets = spread([0.5] * 10)
    assert len(set(offsets.tolist())) == 10
    assert np.abs(offsets).max() <= 1
    assert (spread([0.5] * 10) == offsets).all()


def test_colors_of_series_are_those_of_the_report():
    from importlib.resources import files

    css = (files("ethobench.reports") / "static" / "report.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--(series-\d): light-dark\((#\w+),", css))
    assert {*light.values()} == {*style.SERIES[:4]}


@pytest.mark.parametrize("kind", ["ethogram", "budget", "durations"])
def test_nothing_to_draw_is_an_error_or_an_empty_figure(kind):
    empty = eb.Annotation.from_bouts([], [], [], ["rest"], 10, 100)
    if kind == "ethogram":
        assert [t.get_text() for t in eb.plot.ethogram(empty).get_yticklabels()] == ["rest"]
        with pytest.raises(EthobenchError, match="no annotation"):
            eb.plot.ethogram(eb.Recording("r", rate=10, n_frames=5))
    else:
        with pytest.raises(EthobenchError, match="no "):
            getattr(eb.plot, kind)(empty)
