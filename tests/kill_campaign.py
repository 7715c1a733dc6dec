"""Kill viewers and runs with SIGKILL at random moments while two of them write to the same folder; then count what was lost or doubled.

    python -m tests.kill_campaign --viewer-kills 200 --ethogram-kills 200 --run-kills 50 --seed 0

Viewers: two servers on one folder get edits and new corrections over HTTP. Every change that a server confirmed must be in the files
once, every file must be listed in the manifest once, and a change that was under way when its server was killed is there or not, but whole.

Ethogram: one server gets edits and renames of a behavior. Every confirmed edit must be there, and all bouts must have one name.

Runs: two processes do the same jobs in one store. In the end every job is stored once, was computed to the end once, and has the same
files as in a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ethobench import Annotation, load_dataset, write_annotation
from ethobench.app.corrections import Corrections
from ethobench.app.opening import open_project
from ethobench.app.server import serve
from ethobench.benchmarks import fold_plan, results_table
from ethobench.core.errors import ReadWarning
from ethobench.core.files import TEMPORARY_PREFIX
from ethobench.runs import Engine, JobPlan, Store
from ethobench.runs.worker import LIBRARIES

PROCESSES = get_context("forkserver")  # so that a killed process is replaced at once, without importing everything again
PROCESSES.set_forkserver_preload(["ethobench.app.server", "ethobench.benchmarks", *LIBRARIES, "sklearn.ensemble"])
PATIENCE = 300.0  # seconds for a viewer to open and write; on a busy machine this takes long
N_FRAMES = 100_000
RECORDINGS = ("m1", "m2", "m3")
CHANGES_PER_CORRECTION = 150
DATA_OPTIONS = {"individuals": 4, "seconds": 20.0, "folds": 4}
SEEDS = {"chance": 4, "rf": 4, "dt": 4}  # of each model


@dataclass
class Summary:
    """What a campaign did and found; `problems` is empty where nothing was lost or doubled."""

    kills: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def expect(self, condition: bool, problem: str) -> None:
        """Note a problem unless a condition holds."""
        if not condition:
            self.problems.append(problem)

    def lines(self) -> list[str]:
        """Describe the campaign in Markdown."""
        counts = [f"- {name}: {number}" for name, number in sorted(self.counts.items())]
        problems = [f"- PROBLEM: {problem}" for problem in self.problems] or ["- problems: none"]
        return [f"- kills: {self.kills}", *counts, *problems, f"- seconds: {self.seconds:.0f}"]


class ViewerSession:
    """One person at one viewer, who goes on with a new viewer when it is killed.

    Parameters
    ----------
    lab : Path
    name : str
        Names of annotators begin with it.
    """

    def __init__(self, lab: Path, name: str) -> None:
        self.lab, self.name = lab, name
        self.started: set[tuple[str, str]] = set()
        self.confirmed: dict[tuple[str, str], set[int]] = {}
        self.uncertain: dict[tuple[str, str], set[int]] = {}
        self.errors: list[str] = []
        self.is_writing, self._is_stopped = threading.Event(), threading.Event()
        self.kills = self._changes = 0
        self._open()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def kill(self) -> None:
        """Kill the viewer, whatever it is doing."""
        self.is_writing.clear()
        self._process.kill()

    def stop(self) -> None:
        """End writing, then the viewer."""
        self._is_stopped.set()
        self._thread.join()
        self._process.terminate()
        self._process.join()

    def _open(self) -> None:
        self.is_writing.clear()
        receiving, sending = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=_view, args=(self.lab, sending), daemon=True)
        process.start()
        sending.close()
        address = urlsplit(receiving.recv())
        self._process, self._port, self._token = process, address.port, address.query.partition("=")[2]

    def _write(self) -> None:
        while not self._is_stopped.is_set():
            try:
                self._write_until_killed()
            except (OSError, http.client.HTTPException):
                self._process.join()
                self.kills += self._process.exitcode == -signal.SIGKILL
                self._open()
            except Exception as error:
                self.errors.append(f"{self.name}: {error!r}")
                return

    def _write_until_killed(self) -> None:
        while not self._is_stopped.is_set():
            number, index = self._changes // CHANGES_PER_CORRECTION, self._changes % len(RECORDINGS)
            key = (RECORDINGS[index], f"{self.name}-{number}")
            track = self._find(index, key[1])
            if track is None:
                if key in self.started:
                    raise AssertionError(f"{key} was confirmed and is not there any more")
                track = self._ask("POST", f"recordings/{index}/start", {"name": key[1]})["track"]
            self.started.add(key)  # if a viewer was killed before it confirmed this, the next one shows it
            slot = self._changes
            self._changes += 1
            self.uncertain.setdefault(key, set()).add(slot)
            edit = {"kind": "mark", "start": 4 * slot, "stop": 4 * slot + 2, "behavior": "rest"}
            self._ask("POST", f"recordings/{index}/edit", {"track": key[1], "revision": track["revision"], "edits": [edit]})
            self.uncertain[key].remove(slot)
            self.confirmed.setdefault(key, set()).add(slot)
            self.is_writing.set()

    def _find(self, index: int, name: str) -> dict[str, Any] | None:
        tracks = self._ask("GET", f"recordings/{index}")["tracks"]
        return next((track for track in tracks if track["name"] == name), None)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        try:
            headers = {"content-type": "application/json"} if body else {}
            connection.request(method, f"/{self._token}/api/{path}", json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise AssertionError(f"{method} {path} {body}: {answer.status} {content[:300]!r}")
        return json.loads(content)


def _view(lab: Path, address: Any) -> None:
    serve(open_project([str(lab)]), browser=False, ready=address.send)


class EthogramSession(ViewerSession):
    """One person who marks a behavior and renames it again and again, in all corrections."""

    def _write_until_killed(self) -> None:
        while not self._is_stopped.is_set():
            state = self._ask("GET", "ethogram")
            current = next(b["name"] for b in state["behaviors"] if b["name"] != "run")
            index = self._changes % len(RECORDINGS)
            key = (RECORDINGS[index], self.name)
            track = self._find(index, self.name) or self._ask("POST", f"recordings/{index}/start", {"name": self.name})["track"]
            self.started.add(key)
            slot = self._changes
            self._changes += 1
            self.uncertain.setdefault(key, set()).add(slot)
            edit = {"kind": "mark", "start": 4 * slot, "stop": 4 * slot + 2, "behavior": current}
            self._ask("POST", f"recordings/{index}/edit", {"track": self.name, "revision": track["revision"], "edits": [edit]})
            self.uncertain[key].remove(slot)
            self.confirmed.setdefault(key, set()).add(slot)
            renamed = [{**b, "from": [b["name"]], **({"name": f"rest {slot}"} if b["name"] == current else {})} for b in state["behaviors"]]
            self.is_writing.set()
            self._ask("POST", "ethogram", {"revision": state["revision"], "behaviors": renamed})


def kill_ethogram_edits(folder: Path, kills: int, seed: int) -> Summary:
    """Kill a viewer while a behavior is renamed in all corrections; afterwards all bouts must have one name, the one in the ethogram."""
    chance, summary, began = random.Random(seed), Summary(), time.monotonic()  # noqa: S311 - not a secret
    lab = _write_lab(folder)
    session = EthogramSession(lab, "zoe")
    try:
        while session.kills < kills and not session.errors:
            if not session.is_writing.wait(PATIENCE):
                summary.problems.append(f"{session.name} did not write for {PATIENCE:g} s")
                break
            time.sleep(chance.uniform(0, 0.1))
            session.kill()
            _wait_until(lambda: session.is_writing.is_set() or bool(session.errors))
    finally:
        session.stop()
    summary.kills = session.kills
    _check_corrections(lab, [session], summary, others={"ethogram.csv"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)
        data = load_dataset(lab)
        listed = {behavior.name for behavior in open_project([str(lab)]).recordings[0].ethogram}
    names = {name for recording in data for name, _, _ in recording.annotation("zoe").tracks()}
    summary.expect(len(names) == 1 and names <= listed, f"bouts have the names {sorted(names)}, the ethogram lists {sorted(listed)}")
    summary.expect(listed == names | {"run"}, f"behaviors that nobody defined: {sorted(listed - names - {'run'})}")
    summary.seconds = time.monotonic() - began
    return summary


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def _write_lab(folder: Path) -> Path:
    lab = folder / "lab"
    lab.mkdir()
    nothing = Annotation.from_bouts([0], [1], ["run"], ["rest", "run"], rate=10, n_frames=N_FRAMES)
    for recording in RECORDINGS:
        write_annotation(nothing, lab / f"{recording}.csv", "tidy")
    rows = "".join(f"{recording},{recording},10,{recording}.csv,anna\n" for recording in RECORDINGS)
    (lab / "recordings.csv").write_text(f"recording,individual,rate,annotations,annotator\n{rows}", encoding="utf-8")
    return lab


def kill_viewers(folder: Path, kills: int, seed: int) -> Summary:
    """Kill one of two viewers on one folder again and again, and check the files that they leave."""
    chance, summary, began = random.Random(seed), Summary(), time.monotonic()  # noqa: S311 - not a secret
    lab = _write_lab(folder)
    sessions = [ViewerSession(lab, name) for name in ("yan", "zoe")]
    try:
        while sum(session.kills for session in sessions) < kills and not any(session.errors for session in sessions):
            victim = chance.choice(sessions)
            if victim.is_writing.wait(PATIENCE):
                time.sleep(chance.uniform(0, 0.2))
                victim.kill()
            else:
                summary.problems.append(f"{victim.name} did not write for {PATIENCE:g} s")
                break
    finally:
        for session in sessions:
            session.stop()
    summary.kills = sum(session.kills for session in sessions)
    _check_corrections(lab, sessions, summary)
    summary.seconds = time.monotonic() - began
    return summary


def _check_corrections(lab: Path, sessions: Sequence[ViewerSession], summary: Summary, others: Set[str] = frozenset()) -> None:
    summary.problems += [error for session in sessions for error in session.errors]
    corrections = Corrections(lab / "corrections")
    saved = corrections.load()
    with corrections.manifest.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    keys = Counter((row["recording"], row["annotator"]) for row in rows)
    files = Counter(row["annotations"] for row in rows)
    remaining = {path.name for path in corrections.folder.iterdir()} - {*files, corrections.manifest.name, ".ethobench-lock", *others}
    summary.expect(not remaining, f"files that the manifest does not list: {sorted(remaining)[:5]}")
    summary.expect({*keys.values(), *files.values()} == {1}, f"listed more than once: {[k for k, n in keys.items() if n > 1][:5]}")
    summary.expect({*saved} == {*keys}, f"listed, but not readable: {sorted({*keys} - {*saved})[:5]}; {corrections.notes[:3]}")
    for session in sessions:
        lost = session.started - {*keys}
        summary.expect(not lost, f"corrections that were confirmed and are lost: {sorted(lost)[:5]}")
        for key in session.started & {*saved}:
            present = Counter((saved[key].start // 4).tolist())
            confirmed, uncertain = session.confirmed.get(key, set()), session.uncertain.get(key, set())
            summary.expect({*present.values()} <= {1}, f"{key}: edits that are there twice")
            summary.expect(confirmed <= {*present}, f"{key}: edits that are lost: {sorted(confirmed - {*present})[:5]}")
            summary.expect({*present} <= confirmed | uncertain, f"{key}: edits that nobody made")
            summary.counts["edits confirmed"] += len(confirmed)
            summary.counts["edits under way when killed"] += len(uncertain)
            summary.counts["of these in the files"] += len(uncertain & {*present})
    summary.counts["corrections listed"] = len(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)
        annotators = {*load_dataset(lab).annotators}
    summary.expect({who for _, who in keys} <= annotators, "the dataset does not show all corrections")


def kill_runs(folder: Path, kills: int, seed: int, seeds: Mapping[str, int] = SEEDS) -> Summary:
    """Kill one of two runs of one store again and again, with a new store whenever all jobs are done: those of each model and seed."""
    chance, summary, began = random.Random(seed), Summary(), time.monotonic()  # noqa: S311 - not a secret
    undisturbed = Store(folder / "undisturbed")
    _run_jobs(undisturbed.root, None, seeds)
    while summary.kills < kills and not summary.problems:
        summary.counts["stores"] += 1
        root = folder / f"store{summary.counts['stores']}"
        _kill_runs_of_store(root, kills, chance, summary, seeds)
        _run_jobs(root, None, seeds)  # finds everything done, and cleans up
        _check_store(root, undisturbed, summary)
    summary.seconds = time.monotonic() - began
    return summary


def _kill_runs_of_store(root: Path, kills: int, chance: random.Random, summary: Summary, seeds: Mapping[str, int]) -> None:
    Store(root)
    runs = [_start_run(root, seeds) for _ in range(2)]
    while any(run.exitcode is None for run in runs):
        number = chance.randrange(2)
        run = runs[number]
        if summary.kills >= kills:
            run.join()
            continue
        while run.exitcode is None and not _has_lease(root, run.pid):
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        if run.exitcode is None:
            run.kill()
            run.join()
            summary.kills += run.exitcode == -signal.SIGKILL
            summary.counts["kills in the middle of a job"] += _has_lease(root, run.pid)
            runs[number] = _start_run(root, seeds)
    summary.expect({run.exitcode for run in runs} == {0}, f"runs ended with {[run.exitcode for run in runs]}")


def _has_lease(root: Path, pid: int) -> bool:
    """Whether a process has begun a job."""
    for path in (root / "leases").iterdir():
        with suppress(OSError, ValueError):
            if "." not in path.name and json.loads(path.read_text(encoding="utf-8"))["pid"] == pid:
                return True
    return False


def _start_run(root: Path, seeds: Mapping[str, int]) -> Any:
    process = PROCESSES.Process(target=_run_jobs, args=(root, root.with_suffix(".stored"), seeds))
    process.start()
    return process


def _run_jobs(root: Path, record: Path | None, seeds: Mapping[str, int]) -> None:
    """Run all jobs, as `ethobench run` does, and record which of them this process computed to the end."""
    if record is not None:
        finish = Store.finish

        def finish_and_record(store: Store, job: Any, fill: Any) -> bool:
            is_stored = finish(store, job, fill)
            with record.open("a", encoding="ascii") as file:
                file.write(f"{job.key} {'stored' if is_stored else 'doubled'}\n")
            return is_stored

        Store.finish = finish_and_record  # type: ignore[method-assign]
    outcome = Engine(Store(root), lambda: ThreadPoolExecutor(1), 1).run(_plans(seeds))
    if outcome.failed or outcome.failed_plans:
        sys.exit(f"jobs failed: {outcome.failed} {outcome.failed_plans}")


def _plans(seeds: Mapping[str, int]) -> Iterator[JobPlan]:
    data = load_dataset("synthetic/tag", **DATA_OPTIONS)
    for model, n_seeds in seeds.items():
        for seed in range(n_seeds):
            params = {"trees": 5} if model == "rf" else {}
            yield fold_plan("synthetic", data, model, dataset="synthetic/tag", options=DATA_OPTIONS, params=params, seed=seed)


def _check_store(root: Path, undisturbed: Store, summary: Summary) -> None:
    store = Store(root)
    expected, finished = [*undisturbed.finished()], [*store.finished()]
    summary.expect(finished == expected, f"{len({*expected} - {*finished})} jobs are lost, {len({*finished} - {*expected})} are unknown")
    record = root.with_suffix(".stored")
    recorded = Counter(record.read_text(encoding="ascii").splitlines() if record.exists() else [])
    doubled = [line for line, count in recorded.items() if count > 1 or line.endswith("doubled")]
    summary.expect(not doubled, f"jobs that were computed twice: {doubled[:5]}")
    same = json.dumps(results_table(store)) == json.dumps(results_table(undisturbed))
    summary.expect(same, "the results differ from those of a run that was not disturbed")
    for name in ("scores.json", "predictions.parquet", "job.json"):
        differing = [k for k in finished if (store.folder(k) / name).read_bytes() != (undisturbed.folder(k) / name).read_bytes()]
        summary.expect(not differing, f"{name} differs in {differing[:5]}")
    summary.expect(not store.damage and not store.quarantine.entries(), f"damaged: {store.damage} {store.quarantine.entries()}")
    summary.expect(all(store.verify(key) for key in finished), "files do not match their checksums")
    remaining = {*root.rglob(f"{TEMPORARY_PREFIX}*"), *(root / "tmp").iterdir(), *(root / "leases").iterdir()}
    summary.expect(not remaining, f"left behind: {sorted(str(path.relative_to(root)) for path in remaining)[:5]}")
    summary.counts["jobs stored"] += len(finished)


def main() -> None:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewer-kills", type=int, default=200)
    parser.add_argument("--ethogram-kills", type=int, default=200)
    parser.add_argument("--run-kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="Write the summary to this Markdown file.")
    options = parser.parse_args()
    kills = {"viewer": options.viewer_kills, "ethogram": options.ethogram_kills, "run": options.run_kills}
    counts = " ".join(f"--{name}-kills {count}" for name, count in kills.items())
    command = f"python -m tests.kill_campaign {counts} --seed {options.seed}"
    lines = ["# Kills", "", f"`{command}`, {os.cpu_count()} cores.", ""]
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        for title, campaign, kills in (
            ("Two viewers write to one folder", kill_viewers, options.viewer_kills),
            ("A behavior is renamed in all corrections", kill_ethogram_edits, options.ethogram_kills),
            ("Two runs write to one store", kill_runs, options.run_kills),
        ):
            if not kills:
                continue
            campaign_folder = Path(folder) / campaign.__name__
            campaign_folder.mkdir()
            summary = campaign(campaign_folder, kills, options.seed)
            problems += len(summary.problems)
            lines += [f"## {title}", "", *summary.lines(), ""]
            print("\n".join(lines[-len(summary.lines()) - 3 :]), flush=True)  # noqa: T201
    if options.save:
        options.save.write_text("\n".join(lines), encoding="utf-8")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
