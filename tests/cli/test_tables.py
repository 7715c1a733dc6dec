"""Tables of every command fit 80 columns, whatever the names; no number is broken."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from typer.testing import CliRunner

from ethobench import Annotation, Ethogram
from ethobench.cli import app
from ethobench.cli.tables import Number, format_interval, format_score, layout_table, line_width, wrap_text
from ethobench.formats import write_annotation

WIDTH = 80
ETHOGRAM = Ethogram(
    [
        "investigation of the novel object with the nose within two centimeters",
        "rearing_supported_by_a_wall_of_the_arena",
        "Körperpflege (自己グルーミング行動)",
        "other",
    ],
    "other",
)
RECORDINGS = [f"2024-05-1{k}_cage 3_mouse{k}DLC_resnet50_openfieldNov18shuffle1_500000_filtered" for k in range(6)]
ANNOTATORS = ("dr_anneliese_von_hohenstein_first_pass", "benjamin")
N_FRAMES = 600


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six animals with an accelerometer and two annotators; all names are long."""
    folder = tmp_path_factory.mktemp("study")
    rows = ["recording,individual,rate,signals,annotations,annotator"]
    generator = np.random.default_rng(0)
    for k, name in enumerate(RECORDINGS):
        codes = np.repeat(generator.permutation(np.arange(24) % 4), N_FRAMES // 24)
        signal = codes[:, None] * [1.0, -1.0, 0.5] + generator.normal(0, 0.6, (N_FRAMES, 3))
        lines = [f"{t / 10},{x:.4f},{y:.4f},{z:.4f}" for t, (x, y, z) in enumerate(signal)]
        (folder / f"{name}.csv").write_text("\n".join(["time,AccX,AccY,AccZ", *lines]) + "\n", encoding="utf-8")
        for shift, annotator in enumerate(ANNOTATORS):
            annotation = Annotation.from_frames(np.roll(codes, 3 * shift), ETHOGRAM, 10)
            (folder / annotator).mkdir(exist_ok=True)
            write_annotation(annotation, folder / annotator / f"{name}.csv", "tidy", recording=name)
            rows.append(f"{name},animal {k} of the second cohort,10,{name}.csv,{annotator}/{name}.csv,{annotator}")
    (folder / "recordings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(study: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a model, and what `train` printed."""
    out = tmp_path_factory.mktemp("models") / "first"
    command = ["train", study, "--model", "rf", "--param", "trees=5", "--annotator", ANNOTATORS[0], "--workers", 1, "--out", out]
    return out, run(*command)


@pytest.fixture(scope="module")
def store(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a run of two models."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    text = run("run", "study", study, "--models", "chance,dt", "--annotator", ANNOTATORS[0], "--workers", 1, "--store", folder)
    lines = [line for line in text.splitlines() if "fold 1 of" in line]
    assert [line.partition("fold")[2].partition(", frame F1 .")[0] for line in lines] == [" 1 of 5: chance", " 1 of 5: dt"], text
    return folder


def run(*arguments: object, columns: int = WIDTH) -> str:
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def too_wide(text: str, width: int = WIDTH) -> list[str]:
    """Return the lines that are too wide; a path or a command to copy may be."""
    lines = [line for line in text.splitlines() if cell_len(line) > width]
    return [line for line in lines if "/" not in line or "  " in line.strip()]


def commands(study: Path, store: Path) -> dict[str, list[object]]:
    first, second = (study / name for name in ANNOTATORS)
    return {
        "score": ["score", second, first],
        "score of a suite": ["score", second, first, "--suite", "banos"],
        "score per recording": ["score", second, first, "--per", "recording"],
        "all measures": ["score", second, first, "--metrics", "all"],
        "agreement": ["agreement", first, second],
        "agreement per recording": ["agreement", first, second, "--per", "recording"],
        "agreement per pair": ["agreement", study, "--per", "pair"],
        "budget": ["budget", study / "recordings.csv"],
        "inspect": ["inspect", study / "recordings.csv"],
        "results": ["results", store],
        "comparison": ["results", store, "--table", "comparison"],
        "behaviors": ["results", store, "--table", "behaviors"],
        "two stores": ["results", store, store, "--metrics", "f1"],
        "datasets": ["datasets", "show", study],
        "published": ["published", "calms21"],
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_every_command_fits_80_columns(study, store):
    for name, command in commands(study, store).items():
        text = run(*command)
        assert not too_wide(text), f"{name}:\n{text}"
        assert "…" not in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_wide_tables_have_everything_in_one_line(study):
    first, second = (study / name for name in ANNOTATORS)
    shown = run("score", second, first, "--wide")
    row = next(line for line in shown.splitlines() if ETHOGRAM.names[0] in line)
    assert row.count("[") == 6  # three of the nine scores are the same in all animals
    for command in (["agreement", first, second], ["budget", study / "recordings.csv"]):
        assert ETHOGRAM.names[0] in run(*command, "--wide")


@pytest.mark.slow
def test_train_ends_with_a_table_the_confusions_and_the_next_command(trained):
    out, text = trained
    assert not too_wide(text), text
    evaluation = json.loads((out / "model.json").read_text(encoding="utf-8"))["evaluation"]
    for column in ("frame F1", "humans' F1", "bout F1", "precision", "recall", "bouts", "seconds"):
        assert column in " ".join(text.split()) or column.split()[0] in text
    assert format_score(evaluation["scores"]["f1"]) in text
    assert format_score(evaluation["human"]["scores"]["f1"]) in text
    assert evaluation["human"]["recordings"] == len(RECORDINGS)
    assert sum(amount["seconds"] for amount in evaluation["amounts"].values()) == pytest.approx(len(RECORDINGS) * N_FRAMES / 10)
    assert f"{evaluation['confusions'][0]['share']:.0%} of its frames" in text
    assert text.rstrip().splitlines()[-2].strip() == f"ethobench predict {out} RECORDING... --out annotations/"


def test_a_project_without_observations_is_named(tmp_path):
    path = tmp_path / "empty.boris"
    content = {"project_format_version": "7.0", "project_name": "", "behaviors_conf": {}, "subjects_conf": {}, "observations": {}}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert "no recordings: the file has no observations" in run("inspect", path)


def test_width_is_that_of_the_variable(monkeypatch):
    monkeypatch.setenv("COLUMNS", "123")
    assert line_width() == 123
    monkeypatch.setenv("COLUMNS", "3")
    assert line_width() == 40


def test_columns_that_do_not_fit_are_continued_below_with_the_names():
    columns = ["behavior", *(f"metric {k}" for k in range(12))]
    lines = layout_table(columns, [["rear", *(k / 12 for k in range(12))]], 60)
    assert all(len(line) <= 60 for line in lines)
    assert sum("rear" in line for line in lines) == 2
    assert all(format_score(k / 12, 3) in " ".join(lines) for k in range(12))


def test_numbers_are_aligned_at_the_right():
    lines = layout_table(["name", "n", "F1"], [["a", 7, 0.5], ["b", 1234, None], ["c", 12, -0.25]], 80)
    assert [line[-5:] for line in lines[2:]] == [" .500", "    -", "-.250"]
    assert [line.split()[1] for line in lines[2:]] == ["7", "1,234", "12"]


@given(st.floats(-1e3, 1e3), st.integers(1, 4))
def test_scores_lose_only_their_leading_zero(value, digits):
    text = format_score(value, digits)
    assert float(text.replace(",", "")) == pytest.approx(value, abs=0.51 * 10.0**-digits)
    assert not text.startswith(("0.", "-0."))


@pytest.mark.slow
@given(st.lists(st.lists(st.text(max_size=60), min_size=2, max_size=2), max_size=4), st.integers(40, 100))
def test_no_text_is_lost_and_no_line_too_wide(names, width):
    rows = [[*row, Number(".62\n.55-.70"), 12345] for row in names]
    lines = layout_table(["first", "a second column", "F1", "frames"], rows, width)
    assert all(cell_len(line) <= width for line in lines)
    assert sum(line.count(".55-.70") for line in lines) == sum(line.count("12,345") for line in lines) == len(rows)


@given(
    st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp", "Zs"), blacklist_characters="\u200b"), max_size=80),
    st.integers(4, 30),
)
def test_wrapped_text_is_complete(text, width):
    lines = wrap_text(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(wrap_text(text, 10_000)).replace(" ", "")


def test_intervals_with_negative_ends_are_unambiguous():
    assert format_interval((-0.5, -0.1)) == "-.50 to -.10"
    assert format_interval((0.5, 1.0)) == ".50-1.00"
