"""The messages that the page on troubleshooting quotes still occur."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from pathlib import Path

import pytest
from tests.cli.running import ethobench
from tests.cli.test_missing_packages import ethobench_without
from tests.docs.blocks import DOCS, Block, blocks_of, expanded
from tests.docs.test_examples import EXAMPLE_FILES, follow
from tests.video_files import write_video

import ethobench as eb

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")]

PAGE = DOCS / "troubleshooting.md"
TABLES = {
    "notes.csv": "Monday,the mouse was calm\nTuesday,it was not\n",
    "typo.csv": "behavior,start,stop\nrest,0,4.5\nrun,4.5,9,9\n",
    "dates.csv": "behavior,start,stop\nrest,03/04/2024 10:00:00,03/04/2024 10:00:05\n",
    "other_names.csv": "behavior,start,stop\nfight,0,4.5\nsniff,4.5,9.9\n",
    "frames.csv": "attack,mount\n0,1\n1,0\n1,0\n",
}


def quoted() -> list[tuple[Block, Block]]:
    """Return the commands of the page with the messages that follow them."""
    blocks = blocks_of(PAGE)
    pairs = itertools.pairwise(blocks)
    return [(command, output) for command, output in pairs if (command.language, output.language) == ("bash", "text")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give files that are wrong in the ways that the page describes."""
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        follow(EXAMPLE_FILES)
        write_wrong_files()
    return folder


def write_wrong_files() -> None:
    """Write the files of the page to the current folder."""
    for name, text in TABLES.items():
        Path(name).write_text(text, encoding="utf-8")
    eb.write_annotation(eb.read_annotation("human.boris").crop(0, 300), "short.csv")
    header, *rows = Path("my_study/recordings.csv").read_text(encoding="utf-8").splitlines()
    studies = {
        "one_animal": [header, *(row.replace(",animal02,", ",animal01,") for row in rows[:2])],
        "other_columns": [header.replace("rate", "fps").replace("signals", "poses"), *rows],
        "moved_files": [header, rows[0], rows[1].replace("animal02.csv", "animal2.csv")],
        "no_labels": [",".join(row.split(",")[:4]) for row in (header, *rows)],
    }
    for name, lines in studies.items():
        shutil.copytree("my_study", name)
        Path(name, "recordings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    eb.create_model("dt").fit(eb.load_dataset("my_study")).save("models/first")
    shutil.copytree("models/first", "models/damaged")
    with Path("models/damaged/estimator.skops").open("ab") as file:
        file.write(b"x")
    tag = eb.load_dataset("synthetic/tag", individuals=1, seconds=20).recordings[0].signals
    Path("tag.csv").write_text("\n".join([",".join(tag.channels), *(",".join(map(str, row)) for row in tag.values)]), encoding="utf-8")
    write_video(Path("cage1.mp4"), n_frames=30, rate=30, codec="mpeg4")


def message_of(block: Block) -> str:
    """Return what a command prints, with single spaces."""
    (words,) = block.commands()
    arguments = expanded(words[1:])
    missing = re.search(r"without (\w+)", block.reason or "")
    done = ethobench_without(missing[1], *arguments) if missing else ethobench(*arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(("command", "output"), quoted(), ids=lambda block: block.place)
def test_messages_occur(command: Block, output: Block, lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab)
    for variable in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(variable)
    printed = message_of(command)
    for quotation in output.code.split("..."):
        assert " ".join(quotation.split()) in printed


def test_there_are_twenty() -> None:
    assert len(quoted()) >= 20
