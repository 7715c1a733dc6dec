"""Text that others wrote reaches the terminal without control characters, in whatever command, stream and message."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import ethobench
from ethobench.cli import main
from ethobench.cli.output import make_console, make_visible
from ethobench.cli.tables import print_table

TITLE, CLEAR, C1, OVERRIDE = "\x1b]0;pwned\x07", "\x1b[2J", "\x9b2J", "\u202e"
HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TIDY = """#ethobench-tidy 1
# unit: frames
# rate: 10
recording,annotator,behavior,start,stop,subject,comment
mouse{c1},anna{override},rear{clear},0,10,m{title},left{clear}
mouse{c1},anna{override},walk{override},20,60,m{title},
mouse{c1},ben{clear},rear{clear},0,12,m{title},
mouse{c1},ben{clear},walk{override},22,60,m{title},
"""
FILES = {
    "tidy": f"tidy{CLEAR}.csv",
    "broken": f"broken{TITLE}.csv",
    "labels": f"labels{CLEAR}.csv",
    "unknown": f"unknown{OVERRIDE}.txt",
    "model": f"model{TITLE}",
    "store": f"store{TITLE}",
}
MANIFEST = "recording,individual,rate,signals,annotations,annotator{clear}\nr{title},a{clear},10,tag.csv,{name},anna{override}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with escape sequences in every name: of itself, of files, columns, recordings, animals, behaviors and annotators."""
    folder = tmp_path_factory.mktemp("study") / f"evil{TITLE}{CLEAR}{OVERRIDE}"
    folder.mkdir()
    words = {"title": TITLE, "clear": CLEAR, "c1": C1, "override": OVERRIDE}
    (folder / FILES["tidy"]).write_text(TIDY.format(**words), encoding="utf-8", newline="")
    (folder / FILES["broken"]).write_text(TIDY.format(**words).replace("20,60", f"20,x{CLEAR}"), encoding="utf-8", newline="")
    (folder / FILES["labels"]).write_text(f"frame,label\n0,rear{OVERRIDE}\n1,walk{CLEAR}\n", encoding="utf-8", newline="")
    (folder / FILES["unknown"]).write_text(f"nothing{CLEAR} known", encoding="utf-8")
    (folder / "tag.csv").write_text("time,AccX\n" + "".join(f"{i / 10},{i % 7}\n" for i in range(60)), encoding="utf-8")
    (folder / "recordings.csv").write_text(MANIFEST.format(name=FILES["tidy"], **words), encoding="utf-8", newline="")
    model = folder / FILES["model"]
    model.mkdir()
    (model / "model.json").write_text(json.dumps({"model": f"rf{CLEAR}", "digest": CLEAR}), encoding="utf-8")
    store = folder / FILES["store"]
    store.mkdir()
    (store / "store.json").write_text(json.dumps({"version": CLEAR}), encoding="utf-8")
    return folder


COMMANDS = {  # arguments in which {x} is a file of the folder; each prints names, whether it succeeds or not
    "inspect": ["{tidy}", "{labels}", "{broken}", "{unknown}"],
    "inspect folder": ["{folder}"],
    "inspect --json": ["{tidy}", "{labels}"],
    "score": ["{labels}", "{labels}"],
    "score annotator": ["{tidy}", "{tidy}", "--annotator", f"no{CLEAR}"],
    "score missing": ["{folder}/no.csv", "{tidy}"],
    "score --json": ["{labels}", "{labels}"],
    "score per": ["{labels}", "{labels}", "--per", "recording"],
    "budget": ["{tidy}"],
    "budget --json": ["{tidy}"],
    "agreement": ["{tidy}"],
    "agreement --json": ["{tidy}"],
    "convert": ["{tidy}", "{folder}/out", "--to", "boris"],
    "convert unknown": ["{unknown}", "{folder}/other", "--to", "boris"],
    "formats": [],
    "datasets show": [f"no{CLEAR}"],
    "study check": [f"no{CLEAR}"],
    "study make": ["{folder}", "--dry-run"],
    "study make --json": ["{folder}", "--dry-run"],
    "models": [f"no{CLEAR}"],
    "train": ["{folder}", "--model", "rf", "--out", "{folder}/trained"],
    "predict": ["{model}", "{folder}", "--out", "{folder}/predicted"],
    "embed": ["{unknown}", "--out", "{folder}/features"],
    "pretrain": ["{folder}", "--tasks", f"no{CLEAR}", "--out", "{folder}/pretrained"],
    "annotate": ["{unknown}", "--provider", "chance", "--task", f"no{CLEAR}", "--out", "{folder}/annotated"],
    "run": ["study", "{folder}", "--store", "{folder}/runs", "--models", "rf"],
    "status": ["{store}"],
    "results": ["{store}"],
    "published": [f"no{CLEAR}"],
    "report": ["{store}", "--out", "{folder}/report.html"],
    "view": ["{unknown}", "--no-browser"],
    "movement": ["{folder}"],
    "compare": ["{folder}", "--groups", f"no{CLEAR}"],
    "clean": ["{unknown}", "--out", "{folder}/cleaned"],
    "clips": ["{unknown}", "--out", "{folder}/clips"],
    "plot": ["ethogram", "{unknown}", "--out", "{folder}/ethogram.svg"],
    f"no{CLEAR}": [],
    "score usage": ["{tidy}", "{tidy}", "--rename", f"a{TITLE}"],
    "inspect usage": [f"--no{CLEAR}", "{tidy}"],
}


def test_every_command_is_enrolled() -> None:
    from ethobench.cli import COMMANDS as GROUPS

    names = {command.__name__.rpartition(".")[2] for commands in GROUPS.values() for command in commands}
    assert {name.split()[0] for name in COMMANDS} >= {*names, "datasets", "study"} - {"demo"}


def arguments_of(name: str, folder: Path) -> list[str]:
    paths = {key: str(folder / file) for key, file in FILES.items()}
    first, *others = name.split()
    words = [first, *(word for word in others if word.startswith("-") or word in ("show", "check", "make"))]
    return words + [argument.format(folder=folder, **paths) for argument in COMMANDS[name]]


@pytest.mark.parametrize("name", COMMANDS, ids=make_visible)
def test_no_control_character_reaches_the_terminal(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ethobench", *arguments_of(name, folder)])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings(), pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr()
    for stream in printed:
        assert HOSTILE.findall(stream) == [], stream
    assert printed.out + printed.err
    if "--json" in name:
        assert json.loads(printed.out)
    elif name != "formats":
        assert re.search(r"\\x1b|\\u202e|\\x9b|\ufffd", printed.out + printed.err), printed


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect", "agreement", "score missing"])
def test_a_real_terminal_gets_colors_of_ours_and_nothing_else(command: str, folder: Path) -> None:
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    with subprocess.Popen(
        [sys.executable, "-c", "from ethobench.cli import main; main()", *arguments_of(command, folder)],
        stdout=child,
        stderr=child,
        env=environment,
    ):
        os.close(child)
        chunks = []
        try:
            while chunk := os.read(parent, 1 << 16):
                chunks.append(chunk)
        except OSError:  # Linux says so where the other end is closed
            pass
    os.close(parent)
    text = b"".join(chunks).decode().replace("\r\n", "\n")
    assert HOSTILE.findall(re.sub(r"\x1b\[[0-9;]*m", "", text)) == []
    assert "\\x1b" in text


def test_tables_show_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([f"head{CLEAR}"], [[f"a wide cell {C1}{OVERRIDE}"]], title=f"title{TITLE}")
    make_console().print(f"text{CLEAR}[bold]")
    shown = capsys.readouterr().out
    assert HOSTILE.findall(shown) == []
    for text in (r"head\x1b[2J", r"title\x1b]0;pwned\x07", r"cell \x9b2J\u202e", r"text\x1b[2J[bold]"):
        assert text in shown


def test_commands_print_in_one_place_only() -> None:
    """Other ways to print would let names through as they are."""
    for path in (Path(ethobench.__file__).parent / "cli").glob("*.py"):
        if path.name == "output.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                assert ast.unparse(node) not in ("typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"), path
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("print", "Console", "rich.print"), path
