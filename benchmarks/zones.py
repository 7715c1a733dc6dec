"""Zones and budgets on simulated points and real recordings: agreement with brute force, jitter at a border, seals.

Run it from the root of a checkout, with recordings under ``$ETHOBENCH_DATA``::

    python benchmarks/zones.py > benchmarks/results/zones.md
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import shapely

import ethobench as eb

N_POINTS = 1_000_000


def crossing_number(points, corners):
    """Count the edges that a ray to the right of each point crosses."""
    x, y = points.T
    inside = np.zeros(len(points), dtype=bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        crosses = (y0 > y) != (y1 > y)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return inside


def brute_force_distance(points, corners):
    """Return the distance of each point from the nearest edge."""
    nearest = np.full(len(points), np.inf)
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = np.clip(((points - a) @ (b - a)) / ((b - a) @ (b - a)), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(points - a - along[:, None] * (b - a), axis=1))
    return nearest


def zones():
    """Return a zone of each shape; the polygon is concave, with 40 corners."""
    random = np.random.default_rng(7)
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    radius = random.uniform(80, 300, size=40)
    polygon = np.stack([500 + radius * np.cos(angle), 500 + radius * np.sin(angle)], axis=1)
    return [
        eb.Zone("polygon", "polygon", tuple(map(tuple, polygon))),
        eb.Zone("rectangle", "rectangle", ((200, 300), (700, 650))),
        eb.Zone("circle", "circle", ((480, 520), (210,))),
    ]


def geometry():
    """Compare zones with brute force and with shapely, point by point."""
    points = np.random.default_rng(1).uniform(0, 1000, size=(N_POINTS, 2))
    print(f"## {N_POINTS:,} random points\n")
    print("| shape | inside | differ from brute force | differ from shapely | largest difference of distance (px) | seconds |")
    print("|---|---|---|---|---|---|")
    for zone in zones():
        start = time.perf_counter()
        inside = zone.contains(points)
        distance = zone.distance(points)
        seconds = time.perf_counter() - start
        shape = zone.geometry() if zone.shape != "circle" else shapely.Point(480, 520).buffer(210, quad_segs=4096)
        if zone.shape == "circle":
            from_center = np.hypot(*(points - [480, 520]).T)
            expected, outside = from_center <= 210, np.maximum(from_center - 210, 0)
        else:
            corners = np.array(zone.coordinates) if zone.shape == "polygon" else np.array([[200, 300], [700, 300], [700, 650], [200, 650]])
            expected = crossing_number(points, corners)
            outside = np.where(expected, 0, brute_force_distance(points, corners))
        by_shapely = shapely.contains_xy(shape, points)
        print(
            f"| {zone.shape} | {inside.sum():,} | {(inside != expected).sum()} | {(inside != by_shapely).sum()} | "
            f"{np.abs(distance - outside).max():.1e} | {seconds:.2f} |"
        )
    print("\nThe circle of shapely is a polygon with 16,384 corners.\n")


def jitter():
    """Count entries of an animal that sits on a border for ten minutes, at several levels of jitter."""
    print("## An animal that sits on the border of a zone for ten minutes at 30 Hz\n")
    print("Once in, never out: the true number of entries is 1. The zone is 500 x 500 pixels.\n")
    print("| jitter (SD, px) | no hysteresis | minimum dwell 0.25 s | default: margin 12.5 px and 0.25 s |")
    print("|---|---|---|---|")
    zone = eb.Zone("right", "rectangle", ((500, 0), (1000, 500)))
    for sd in (0.5, 2.0, 5.0, 10.0):
        random = np.random.default_rng(0)
        x = np.concatenate([np.full(300, 300.0), 500 + random.normal(0, sd, 18_000)])
        positions = np.stack([x, np.full(len(x), 250.0)], axis=1)[:, None, None]
        poses = eb.Poses(positions, np.ones(positions.shape[:3]), ("m",), ("body",), 30.0)
        recording = eb.Recording("r", signals=poses)
        options = (eb.ZoneOptions(margin=0, min_dwell=0), eb.ZoneOptions(margin=0), eb.ZoneOptions())
        entries = [int(eb.zone_occupancy(recording, [zone], options=o)["n_entries"].iloc[0]) for o in options]
        print(f"| {sd:g} | " + " | ".join(map(str, entries)) + " |")
    print()


def seals():
    """Print the budgets of each seal."""
    data = eb.load_dataset("bebe/ladds_seals")
    start = time.perf_counter()
    table = eb.budgets(data, by="individual")
    seconds = time.perf_counter() - start
    behaviors = list(dict.fromkeys(table["behavior"]))
    print(f"## Seals (BEBE): % of the observed time, per animal ({len(data)} recordings, {data.n_frames:,} frames, {seconds:.2f} s)\n")
    print("| individual | " + " | ".join(behaviors) + " | observed h | coverage % |")
    print("|---|" + "---|" * (len(behaviors) + 2))
    for name, rows in table.groupby("individual", sort=False):
        shares = " | ".join(f"{100 * share:.1f}" for share in rows.set_index("behavior")["share"][behaviors])
        print(f"| {name} | {shares} | {rows['observed_s'].iloc[0] / 3600:.2f} | {100 * rows['coverage'].iloc[0]:.1f} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("# Zones and time budgets\n\nProduced by `python benchmarks/zones.py`.\n")
    geometry()
    jitter()
    seals()
