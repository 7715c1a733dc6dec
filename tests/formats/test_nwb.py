from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hypothesis_limits import at_most

from ethobench import Annotation, Behavior, ClockOrigin, Ethogram, Observed, Poses, Recording
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.formats import detect, formats, read_recordings, write_recordings
from ethobench.formats.nwb_bouts import SUMMARY_TABLE

pytestmark = pytest.mark.slow

NWB = formats["nwb"]
ETHOGRAM = Ethogram(
    [Behavior("attack", "bites or wrestles", key="a"), Behavior("bite", point=True), Behavior("other", channel="S1")], "other"
)


def only(path: Path, format: str | None = None, **options: Any) -> Recording:
    (recording,) = read_recordings(path, format, **options, warn=False)
    return recording


# ------------------------------------------------------- files made by hand


class Session:
    """Writes an NWB file as other tools lay it out, with h5py alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with h5py.File(path, "w") as file:
            file.attrs["nwb_version"] = "2.6.0"
            file["identifier"] = "3b1f-random"
            file["session_description"] = "open field"
            file["session_start_time"] = "2023-04-05T06:07:08+02:00"
            file["general/subject/subject_id"] = "mouse7"

    def group(self, name: str, kind: str, **attributes: Any) -> None:
        with h5py.File(self.path, "a") as file:
            group = file.require_group(name)
            group.attrs["neurodata_type"] = kind
            group.attrs.update(attributes)

    def put(self, name: str, value: Any, **attributes: Any) -> None:
        with h5py.File(self.path, "a") as file:
            file[name] = value
            file[name].attrs.update(attributes) if attributes else None

    def table(self, name: str, kind: str = "TimeIntervals", **columns: Any) -> Session:
        self.group(name, kind)
        for column, values in columns.items():
            self.put(f"{name}/{column}", values)
        return self

    def points(
        self, name: str, data: Any, times: Any = None, confidence: Any = None, rate: float = 0, kind: str = "PoseEstimationSeries"
    ) -> Session:
        self.group(name, kind)
        self.put(f"{name}/data", np.asarray(data, float), conversion=1.0, unit="pixels")
        if times is not None:
            self.put(f"{name}/timestamps", np.asarray(times, float))
        else:
            self.put(f"{name}/starting_time", 0.0, rate=rate)
        if confidence is not None:
            self.put(f"{name}/confidence", np.asarray(confidence, float))
        return self


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path / "day1.nwb")


# ----------------------------------------------------------------- bouts read


def test_intervals_of_others(session: Session) -> None:
    session.table(
        "intervals/behavior_epochs",
        start_time=[1.0, 0.25],
        stop_time=[2.5, 0.5],
        behavior=["rear", "groom"],
        subject=["m1", ""],
        target=["m2", ""],
        probability=[0.5, np.nan],
        comments=["left", ""],
        id=[0, 1],
    )
    assert detect(session.path).name == "nwb"
    recording = only(session.path)
    assert (recording.id, recording.individual, recording.subjects) == ("day1", "mouse7", ("m1", "m2"))
    assert recording.start_time == datetime.fromisoformat("2023-04-05T06:07:08+02:00")
    assert recording.metadata["identifier"] == "3b1f-random"
    annotation = recording.annotation("behavior_epochs")
    assert (annotation.rate, annotation.n_frames, annotation.start.tolist(), annotation.stop.tolist()) == (
        1000,
        2500,
        [250, 1000],
        [500, 2500],
    )
    assert annotation.ethogram.names == ("rear", "groom")
    assert annotation.names(annotation.subject) == [None, "m1"]
    assert annotation.names(annotation.target) == [None, "m2"]
    assert annotation.order.tolist() == [1, 0]
    assert annotation.confidence[1] == 0.5
    assert annotation.comment.tolist() == ["", "left"]
    assert recording.notes == ()


def test_the_requested_rate_is_used(session: Session) -> None:
    session.table("processing/behavior/bouts", start_time=[1.0], stop_time=[2.01], label=["rear"])
    recording = only(session.path, rate=25)
    assert (recording.annotation().stop.tolist(), recording.annotation().rate) == ([50], 25)
    assert "1 of 2 times fall between frames" in str(recording.notes[0])
    assert only(session.path).clock_origin is ClockOrigin.ASSUMED


def test_tables_are_annotators(session: Session) -> None:
    session.table("processing/behavior/ann", start_time=[0.0], stop_time=[1.0], label=["rear"])
    session.table("processing/behavior/bob", start_time=[0.5], stop_time=[1.0], label=["rear"])
    session.group("processing/behavior/bob", "EthogramBouts", annotator="Robert")
    assert {name: a.start.tolist() for name, a in only(session.path).annotations.items()} == {"ann": [0], "Robert": [500]}


def test_tables_without_behaviors_are_reported(session: Session) -> None:
    session.table("intervals/trials", start_time=[0.0], stop_time=[1.0], side=["left"], id=[0])
    with pytest.warns(UserWarning, match=r"trials: ignored table without a column of behaviors; specify it with label= \(columns: side\)"):
        (recording,) = read_recordings(session.path)
    assert recording.annotations == {}
    assert only(session.path, label="side").annotation("trials").ethogram.names == ("left",)


def test_unknown_columns_are_noted(session: Session) -> None:
    session.table("intervals/x", start_time=[0.0], stop_time=[1.0], label=["rear"], colour=["red"])
    assert [str(n) for n in only(session.path).notes] == ["x: ignored unknown columns: colour"]


def test_a_bout_without_stop_leaves_its_track_unobserved(session: Session) -> None:
    session.table("intervals/x", start_time=[0.0, 2.0], stop_time=[3.0, np.nan], label=["rear", "groom"], subject=["m1", "m2"])
    recording = only(session.path, rate=10)
    annotation = recording.annotation()
    assert len(annotation) == 1
    assert annotation.observed.of("groom", "m2").stop.tolist() == [20]
    assert annotation.observed.of("rear", "m1").stop.tolist() == [30]
    assert "x, row 2: 'groom' has no start or stop time; dropped" in [str(n) for n in recording.notes]


def test_rows_without_a_label_are_unobserved(session: Session) -> None:
    session.table("intervals/x", start_time=[0.0, 2.0], stop_time=[1.0, 3.0], label=["rear", ""])
    recording = only(session.path, rate=10)
    annotation = recording.annotation()
    assert (annotation.n_frames, annotation.observed.frames.stop.tolist()) == (30, [20])
    assert "1 rows have no behavior" in str(recording.notes[0])


def test_a_stop_before_its_start_is_repaired_and_reported(session: Session) -> None:
    session.table("intervals/x", start_time=[2.0], stop_time=[1.0], label=["rear"])
    recording = only(session.path, rate=10)
    assert (recording.annotation().start.tolist(), recording.annotation().stop.tolist()) == ([20], [20])
    assert "stops at 1, before its start at 2" in str(recording.notes[0])


def test_enumerated_labels(session: Session) -> None:
    session.table(
        "intervals/x", start_time=[0.0, 1.0], stop_time=[1.0, 2.0], label=np.array([1, 0], "u1"), label_elements=["rear", "groom"]
    )
    with h5py.File(session.path, "a") as file:
        file["intervals/x/label"].attrs["elements"] = file["intervals/x/label_elements"].ref
    annotation = only(session.path).annotation()
    assert [annotation.ethogram[int(c)].name for c in annotation.behavior] == ["groom", "rear"]


def test_behavioral_epochs(session: Session) -> None:
    session.group("processing/behavior/BehavioralEpochs", "BehavioralEpochs")
    for name, marks, times in (("rear", [1, -1, 1, -1], [0.0, 1.0, 2.0, 2.5]), ("groom", [1, -1, 1], [0.5, 0.75, 3.0])):
        session.table(f"processing/behavior/BehavioralEpochs/{name}", "IntervalSeries", data=np.array(marks, "i1"), timestamps=times)
    annotation = only(session.path, rate=4).annotation("BehavioralEpochs")
    assert annotation.spans("rear").stop.tolist() == [4, 10]
    assert annotation.spans("groom").start.tolist() == [2]
    assert annotation.observed.of("groom").stop.tolist() == [12], "open from there on"
    session.table("processing/behavior/BehavioralEpochs/bad", "IntervalSeries", data=np.array([1, 1], "i1"), timestamps=[0.0, 1.0])
    with pytest.raises(FormatError, match=r"bad, row 2: two consecutive starts or stops"):
        only(session.path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"start_time": [0.0], "stop_time": [1.0, 2.0], "label": ["a"]}, "1 labels for 1 starts and 2 stops"),
        ({"start_time": [-1.0], "stop_time": [1.0], "label": ["a"]}, None),
        ({"start_time": ["x"], "stop_time": [1.0], "label": ["a"]}, "expected numbers in .* got objects"),
        ({"start_time": h5py.ExternalLink("other.nwb", "/x"), "stop_time": [1.0], "label": ["a"]}, "link to another file"),
    ],
)
def test_damaged_tables(columns: dict[str, Any], message: str | None, session: Session) -> None:
    session.table("intervals/x", **columns)
    if message is None:
        assert "1 are shortened" in str(only(session.path).notes[0])
    else:
        with pytest.raises(FormatError, match=message):
            only(session.path)


def test_links_to_other_files_are_not_followed(session: Session, tmp_path: Path) -> None:
    other = Session(tmp_path / "other.nwb").table("intervals/x", start_time=[0.0], stop_time=[1.0], label=["secret"])
    with h5py.File(session.path, "a") as file:
        file["processing/behavior/x"] = h5py.ExternalLink(str(other.path), "/intervals/x")
    recording = only(session.path)
    assert recording.annotations == {}
    assert [str(n) for n in recording.notes] == ["/processing/behavior/x: ignored a link to another file"]


def test_circular_groups_are_read_once(session: Session) -> None:
    session.group("processing/behavior", "ProcessingModule")
    with h5py.File(session.path, "a") as file:
        file["processing/behavior/again"] = file["processing"]
    assert only(session.path).annotations == {}


def test_truncated_and_other_files(session: Session, tmp_path: Path) -> None:
    complete = session.path.read_bytes()
    (tmp_path / "cut.nwb").write_bytes(complete[: len(complete) // 2])
    with pytest.raises(FormatError, match="truncated"):
        read_recordings(tmp_path / "cut.nwb", "nwb", warn=False)
    (tmp_path / "text.nwb").write_text("nothing", encoding="utf-8")
    with pytest.raises(FormatError, match="not a valid HDF5"):
        read_recordings(tmp_path / "text.nwb", "nwb", warn=False)


# ----------------------------------------------------------------- poses read


def test_pose_estimation(session: Session) -> None:
    session.group("processing/behavior/PoseEstimation", "PoseEstimation")
    for name, value in (("tail", 1.0), ("nose", 2.0)):
        session.points(f"processing/behavior/PoseEstimation/{name}", np.full((4, 2), value), np.arange(4) / 20, [0.1, 0.2, 0.3, 0.4])
    session.put("processing/behavior/PoseEstimation/nodes", ["nose", "tail"])
    session.put("processing/behavior/PoseEstimation/source_software", "DeepLabCut")
    recording = only(session.path)
    poses = recording.signals
    assert (recording.rate, recording.n_frames, poses.individuals, poses.keypoints) == (20, 4, ("individual",), ("nose", "tail"))
    assert poses.positions[2, 0].tolist() == [[2, 2], [1, 1]]
    assert poses.confidence[3, 0, 0] == 0.4
    assert recording.metadata["source_software"] == "DeepLabCut"


def test_timestamps_may_be_shared_by_a_link_in_the_file(session: Session) -> None:
    session.group("processing/behavior/P", "PoseEstimation")
    session.points("processing/behavior/P/a", np.zeros((3, 2)), [0, 0.1, 0.2]).points("processing/behavior/P/b", np.ones((3, 2)), rate=10)
    with h5py.File(session.path, "a") as file:
        del file["processing/behavior/P/b/starting_time"]
        file["processing/behavior/P/b/timestamps"] = h5py.SoftLink("/processing/behavior/P/a/timestamps")
    assert only(session.path).signals.keypoints == ("a", "b")
    assert only(session.path).rate == 10


def test_containers_are_individuals(session: Session) -> None:
    for who in ("track=f1", "track=f2"):
        session.group(f"processing/behavior/{who}", "PoseEstimation")
    session.points("processing/behavior/track=f1/nose", np.ones((3, 3)), [0, 0.5, 1.0])
    session.points("processing/behavior/track=f2/nose", np.full((2, 3), 2.0), [0.5, 1.0])
    recording = only(session.path)
    assert (recording.subjects, recording.rate, recording.n_frames) == (("f1", "f2"), 2, 3)
    assert np.isnan(recording.signals.positions[0, 1]).all(), "not seen in the first frame"
    assert recording.signals.positions[2, 1, 0].tolist() == [2, 2, 2]


def test_individuals_in_the_description(session: Session) -> None:
    session.group("processing/behavior/PoseEstimation", "PoseEstimation")
    for who in ("ind1", "ind2"):
        session.points(f"processing/behavior/PoseEstimation/{who}_snout", np.ones((2, 2)), [0, 1])
        session.group(
            f"processing/behavior/PoseEstimation/{who}_snout", "PoseEstimationSeries", description=f"Keypoint snout from individual {who}."
        )
    poses = only(session.path).signals
    assert (poses.individuals, poses.keypoints) == (("ind1", "ind2"), ("snout",))


def test_other_clocks_are_entries(session: Session) -> None:
    for camera, rate in (("left", 60.0), ("right", 150.0)):
        session.group(f"processing/behavior/{camera}", "PoseEstimation")
        session.points(f"processing/behavior/{camera}/paw", np.full((int(rate), 2), rate), rate=rate)
    session.group("processing/other/body", "PoseEstimation")
    session.points("processing/other/body/tail", np.zeros((10, 2)), rate=30)
    session.table("intervals/x", start_time=[0.1], stop_time=[0.2], label=["rear"])
    assert NWB.entries(session.path) == ["behavior", "behavior-1", "other"]
    recording = read_recordings(session.path, warn=False)
    assert [(r.id, r.rate) for r in recording] == [("day1/behavior", 150), ("day1/behavior-1", 60), ("day1/other", 30)]
    assert [r.annotation().start.tolist() for r in recording] == [[15], [6], [3]], "on the clock of each"
    assert only(session.path, entry="other").signals.keypoints == ("tail",)
    with pytest.raises(NotFoundError, match="behavior, behavior-1, other"):
        read_recordings(session.path, entry="x", warn=False)


def test_spatial_series(session: Session) -> None:
    session.group("processing/behavior/Position", "Position")
    session.points("processing/behavior/Position/led", [[0, 1], [2, 3]], rate=50, kind="SpatialSeries")
    session.points("processing/behavior/Position/linear", np.zeros((2, 1)), rate=50, kind="SpatialSeries")
    with h5py.File(session.path, "a") as file:
        file["processing/behavior/Position/led/data"].attrs["conversion"] = 0.5
    recording = only(session.path)
    assert recording.signals.keypoints == ("led",)
    assert recording.signals.positions[1, 0, 0].tolist() == [1, 1.5]
    assert "neither 2-D nor 3-D" in str(recording.notes[0])


def test_bouts_are_counted_from_the_first_pose(session: Session) -> None:
    session.group("processing/behavior/P", "PoseEstimation")
    session.points("processing/behavior/P/nose", np.zeros((100, 2)), 10 + np.arange(100) / 10)
    session.table("intervals/x", start_time=[1.0, 9.0, 12.0], stop_time=[2.0, 11.0, 13.0], label=["early", "rear", "rear"])
    recording = only(session.path)
    annotation = recording.annotation()
    assert (annotation.start.tolist(), annotation.stop.tolist(), annotation.n_frames) == ([0, 20], [10, 30], 100)
    assert "1 bouts before the first pose are dropped, 1 are shortened to start with it" in str(recording.notes[0])
    assert recording.metadata["starting_time"] == 10


def test_timestamps_that_are_frame_numbers_state_no_rate(session: Session) -> None:
    session.group("processing/behavior/P", "PoseEstimation")
    session.points("processing/behavior/P/nose", np.zeros((5, 2)), np.arange(5))
    recording = only(session.path)
    assert recording.rate is None
    assert "frame numbers" in str(recording.notes[0])
    assert only(session.path, rate=30).rate == 30
    assert only(session.path, rate=30).n_frames == 5


def test_irregular_timestamps_are_resampled_to_a_regular_clock(session: Session) -> None:
    times = np.array([0, 0.1, 0.2, 0.3, 0.9, 1.0])
    session.group("processing/behavior/P", "PoseEstimation")
    session.points("processing/behavior/P/nose", np.arange(12).reshape(6, 2), times)
    recording = only(session.path)
    x = recording.signals.positions[:, 0, 0, 0]
    assert recording.rate == 10
    assert x[[0, 1, 2, 3, 9, 10]].tolist() == [0, 2, 4, 6, 8, 10]
    assert np.isnan(x[4:9]).all()
    assert "5 of 11 frames have none" in str(recording.notes[0])


def test_poses_can_be_resampled(session: Session) -> None:
    session.group("processing/behavior/P", "PoseEstimation")
    session.points("processing/behavior/P/nose", np.arange(12).reshape(6, 2), rate=10)
    recording = only(session.path, rate=5)
    assert recording.signals.positions[:, 0, 0, 0].tolist() == [0, 4, 8, 10]
    assert "resampled from 10 Hz to 5 Hz" in str(recording.notes[0])


@pytest.mark.parametrize(
    ("times", "message"),
    [([0.0, 0.2, 0.1], "timestamps do not increase"), ([0.0, 0.1], "3 positions, 3 confidences and 2 timestamps")],
)
def test_wrong_timestamps(times: list[float], message: str, session: Session) -> None:
    session.group("processing/behavior/P", "PoseEstimation")
    session.points("processing/behavior/P/nose", np.zeros((3, 2)), times)
    with pytest.raises(FormatError, match=message):
        only(session.path)


def test_a_distant_timestamp_cannot_exhaust_memory(session: Session) -> None:
    session.group("processing/behavior/P", "PoseEstimation")
    session.points("processing/behavior/P/nose", np.zeros((4, 2)), [0.0, 0.01, 0.02, 1e9])
    with pytest.raises(FormatError, match="refused: its data would take"):
        only(session.path)


# ------------------------------------------------------------------ round trip


def full_annotation() -> Annotation:
    observed = Observed(iv.intervals([0, 50], [20, 90]), {Track("attack", "m1"): iv.intervals([0], [10]), Track("bite"): iv.empty()})
    return Annotation.from_bouts(
        [5, 0, 7, 0],
        [9, 4, 7, 4],
        ["attack", "attack", "bite", "other"],
        ETHOGRAM,
        29.97,
        100,
        subject=["m1", None, "m2", None],
        target=["m2", None, None, None],
        comment=["x", "", "", "ä"],
        modifiers=["hard|left", "", "", ""],
        confidence=[0.5, np.nan, 1, 0],
        observed=observed,
        subjects=["m9"],
    )


def annotations() -> dict[str, Annotation]:
    plain = Annotation.from_bouts([5, 0], [9, 4], ["attack", "other"], ETHOGRAM, 25, 100)
    return {
        "full": full_annotation(),
        "plain": plain,
        "empty": Annotation.from_bouts([], [], [], ETHOGRAM, 25, 100),
        "partly": plain.with_observed(iv.intervals([0], [50])),
        "never": plain.take(np.zeros(2, dtype=bool)).with_observed(iv.empty()),
        "no behaviors": Annotation.from_bouts([], [], [], [], 25, 0),
    }


@pytest.mark.parametrize("extension", [True, False])
def test_round_trip(extension: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ndx_ethogram")
    if not extension:
        monkeypatch.setitem(sys.modules, "ndx_ethogram", None)
    start = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    there = Recording("pair/1", individual="m1;m2", annotations=annotations(), start_time=start)
    path = tmp_path / "out.nwb"
    assert write_recordings([there], path) == []
    assert detect(path).name == "nwb"
    back = only(path)
    assert (back.id, back.individual, back.start_time, back.notes) == ("pair/1", "m1;m2", start, ())
    assert [*back.annotations] == [*annotations()]
    for name, annotation in annotations().items():
        assert back.annotations[name] == annotation, name
    with h5py.File(path) as file:
        kinds = {file[f"processing/behavior/bouts{i}"].attrs["neurodata_type"] for i in ("", 1)}
    assert kinds == ({"TimeIntervals", "EthogramBouts"} if extension else {"TimeIntervals"}), "events without duration are no bouts there"


def test_written_files_are_valid_nwb(tmp_path: Path) -> None:
    pynwb = pytest.importorskip("pynwb")
    write_recordings([Recording("r", annotations=annotations())], tmp_path / "out.nwb")
    assert pynwb.validate(path=str(tmp_path / "out.nwb")) == []
    with pynwb.NWBHDF5IO(str(tmp_path / "out.nwb"), "r") as io:
        table = io.read().processing["behavior"]["bouts1"].to_dataframe()
    assert table["start_time"].tolist() == [0.2, 0.0]
    assert table["label"].tolist() == ["attack", "other"]


def test_other_rates_are_resampled_and_reported(tmp_path: Path) -> None:
    write_recordings([Recording("r", annotations={"me": annotations()["plain"]})], tmp_path / "out.nwb")
    recording = only(tmp_path / "out.nwb", rate=50)
    assert recording.annotation() == annotations()["plain"].resample(50)
    assert "resampled from 25 Hz to 50 Hz" in str(recording.notes[0])


def test_an_unknown_start_stays_unknown_and_poses_are_reported_as_lost(tmp_path: Path) -> None:
    poses = Poses(np.zeros((2, 1, 1, 2)), np.ones((2, 1, 1)), ("individual",), ("nose",), 25)
    notes = write_recordings([Recording("r", signals=poses, start_time=datetime(2024, 1, 1))], tmp_path / "a.nwb")
    assert [str(n) for n in notes] == [
        "poses and signals are not written to NWB; they are lost",
        "the start time has no time zone; written as UTC",
    ]
    write_recordings([Recording("r", annotations={"me": annotations()["plain"]})], tmp_path / "b.nwb")
    assert only(tmp_path / "b.nwb").start_time is None


@at_most(15)
@given(
    bouts=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 1000), st.sampled_from(["attack", "other"])), max_size=6),
    rate=st.sampled_from([1.0, 25.0, 29.97, 30.0, 59.94, 240.0, 1000.0]) | st.floats(0.5, 5000),
)
def test_frames_survive_at_any_rate(bouts: list[tuple[int, int, str]], rate: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("nwb") / "out.nwb"
    start, length, names = zip(*bouts, strict=True) if bouts else ((), (), ())
    stop = [s + n for s, n in zip(start, length, strict=True)]
    there = Annotation.from_bouts(start, stop, names, ETHOGRAM, rate, 1_001_000)
    write_recordings([Recording("r", annotations={"me": there})], path)
    assert only(path).annotation() == there


def test_bouts_of_another_tool_with_the_extension(tmp_path: Path) -> None:
    pynwb, ndx = pytest.importorskip("pynwb"), pytest.importorskip("ndx_ethogram")
    nwb = pynwb.NWBFile(session_description="s", identifier="i", session_start_time=datetime(2024, 1, 1, tzinfo=UTC))
    behaviors = ndx.Ethogram(name="scheme", description="d")
    for name, definition in (("rear", "stands up"), ("groom", "cleans itself")):
        behaviors.add_row(behavior=name, definition=definition)
    observed = pynwb.epoch.TimeIntervals(name="looked", description="d")
    observed.add_row(start_time=0.0, stop_time=4.0)
    bouts = ndx.EthogramBouts(
        name="bouts", description="d", labeling_method="manual", annotator="Ann", ethogram=behaviors, observation_intervals=observed
    )
    bouts.add_row(start_time=1.0, stop_time=2.5, label="rear")
    module = nwb.create_processing_module("behavior", "d")
    for table in (behaviors, observed, bouts):
        module.add(table)
    with pynwb.NWBHDF5IO(str(tmp_path / "x.nwb"), "w") as io:
        io.write(nwb)
    recording = only(tmp_path / "x.nwb", rate=10)
    annotation = recording.annotation("Ann")
    assert [(b.name, b.definition) for b in annotation.ethogram] == [("rear", "stands up"), ("groom", "cleans itself")]
    assert (annotation.start.tolist(), annotation.stop.tolist(), annotation.observed.frames.stop.tolist()) == ([10], [25], [40])


def test_text_that_hdf5_cannot_store_is_refused_in_one_line(tmp_path: Path) -> None:
    odd = Annotation.from_bouts([0], [1], ["a"], ["a"], 25, 2, comment=["x\0y"])
    with pytest.raises(EthobenchError, match=r"the comment 'x\\x00y' has a control character") as caught:
        write_recordings([Recording("r", annotations={"me": odd})], tmp_path / "out.nwb")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_without_pynwb_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynwb", None)
    with pytest.raises(EthobenchError, match=r"pip install .ethobench\[nwb\]."):
        write_recordings([Recording("r", annotations={"me": annotations()["plain"]})], tmp_path / "out.nwb")
    assert not (tmp_path / "out.nwb").exists()


def test_without_h5py_the_error_says_what_to_install(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(EthobenchError, match=r"pip install .ethobench\[pose\]."):
        read_recordings(session.path, "nwb", warn=False)


def test_real_sample(data: Path) -> None:
    path = data / "formats" / "nwb" / "sample.nwb"
    assert detect(path).name == "nwb"
    recording = only(path)
    assert (recording.id, recording.n_frames, recording.rate) == ("sample", 2330, None)
    assert (recording.signals.individuals, recording.signals.keypoints) == (("ind1",), ("snout", "leftear", "rightear", "tailbase"))
    assert np.allclose(recording.signals.positions[0, 0, 0], [77.29780579, 88.87557983])
    assert recording.signals.confidence.min() >= 0
    assert "frame numbers" in str(recording.notes[0])


def test_a_missing_label_column_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.nwb"
    write_recordings([Recording("r", annotations={"me": Annotation.from_bouts([1], [5], ["a"], ["a"], 25, 20)})], path, "nwb")
    with h5py.File(path, "a") as file:
        del file[f"processing/behavior/{SUMMARY_TABLE}"]
    recordings = read_recordings(path, "nwb", label="typo", warn=False)
    assert not any(r.annotations for r in recordings)
    assert any("ignored table without a column 'typo'" in str(n) for r in recordings for n in r.notes)


def test_text_where_a_reference_belongs_is_refused(tmp_path: Path) -> None:
    secret, path = tmp_path / "secret.h5", tmp_path / "x.nwb"
    with h5py.File(secret, "w") as file:
        file["words"] = np.array([b"private"])
    write_recordings([Recording("r", annotations={"me": Annotation.from_bouts([1], [5], ["a"], ["a"], 25, 20)})], path, "nwb")
    with h5py.File(path, "a") as file:
        file["out"] = h5py.ExternalLink(str(secret), "/words")
        del file[f"processing/behavior/{SUMMARY_TABLE}"]
        tables: list[h5py.Group] = []
        file.visititems(lambda _, node: tables.append(node) if isinstance(node, h5py.Group) and "start_time" in node else None)
        for table in tables:
            name = "behavior" if "behavior" in table else "label"
            del table[name]
            table[name] = np.array([0])
            table[name].attrs["elements"] = "/out"
    with pytest.raises(FormatError, match="refused"):
        read_recordings(path, "nwb", warn=False)


def test_a_behavior_called_nan_survives(tmp_path: Path) -> None:
    truth = Annotation.from_bouts([1], [5], ["nan"], ["nan"], 25, 20)
    write_recordings([Recording("r", annotations={"me": truth})], tmp_path / "x.nwb", "nwb")
    assert read_recordings(tmp_path / "x.nwb", warn=False)[0].annotation().ethogram.names == ("nan",)
    assert len(read_recordings(tmp_path / "x.nwb", warn=False)[0].annotation()) == 1
