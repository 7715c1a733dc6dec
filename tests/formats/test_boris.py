from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethobench import Annotation, Behavior, Ethogram, Observed, Recording
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, ReadWarning
from ethobench.formats import detect, formats, read_recordings, write_recordings

VIDEO = "C:\\videos\\mouse one.avi"
BEHAVIORS = {
    "0": {"type": "State event", "key": "a", "code": "attack", "description": "bites and chases", "modifiers": {}},
    "1": {"type": "Point event", "key": "b", "code": "bite", "description": "", "modifiers": {}},
    "2": {"type": "State event with coding map", "key": "o", "code": "other", "description": ""},
}


def observation(events: list[Any], **changes: Any) -> dict[str, Any]:
    return {
        "file": {"1": [VIDEO], "2": []},
        "type": "MEDIA",
        "date": "2021-07-12T14:35:58",
        "description": "first day",
        "time offset": 0.0,
        "events": events,
        "observation time interval": [0, 0],
        "independent_variables": {"cage": "7"},
        "media_info": {"length": {VIDEO: 20.0}, "fps": {VIDEO: 10.0}, "hasVideo": {VIDEO: True}, "offset": {"1": 0.0}},
        **changes,
    }


def project(observations: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "time_format": "hh:mm:ss",
        "project_format_version": "7.0",
        "subjects_conf": {"0": {"key": "1", "name": "resident", "description": ""}, "1": {"key": "2", "name": "intruder"}},
        "behaviors_conf": BEHAVIORS,
        "observations": observations,
        **changes,
    }


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to_file(observations: dict[str, Any], **changes: Any) -> Path:
        path = tmp_path / "project.boris"
        path.write_text(json.dumps(project(observations, **changes)), encoding="utf-8")
        return path

    return to_file


def only(path: Path, **options: Any) -> Recording:
    (recording,) = read_recordings(path, "boris", **options, warn=False)
    return recording


def messages(recording: Recording) -> str:
    return "\n".join(map(str, recording.notes))


EVENTS = [
    [1.0, "resident", "attack", "", "begin"],
    [2.0, "resident", "bite", "hard|left", "", 20],
    [3.5, "resident", "attack", "", "end", "NA"],
    [4.0, "", "attack", "", ""],
    [5.0, "No focal subject", "attack", "", ""],
]


def test_reads_an_observation(write: Any) -> None:
    path = write({"day 1": observation(EVENTS)})
    assert detect(path).name == "boris"
    recording = only(path)
    a = recording.annotation()
    assert (recording.id, a.rate, a.n_frames, recording.notes) == ("day 1", 10.0, 200, ())
    assert a.start.tolist() == [10, 20, 40]
    assert a.stop.tolist() == [35, 20, 50]
    assert a.names(a.subject) == ["resident", "resident", None]
    assert list(a.modifiers) == ["", "hard|left", ""]
    assert list(a.comment) == ["begin / end", "", ""]
    assert a.subjects == ("resident", "intruder")
    assert a.ethogram["attack"] == Behavior("attack", "bites and chases", point=False, key="a")
    assert a.ethogram["bite"].point
    assert a.ethogram.background_name == "other"
    assert recording.metadata["media"] == [VIDEO]
    assert recording.metadata["independent_variables"] == {"cage": "7"}


def test_several_observations_are_the_entries(write: Any) -> None:
    path = write({"b": observation(EVENTS), "a": observation(EVENTS[:3])})
    assert formats["boris"].entries(path) == ["b", "a"]
    assert [r.id for r in read_recordings(path, warn=False)] == ["b", "a"]
    assert len(only(path, entry="a").annotation()) == 2
    with pytest.raises(NotFoundError, match="no entry 'c'; available: b, a"):
        read_recordings(path, entry="c", warn=False)


def test_the_requested_rate_is_used(write: Any) -> None:
    a = only(write({"x": observation(EVENTS)}), rate=100).annotation()
    assert (a.rate, a.n_frames, a.stop.tolist()) == (100.0, 2000, [350, 200, 500])


def test_consecutive_media_files_make_one_recording(write: Any) -> None:
    info = {"length": {"a.avi": 20.0, "b.avi": 15.5, "c.avi": 99.0}, "fps": {"a.avi": 10.0, "b.avi": 10.0, "c.avi": 50.0}}
    files = {"1": ["a.avi", "b.avi"], "2": ["c.avi"]}
    a = only(write({"x": observation([[30.0, "", "attack", "", ""], [31.0, "", "attack", "", ""]], file=files, media_info=info)}))
    assert (a.annotation().n_frames, a.annotation().rate, a.notes) == (355, 10.0, ())


def test_media_of_several_frame_rates_use_the_first_with_a_note(write: Any) -> None:
    info = {"length": {"a.avi": 20.0, "b.avi": 15.0}, "fps": {"a.avi": 10.0, "b.avi": 25.0}}
    recording = only(write({"x": observation(EVENTS, file={"1": ["a.avi", "b.avi"]}, media_info=info)}))
    assert recording.rate == 10.0
    assert "several frame rates (10, 25)" in messages(recording)


def test_live_observations_count_in_milliseconds_to_the_last_event(write: Any) -> None:
    live = observation([[2.0481, "", "bite", "", ""], [3.25, "", "bite", "", ""]], type="LIVE", file=[], media_info={"offset": {}})
    a = only(write({"x": live})).annotation()
    assert (a.rate, a.n_frames, a.start.tolist()) == (1000.0, 3250, [2048, 3250])


def test_missing_fps_and_length_are_noted(write: Any) -> None:
    recording = only(write({"x": observation(EVENTS, media_info={})}))
    assert (recording.rate, recording.n_frames) == (1000.0, 5000)
    assert "no frame rate in the file" in messages(recording)
    assert "the length of C:\\videos\\mouse one.avi is not stated" in messages(recording)
    assert "length" in messages(only(write({"x": observation(EVENTS, file={})})))
    assert "no frame rate" not in messages(only(write({"x": observation(EVENTS, media_info={})}), rate=25))


def test_the_time_offset_is_subtracted(write: Any) -> None:
    moved = [[time + 3600, *rest] for time, *rest in EVENTS]
    a = only(write({"x": observation(moved, **{"time offset": 3600.0})})).annotation()
    assert a.start.tolist() == [10, 20, 40]
    recording = only(write({"x": observation(EVENTS, **{"time offset": 3600.0})}))
    assert recording.annotation().start.tolist() == [10, 20, 40]
    assert "do not contain the time offset of 3600 s" in messages(recording)


def test_the_creation_date_of_the_media_is_subtracted(write: Any) -> None:
    info = {"length": {VIDEO: 20.0}, "fps": {VIDEO: 10.0}, "media_creation_time": {VIDEO: 1.6e9}}
    moved = [[time + 1.6e9, *rest] for time, *rest in EVENTS]
    a = only(write({"x": observation(moved, media_info=info, media_creation_date_as_offset=True)})).annotation()
    assert a.start.tolist() == [10, 20, 40]
    with pytest.raises(FormatError, match="creation dates"):
        only(write({"x": observation(moved, media_creation_date_as_offset=True)}))


def test_live_times_of_the_clock_count_from_the_first_event(write: Any) -> None:
    moved = [[time + 1.6e9, *rest] for time, *rest in EVENTS]
    recording = only(write({"x": observation(moved, type="LIVE", file={}, start_from_current_epoch_time=True)}))
    assert recording.annotation().start.tolist() == [0, 1000, 3000]
    assert "times of day" in messages(recording)


@pytest.mark.parametrize(("interval", "observed_frames"), [([2, 6], (20, 60)), ([2, 0], (20, 200)), ([0, 6.5], (0, 65))])
def test_only_the_stated_interval_was_observed(write: Any, interval: list[float], observed_frames: tuple[int, int]) -> None:
    a = only(write({"x": observation(EVENTS, **{"observation time interval": interval})})).annotation()
    assert (a.observed.frames.start.tolist(), a.observed.frames.stop.tolist()) == ([observed_frames[0]], [observed_frames[1]])


def test_an_observation_without_events_is_unobserved_unless_it_states_an_interval(write: Any) -> None:
    recording = only(write({"x": observation([])}))
    assert (recording.n_frames, iv.total(recording.annotation().observed.frames)) == (200, 0)
    assert "no events" in messages(recording)
    recording = only(write({"x": observation([], **{"observation time interval": [0, 20]})}))
    assert recording.annotation().observed.is_complete(200)
    assert recording.notes == ()


def test_an_unpaired_state_is_dropped_and_unobserved_from_there_on(write: Any) -> None:
    path = write({"x": observation([*EVENTS, [12.0, "resident", "attack", "", ""]])})
    with pytest.warns(ReadWarning, match="observation 'x', event 6: 'attack' starts without a stop"):
        (recording,) = read_recordings(path)
    a = recording.annotation()
    assert len(a) == 3
    assert a.observed.tracks.keys() == {Track("attack", "resident")}
    assert a.observed.of("attack", "resident").stop.tolist() == [120]
    assert a.observed.of("bite", "resident").stop.tolist() == [200]


def test_modifiers_distinguish_simultaneous_states(write: Any) -> None:
    events = [[1, "", "attack", "x", ""], [2, "", "attack", "y", ""], [3, "", "attack", "x", ""], [4, "", "attack", "y", ""]]
    a = only(write({"x": observation(events)})).annotation()
    assert (a.start.tolist(), a.stop.tolist(), list(a.modifiers)) == ([10, 20], [30, 40], ["x", "y"])


def test_behaviors_missing_from_the_ethogram_are_added_and_noted(write: Any) -> None:
    recording = only(write({"x": observation([*EVENTS, [7.0, "", "groom", "", ""]])}))
    assert recording.annotation().ethogram["groom"].point
    assert "not in the ethogram of the project, read as point events as in BORIS: groom" in messages(recording)


def test_a_behavior_listed_twice_counts_once(write: Any) -> None:
    twice = {**BEHAVIORS, "3": {"type": "Point event", "code": "attack"}}
    recording = only(write({"x": observation(EVENTS)}, behaviors_conf=twice))
    assert not recording.annotation().ethogram["attack"].point
    assert "duplicate behavior 'attack'" in messages(recording)


def test_events_between_frames_and_beyond_the_end_are_noted(write: Any) -> None:
    recording = only(write({"x": observation([[1.04, "", "attack", "", ""], [25.0, "", "attack", "", ""]])}))
    assert recording.annotation().stop.tolist() == [250]
    assert recording.annotation().observed.is_complete(250)
    assert "fall between frames at 10 Hz" in messages(recording)
    assert "ends after the last of 200 frames" in messages(recording)


def test_images_are_frames(write: Any) -> None:
    events = [[float("nan"), "", "attack", "", "", 3, "c.jpg"], [float("nan"), "", "attack", "", "", 8, "h.jpg"]]
    images = observation(events, type="IMAGES", file={}, media_info={}, directories_list=["pictures"])
    recording = only(write({"x": images}))
    assert (recording.annotation().start.tolist(), recording.annotation().stop.tolist(), recording.n_frames) == ([3], [8], 9)
    assert "no frame rate in the file; assuming 30 Hz" in messages(recording)
    lapse = only(write({"x": {**images, "time_lapse_delay": 4}}))
    assert (lapse.rate, lapse.n_frames, lapse.notes) == (0.25, 9, ())
    assert only(write({"x": {**images, "time_lapse_delay": 4}}), rate=0.5).annotation().start.tolist() == [6]


# ---------------------------------------------------------------------- bad input


def test_truncated_json_is_one_clear_error(write: Any) -> None:
    path = write({"x": observation(EVENTS)})
    path.write_text(path.read_text()[:600])
    with pytest.raises(FormatError, match=r"project\.boris, line 1, column .*not valid JSON"):
        read_recordings(path, warn=False)


@pytest.mark.parametrize("content", ["", "[]", '{"observations": []}', "{}"])
def test_files_that_are_not_projects(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.boris"
    path.write_text(content)
    with pytest.raises(FormatError):
        read_recordings(path, "boris", warn=False)


def test_observations_of_the_same_name_are_an_error(write: Any) -> None:
    path = write({"x": observation(EVENTS), "y": observation([])})
    path.write_text(path.read_text().replace('"y"', '"x"'))
    with pytest.raises(FormatError, match="duplicate key 'x'"):
        read_recordings(path, warn=False)
    with pytest.raises(FormatError, match="duplicate key 'x'"):
        formats["boris"].entries(path)


@pytest.mark.parametrize("event", [None, [1.0], ["soon", "", "attack", "", ""], [None, "", "attack", "", ""]])
def test_unknown_events_are_refused(write: Any, event: Any) -> None:
    with pytest.raises(FormatError, match="observation 'x', event 6"):
        read_recordings(write({"x": observation([*EVENTS, event])}), warn=False)


@pytest.mark.parametrize("value", [None, [], "text", 3, {"1": None}])
@pytest.mark.parametrize("key", ["file", "media_info", "independent_variables"])
def test_invalid_descriptions_do_not_prevent_reading(write: Any, key: str, value: Any) -> None:
    assert len(only(write({"x": {**observation(EVENTS), key: value}})).annotation()) == 3


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("events", "text"),
        ("events", {"1": 2}),
        ("observation time interval", "text"),
        ("observation time interval", [1]),
        ("time offset", "x"),
    ],
)
def test_odd_times_are_errors(write: Any, key: str, value: Any) -> None:
    with pytest.raises(FormatError, match=r"observation 'x': the (events|observation time interval|time offset)"):
        read_recordings(write({"x": {**observation(EVENTS), key: value}}), warn=False)


def test_an_empty_observation_is_refused(write: Any) -> None:
    with pytest.raises(FormatError, match="observation 'x'"):
        read_recordings(write({"x": None}), warn=False)


def test_bom_and_crlf(write: Any) -> None:
    path = write({"x": observation(EVENTS)})
    indented = json.dumps(json.loads(path.read_text()), indent=2).replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + indented.encode())
    assert detect(path).name == "boris"
    assert len(only(path).annotation()) == 3


def test_a_long_project_in_one_line_is_recognized(write: Any) -> None:
    events = [[i / 10, "", "bite", "", "x" * 50] for i in range(2000)]
    path = write({"x": observation(events)})
    assert path.stat().st_size > 1 << 16
    assert detect(path).name == "boris"


# ---------------------------------------------------------------------- writing


def write_and_read(recordings: list[Recording], path: Path) -> tuple[list[Recording], str]:
    notes = write_recordings(recordings, path)
    assert detect(path).name == "boris"
    return read_recordings(path, warn=False), "\n".join(map(str, notes))


def test_a_project_survives_writing(write: Any, tmp_path: Path) -> None:
    events = [*EVENTS, [6.0, "intruder", "attack", "", ""], [6.0, "intruder", "attack", "x", ""]]
    events += [[7.0, "intruder", "attack", "", ""], [7.0, "intruder", "attack", "", ""], [8.0, "intruder", "attack", "", ""]]
    events += [[8.0, "intruder", "attack", "x", ""]]
    before = read_recordings(
        write({"one": observation(events), "two": observation(EVENTS, **{"observation time interval": [1, 9]})}), warn=False
    )
    after, notes = write_and_read(before, tmp_path / "again.boris")
    assert notes == ""
    for a, b in zip(before, after, strict=True):
        assert (a.id, a.notes, b.notes) == (b.id, (), ())
        assert a.annotation() == b.annotation()
        assert a.metadata == b.metadata


def test_a_written_project_has_the_fields_that_boris_requires(write: Any, tmp_path: Path) -> None:
    path = tmp_path / "again.boris"
    write_recordings(read_recordings(write({"one": observation(EVENTS)}), warn=False), path)
    stated = json.loads(path.read_text(encoding="utf-8"))
    assert stated["project_format_version"] == "7.0"
    assert stated["behaviors_conf"]["1"]["type"] == "Point event"
    one = stated["observations"]["one"]
    assert one["file"]["1"] == [VIDEO]
    assert one["media_info"]["fps"] == {VIDEO: 10.0}
    assert one["events"][0] == [1.0, "resident", "attack", "", "begin / end", 10]
    assert {"independent_variables", "behavioral_categories", "coding_map", "behaviors_coding_map", "converters"} <= stated.keys()


def test_what_a_project_cannot_store_is_reported(tmp_path: Path) -> None:
    observed = Observed(iv.intervals([0, 50], [20, 100]), {Track("a"): iv.intervals([0], [10])})
    a = Annotation.from_bouts([0, 5], [9, 12], ["a", "a"], Ethogram(["a", "rest"], "rest"), 25, 100, observed=observed, confidence=[1, 0.5])
    (again,), notes = write_and_read([Recording("r", annotations={"me": a})], tmp_path / "x.boris")
    assert "one observed interval" in notes
    assert "1 bouts overlap" in notes
    assert "'rest' will be read as an ordinary behavior" in notes
    assert "confidence" in notes
    assert (again.annotation().to_frames()[:, 0] == a.to_frames()[:, 0]).all()


def test_point_behaviors_with_a_duration_become_states(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0, 9], [5, 9], ["p", "p"], [Behavior("p", point=True)], 25, 20)
    (again,), notes = write_and_read([Recording("r", annotations={"me": a})], tmp_path / "x.boris")
    assert "written as state behaviors: p" in notes
    assert again.annotation().stop.tolist() == [5, 9]


@pytest.mark.parametrize("observed", [None, iv.intervals([3], [11]), iv.empty()])
def test_recordings_without_bouts_keep_what_was_observed(tmp_path: Path, observed: iv.Intervals | None) -> None:
    a = Annotation.from_bouts([], [], [], ["a"], 25, 20, observed=observed)
    (again,), notes = write_and_read([Recording("r", annotations={"me": a})], tmp_path / "x.boris")
    assert notes == ""
    assert again.annotation().observed == a.observed


def test_recordings_of_one_name_cannot_be_distinguished(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0], [5], ["a"], ["a"], 25, 20)
    with pytest.raises(EthobenchError, match="several are called 'r'; rename them"):
        write_recordings([Recording("r", annotations={"me": a})] * 2, tmp_path / "x.boris")
    assert not (tmp_path / "x.boris").exists()


# ---------------------------------------------------------------------- real files


@pytest.mark.data
@pytest.mark.parametrize(
    ("entry", "bouts", "frames", "rate"),
    [("observation #1", 4, 8999, 25), ("observation #2", 18, 13498, 25), ("live", 9, 26630, 1000), ("modifiers", 5, 4499, 25)],
)
def test_samples_of_boris(data: Path, entry: str, bouts: int, frames: int, rate: float) -> None:
    recording = only(data / "formats/boris/test.boris", entry=entry)
    assert (len(recording.annotation()), recording.n_frames, recording.rate) == (bouts, frames, rate)
    assert recording.annotation().ethogram.names == ("p", "s", "q", "r", "m")


@pytest.mark.data
def test_an_unpaired_sample(data: Path) -> None:
    recording = only(data / "formats/boris/test.boris", entry="live not paired")
    assert "event 12: 's' starts without a stop" in messages(recording)
    assert len(recording.annotation()) == 8


@pytest.mark.data
@pytest.mark.parametrize("name", ["test.boris", "test2.boris", "test_without_media_files_paths.boris"])
def test_sample_projects_survive_writing(data: Path, tmp_path: Path, name: str) -> None:
    before = read_recordings(data / "formats/boris" / name, warn=False)
    after, _ = write_and_read(before, tmp_path / name)
    for a, b in zip(before, after, strict=True):
        assert np.array_equal(a.annotation().to_frames(), b.annotation().to_frames())
        assert a.annotation().start.tolist() == b.annotation().start.tolist()


@pytest.mark.data
def test_a_project_and_its_tabular_export_agree(data: Path) -> None:
    folder = data / "boris_two_raters/donnie_initial"
    for number in range(1, 6):
        a = only(folder / "pilot_tracking_consistency_check.boris", entry=f"DLC{number}").annotation()
        (b,) = read_recordings(folder / f"DLC{number}.csv", warn=False)
        assert a.n_frames == b.n_frames
        assert a.spans("interact").start.tolist() == b.annotation().spans("interact").start.tolist()
        assert a.spans("interact").stop.tolist() == b.annotation().spans("interact").stop.tolist()
