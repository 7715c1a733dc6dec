"""The log of a reviewer's decisions."""

from __future__ import annotations

from ethobench.app.origins import REJECTED, Origin, Origins


def test_decisions_are_read_back(tmp_path):
    log = Origins(tmp_path / "corrections")
    assert log.load() == []
    first = Origin("m1", "anna", 0, 10, "лаять", subject="犬", probability=0.4, training=2)
    second = Origin("m1", "anna", 20, 30, "run", decision=REJECTED, suggested={"start": 1})
    log.add([first])
    log.add([second])
    loaded = Origins(tmp_path / "corrections").load()
    assert [(o.behavior, o.subject, o.start, o.decision, o.training) for o in loaded] == [
        ("лаять", "犬", 0, "accepted", 2),
        ("run", None, 20, "rejected", None),
    ]
    assert all(o.time.endswith("+00:00") for o in loaded)


def test_a_torn_line_loses_only_itself(tmp_path):
    log = Origins(tmp_path)
    for number in range(3):
        log.add([Origin("m1", "anna", number, number + 1, "run")])
    content = log.path.read_bytes()
    for length in range(0, len(content), 23):
        log.path.write_bytes(content[:length])
        complete = content[:length].count(b"\n")
        log.add([Origin("m1", "anna", 90, 91, "run")])
        starts = [origin.start for origin in log.load()]
        assert starts[-1] == 90
        assert starts[:complete] == [*range(complete)]


def test_foreign_lines_are_skipped(tmp_path):
    log = Origins(tmp_path)
    log.path.write_text('[1]\nnull\n{"format_version": 1}\n\x00\n', encoding="utf-8")
    assert log.load() == []
