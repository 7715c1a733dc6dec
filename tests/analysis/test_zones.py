"""Zones: geometry against brute force and shapely, entries with jitter, tables, and zones.csv."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.running import ethobench

import ethobench as eb
from ethobench import Annotation, Poses, Recording, Zone, ZoneOptions
from ethobench.analysis.tracks import animal_tracks
from ethobench.analysis.zones import INSIDE, OUTSIDE, UNTRACKED, zone_states
from ethobench.datasets.zones import zones_of
from ethobench.features.zone_inputs import zone_inputs

shapely = pytest.importorskip("shapely")
EXACT = ZoneOptions(margin=0, min_dwell=0)
STAR = Zone("star", "polygon", ((10, 10), (90, 12), (50, 40), (88, 95), (48, 60), (8, 88), (30, 45)))


def recording_of(path: np.ndarray, rate: float = 10.0, **fields) -> Recording:
    """Return a recording of animals with one keypoint each; `path` has the shape (n_frames, 2) or (n_frames, n_animals, 2)."""
    positions = np.asarray(path, dtype=float).reshape(len(path), -1, 1, 2)
    names = tuple(f"m{k + 1}" for k in range(positions.shape[1]))
    poses = Poses(positions, np.ones(positions.shape[:3]), names, ("body",), rate)
    return Recording(fields.pop("id", "r1"), signals=poses, **fields)


def crossing_number(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Count the edges that a ray to the right of each point crosses."""
    x, y = points.T
    inside = np.zeros(len(points), dtype=bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        crosses = (y0 > y) != (y1 > y)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return inside


@pytest.mark.slow
def test_a_million_points_agree_with_brute_force():
    points = np.random.default_rng(1).uniform(0, 100, size=(1_000_000, 2))
    assert (STAR.contains(points) == crossing_number(points, np.array(STAR.coordinates))).all()
    rectangle = Zone("box", "rectangle", ((70, 20), (30, 60)))
    x, y = points.T
    assert (rectangle.contains(points) == ((x >= 30) & (x <= 70) & (y >= 20) & (y <= 60))).all()
    circle = Zone("disk", "circle", ((40, 50), (25,)))
    assert (circle.contains(points) == ((x - 40) ** 2 + (y - 50) ** 2 <= 625)).all()


@given(seed=st.integers(0, 2**32 - 1))
def test_random_polygons_agree_with_brute_force_and_shapely(seed):
    random = np.random.default_rng(seed)
    angles = np.sort(random.uniform(0, 2 * np.pi, size=int(random.integers(3, 12))))
    radius = random.uniform(5, 40, size=len(angles))
    corners = np.stack([50 + radius * np.cos(angles), 50 + radius * np.sin(angles)], axis=1)
    polygon = shapely.Polygon(corners)
    if not polygon.is_valid:
        return
    zone = Zone("z", "polygon", tuple(map(tuple, corners)))
    points = random.uniform(0, 100, size=(200, 2))
    assert (zone.contains(points) == crossing_number(points, corners)).all()
    assert zone.distance(points) == pytest.approx([polygon.distance(shapely.Point(p)) for p in points])
    assert ((zone.distance(points) == 0) == zone.contains(points)).all()


def test_circles_agree_with_those_of_shapely():
    circle, points = Zone("disk", "circle", ((4, 5), (2.5,)), unit="cm"), np.random.default_rng(3).uniform(0, 100, size=(2000, 2))
    many_corners = shapely.Point(40, 50).buffer(25, quad_segs=4096)
    away = np.abs(np.hypot(*(points - [40, 50]).T) - 25) > 1e-3
    assert (circle.contains(points, 10.0) == shapely.contains_xy(many_corners, points))[away].all()
    assert circle.distance(points, 10.0) == pytest.approx(shapely.distance(many_corners, shapely.points(points)), abs=1e-3)


def test_borders_are_inside_and_missing_points_outside():
    zone = Zone("box", "rectangle", ((0, 0), (10, 10)))
    points = np.array([[10.0, 5.0], [0.0, 0.0], [10.1, 5.0], [np.nan, np.nan]])
    assert zone.contains(points).tolist() == [True, True, False, False]
    assert zone.distance(points)[2] == pytest.approx(0.1)
    assert np.isnan(zone.distance(points)[3])


def test_jitter_at_a_border_is_one_entry():
    random = np.random.default_rng(0)
    x = np.concatenate([np.full(100, 20.0), 50 + random.normal(0, 0.5, 600), np.full(100, 80.0)])
    recording = recording_of(np.stack([x, np.full(800, 50.0)], axis=1), rate=30)
    zone = Zone("right", "rectangle", ((50, 0), (100, 100)))
    exact = eb.zone_occupancy(recording, [zone], options=EXACT).iloc[0]
    default = eb.zone_occupancy(recording, [zone]).iloc[0]
    assert exact["n_entries"] > 100
    assert (default["n_entries"], default["n_exits"]) == (1, 0)
    by_dwell = eb.zone_occupancy(recording, [zone], options=ZoneOptions(margin=0, min_dwell=1.0)).iloc[0]
    assert by_dwell["n_entries"] <= 2
    assert eb.zone_occupancy(recording, [zone], options=ZoneOptions(margin=3, min_dwell=0)).iloc[0]["n_entries"] == 1


@given(seed=st.integers(0, 2**32 - 1), margin=st.sampled_from([0.0, 3.0]), dwell=st.sampled_from([0.0, 0.35]))
def test_states_equal_a_walk_through_the_frames(seed, margin, dwell):
    random = np.random.default_rng(seed)
    path = np.cumsum(random.normal(0, 3, size=(120, 2)), axis=0) + 50
    path[random.random(120) < 0.1] = np.nan
    zone = Zone("box", "rectangle", ((40, 40), (60, 60)))
    (track,) = animal_tracks([recording_of(path)], max_gap_seconds=0)
    expected, state = [], UNTRACKED
    for x, y in path:
        outside = np.hypot(max(40 - x, x - 60, 0), max(40 - y, y - 60, 0))
        if np.isnan(x):
            state = UNTRACKED
        elif outside == 0:
            state = INSIDE
        elif outside > margin or state == UNTRACKED:
            state = OUTSIDE
        expected.append(state)
    for short in (OUTSIDE, INSIDE) if dwell else ():
        k = 0
        while k < len(expected):
            end = k
            while end < len(expected) and expected[end] == expected[k]:
                end += 1
            if expected[k] == short and end - k < 3.5 and k > 0 and end < len(expected) and expected[k - 1] == expected[end] == 1 - short:
                expected[k:end] = [1 - short] * (end - k)
            k = end
    assert zone_states(track, zone, ZoneOptions(margin=margin, min_dwell=dwell)).tolist() == expected


def test_measures_of_a_walk_through_a_zone_in_cm():
    x = np.concatenate([np.arange(0, 100, 2.0), np.full(20, np.nan), np.arange(100, 0, -2.0)])
    recording = recording_of(np.stack([x, np.full(len(x), 5.0)], axis=1), metadata={"pixels_per_cm": 2.0, "sex": "f"})
    zone = Zone("middle", "rectangle", ((20, 0), (30, 10)), unit="cm")  # 40 to 60 pixels
    row = eb.zone_occupancy(recording, [zone], options=EXACT).iloc[0]
    assert (row["sex"], row["unit"]) == ("f", "cm")
    assert (row["n_entries"], row["n_exits"]) == (2, 2)
    assert row["time_s"] == pytest.approx(2.2)
    assert row["latency_s"] == pytest.approx(2.0)
    assert row["mean_visit_s"] == pytest.approx(1.1)
    assert row["distance"] == pytest.approx(22.0)
    assert row["mean_speed"] == pytest.approx(10.0)
    assert row["tracked_s"] == pytest.approx(10.0)
    assert row["coverage"] == pytest.approx(100 / 120)
    distances = np.maximum(np.maximum(40 - x, x - 60), 0) / 2
    assert row["mean_distance_to"] == pytest.approx(np.nanmean(distances))
    thirds = eb.zone_occupancy(recording, [zone], bin="thirds", options=EXACT)
    assert thirds["time_s"].sum() == pytest.approx(2.2)
    assert thirds["n_entries"].sum() == 2


def test_an_animal_found_inside_after_a_gap_has_not_entered():
    x = np.concatenate([np.full(20, 5.0), np.full(20, np.nan), np.full(20, 50.0)])
    zone = Zone("right", "rectangle", ((40, 0), (60, 10)))
    row = eb.zone_occupancy(recording_of(np.stack([x, np.full(60, 5.0)], axis=1)), [zone]).iloc[0]
    assert (row["n_entries"], row["time_s"]) == (0, 2.0)


def test_behaviors_by_zone_equal_counts_of_frames():
    random = np.random.default_rng(5)
    path = np.cumsum(random.normal(0, 4, size=(400, 2, 2)), axis=0) + 50
    path[100:150, 0] = np.nan
    codes = np.repeat(random.integers(0, 3, size=40), 10)
    m1 = Annotation.from_frames(codes, ["groom", "rear"], rate=10, subject="m1")
    recording = recording_of(path, annotations={"a": m1})
    zones = [Zone("left", "rectangle", ((-1000, -1000), (50, 1000))), Zone("low", "rectangle", ((-1000, 50), (1000, 1000)))]
    table = eb.budgets(recording, zones=zones, zone_options=EXACT)
    left_edges, low = path[:, 0, 0] <= 50, path[:, 0, 1] >= 50
    masks = {"left": left_edges, "low": low, "elsewhere": ~left_edges & ~low & ~np.isnan(path[:, 0, 0])}
    assert len(table) == 6
    for row in table.itertuples():
        assert row.total_s == pytest.approx((masks[row.zone] & (codes == ["groom", "rear"].index(row.behavior))).sum() / 10)
        assert row.observed_s == pytest.approx(masks[row.zone].sum() / 10)
        assert row.coverage == pytest.approx(350 / 400)
    unnamed = recording.copy(annotations={"a": Annotation.from_frames(codes, ["groom", "rear"], rate=10)})
    with pytest.raises(eb.ParameterError, match="bouts without a subject; choose whose position counts"):
        eb.budgets(unnamed, zones=zones)
    chosen = eb.budgets(unnamed, zones=zones, zone_options=replace(EXACT, animal="m1"))
    assert chosen["total_s"].tolist() == table["total_s"].tolist()
    with pytest.raises(eb.ParameterError, match="animal 'm3' is not tracked; tracked animals: m1, m2"):
        eb.budgets(unnamed, zones=zones, zone_options=ZoneOptions(animal="m3"))
    with pytest.raises(eb.EthobenchError, match="has no zones"):
        eb.budgets(recording, zones=True)
    with pytest.raises(eb.NotFoundError, match=r"no keypoint 'nose'; available: centroid, body"):
        eb.zone_occupancy(recording, zones, options=ZoneOptions("nose"))
    longer = recording.copy(annotations={"a": m1.extend(500)})
    with pytest.raises(eb.MismatchError, match="500 frames at 10 Hz, the poses have 400"):
        eb.budgets(longer, zones=zones)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,polygon,0 0; 10 10; 10 0; 0 10", r"zone 'a' crosses itself at \(5, 5\)"),
        ("a,polygon,0 0; 10 10", "a polygon needs three or more corners"),
        ("a,polygon,0 0; 10 10; 20 20", "has no area"),
        ("a,rectangle,0 0; 0 10", "has no area"),
        ("a,circle,5 5; 0", "radius must be positive"),
        ('a,rectangle,"0,5 0,5; 3,5 4,5"', "with decimal points"),
        ("a,rectangle,0 0; x 4", "coordinates must be numbers"),
        ("a,ellipse,0 0; 3 4", "no shape 'ellipse'"),
        (",circle,5 5; 1", "no name"),
        ("elsewhere,circle,5 5; 1", "other than 'elsewhere'"),
        ("a,circle,1e999 5; 1", "coordinates must be"),
    ],
)
def test_invalid_zones_name_their_row(tmp_path, row, message):
    (tmp_path / "zones.csv").write_text(f"name,shape,coordinates\nok,circle,5 5; 1\n{row}\n")
    with pytest.raises(eb.FormatError, match=message) as caught:
        eb.read_zones(tmp_path / "zones.csv")
    assert "row 3" in str(caught.value)


def study(folder, zones: str, columns: str = "", cells: str = ""):
    """Write a study of one recording with poses, and its zones."""
    recording = recording_of(np.stack([np.linspace(1, 99, 50), np.full(50, 50.0)], axis=1))
    eb.write_recordings([recording], folder / "m1.csv", "deeplabcut")
    labels = Annotation.from_frames([0] * 25 + [1] * 25, ["rest", "walk"], rate=10)
    eb.write_annotation(labels, folder / "m1_labels.csv", "tidy")
    (folder / "recordings.csv").write_text(f"recording,rate,signals,annotations{columns}\nm1,10,m1.csv,m1_labels.csv{cells}\n")
    (folder / "zones.csv").write_text(f"name,shape,coordinates,unit,recording\n{zones}\n")
    return folder


def test_zones_of_a_study(tmp_path):
    data = eb.load_dataset(study(tmp_path, "right,rectangle,50 0; 100 100,,\nright,rectangle,25 0; 50 50,cm,m1", ",pixels_per_cm", ",2"))
    (zone,) = zones_of(data["m1"])
    assert zone.unit == "cm"
    table = eb.zone_occupancy(data)
    assert table["time_s"].tolist() == [2.5]
    assert table["unit"].tolist() == ["cm"]
    by_zone = eb.budgets(data, zones=True).set_index(["zone", "behavior"])["share"]
    assert by_zone["right", "walk"] == 1
    assert by_zone["elsewhere", "walk"] == 0


@pytest.mark.parametrize(
    ("zones", "columns", "cells", "message"),
    [
        ("nest,circle,5 5; 1,cm,", "", "", "is in cm, but the scale is not known; add a column pixels_per_cm"),
        ("nest,circle,500 5; 1,,", ",width,height", ",100,100", "outside the image of 100 x 100 pixels"),
        ("arena,rectangle,0 0; 100 100,,\nnest,circle,500 5; 1,,", "", "", "outside the zone 'arena'"),
        ("nest,circle,5 5; 1,,m", "", "", "recording 'm', which does not exist; did you mean 'm1'"),
        ("nest,circle,5 5; 1,,\nnest,circle,5 5; 2,,", "", "", "duplicate zone 'nest'"),
    ],
)
def test_a_study_with_impossible_zones_is_refused(tmp_path, zones, columns, cells, message):
    with pytest.raises(eb.EthobenchError, match=message):
        eb.load_dataset(study(tmp_path, zones, columns, cells))


def test_zones_keep_their_order(tmp_path):
    shared = [Zone(name, "circle", ((5, 5), (1,))) for name in ("a", "b", "c")]
    special = Zone("b", "circle", ((6, 6), (1,)), recording="m1")
    for zones in ([*shared, special], [special, *shared]):
        selected = zones_of(Recording("m1"), zones)
        assert {zone.name: zone.coordinates[0][0] for zone in selected} == {"a": 5, "b": 6, "c": 5}
    assert [zone.name for zone in zones_of(Recording("m1"), [*shared, special])] == ["a", "b", "c"]
    assert zones_of(Recording("m2"), [special]) == ()


def test_zones_are_written_and_read_back(tmp_path):
    zones = (STAR, Zone("nest", "circle", ((0.1, 1e-7), (2.5,)), "cm", "m1"))
    eb.write_zones(zones, tmp_path / "zones.csv")
    assert eb.read_zones(tmp_path / "zones.csv") == zones
    with pytest.raises(FileExistsError):
        eb.write_zones(zones, tmp_path / "zones.csv")


def test_zones_as_inputs_of_models():
    path = np.stack([np.linspace(0, 99, 50), np.full(50, 5.0)], axis=1)
    positions = np.stack([path, path + np.array([10.0, 0])], axis=1)[:, None]
    positions[20] = np.nan
    poses = Poses(positions, np.ones((50, 1, 2)), ("m1",), ("nose", "tail_base"), 10.0)
    zone = Zone("right", "rectangle", ((5, 0), (20, 1)), unit="cm")
    recording = Recording("r", signals=poses, metadata={"pixels_per_cm": 10.0, "zones": [zone.to_dict()]})
    values, names = zone_inputs(recording)
    assert names == ("m1/right/inside", "m1/right/distance")
    center = path[:, 0] + 5
    tracked = np.arange(50) != 20
    assert np.isnan(values[20]).all()
    assert (values[tracked, 0] == (center >= 50)[tracked]).all()
    assert values[tracked, 1] == pytest.approx(np.maximum(50 - center, 0)[tracked] / 10)
    assert zone_inputs(recording, [])[0].shape == (50, 0)


def test_a_zone_that_no_animal_enters_is_noted_and_a_problem_of_all_recordings_is_one_problem(tmp_path):
    rows = ["recording,individual,rate,signals,annotations"]
    for name in ("m1", "m2"):
        lines = ["scorer,x,x,x", "bodyparts,body,body,body", "coords,x,y,likelihood", *(f"{k},{k},5,1" for k in range(20))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
        eb.write_annotation(Annotation.from_frames([0, 1] * 10, ["rest", "walk"], rate=10), tmp_path / f"{name}_labels.csv")
        rows.append(f"{name},{name},10,{name}.csv,{name}_labels.csv")
    (tmp_path / "recordings.csv").write_text("\n".join(rows))
    (tmp_path / "zones.csv").write_text("name,shape,coordinates\nleft,rectangle,0 0; 10 10\nfar,circle,900 900; 5\n")
    assert "no animal is ever in zone far;" in ethobench("budget", tmp_path, "--zones").stderr
    (tmp_path / "zones.csv").write_text("name,shape,coordinates,unit\nnest,circle,5 5; 5,cm\n")
    error = ethobench("budget", tmp_path, "--zones").stderr
    assert error.count("the scale is not known") == 1
    assert "(2 recordings)" in error
