"""`ethobench view` as a user starts and stops it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.slow  # each command starts a process

START = "from ethobench.cli import main; main()"


@contextmanager
def viewer(*arguments: object, cwd: object = None) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", START, "view", *map(str, arguments), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


@pytest.mark.skipif(os.name == "nt", reason="this system sends no SIGINT")
def test_it_prints_its_address_answers_there_and_ends_with_ctrl_c(lab):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with viewer(lab, "--port", port) as process:
        address = process.stdout.readline().strip()
        assert address.startswith(f"http://127.0.0.1:{port}/?token=")
        with urllib.request.urlopen(address, timeout=90) as answer:  # noqa: S310
            assert answer.status == 200
            assert b"Ethobench" in answer.read()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address.partition("?")[0], timeout=90)  # noqa: S310
        assert refused.value.code == 403
        refused.value.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    assert out == ""
    assert "Traceback" not in err
    assert f"corrections are in {lab / 'corrections'}" in err


def test_mistakes_are_one_line(lab, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener, viewer(lab, "--port", listener.getsockname()[1]) as process:
        _, err = process.communicate(timeout=90)
        assert process.returncode == 1
        assert "choose another with --port" in err
        assert "Traceback" not in err
    with viewer(tmp_path / "nothing" / "at" / "all", cwd=tmp_path) as process:
        out, err = process.communicate(timeout=90)
        assert (process.returncode, out) == (1, "")
        assert err.startswith("error: ")
        assert len(err.strip().splitlines()) == 1
    with viewer() as process:
        process.communicate(timeout=90)
        assert process.returncode == 2
