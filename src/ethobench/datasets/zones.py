"""Zones of an arena: ``zones.csv`` of a study, their geometry, and the checks of both.

The table has the columns ``name``, ``shape`` (``polygon``, ``rectangle`` or ``circle``), ``coordinates``, and optionally ``unit``
(``px``, the default, or ``cm``) and ``recording`` (empty: all recordings). Points are separated by semicolons, x and y by a space or
a comma::

    name,shape,coordinates,unit,recording
    center,rectangle,100 100; 300 300,px,
    nest,circle,50 60; 25,px,
    feeder,polygon,0 0; 40 0; 20 35,cm,m1

A polygon has three or more corners, a rectangle two opposite corners, a circle its center and its radius. A zone of a recording replaces
the zone of the same name of all recordings. A zone named ``arena`` states the arena: other zones must not be outside it.

Conventions
-----------
Coordinates have the origin of the poses, the top left corner of the image. A point on the border is inside. The geometry is computed by
shapely, except that of circles, which is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError, MismatchError, ParameterError
from ethobench.formats.tables import read_table
from ethobench.formats.text import parse_number

if TYPE_CHECKING:
    from ethobench.core import Recording

ZONES = "zones.csv"
ARENA = "arena"
ELSEWHERE = "elsewhere"
"""Name of the frames in no zone; no zone can have it."""

SHAPES = {"polygon": "three or more corners 'x y; x y; x y'", "rectangle": "two opposite corners 'x y; x y'", "circle": "'x y; radius'"}
UNITS = ("px", "cm")
COLUMNS = ("name", "shape", "coordinates", "unit", "recording")
MAX_COORDINATE = 1e9


@dataclass(frozen=True)
class Zone:
    """A named region of the arena.

    Attributes
    ----------
    name : str
    shape : {"polygon", "rectangle", "circle"}
    coordinates : tuple of tuple of float
        Corners (x, y) of a polygon; two opposite corners of a rectangle; center (x, y) and radius (r,) of a circle.
    unit : {"px", "cm"}
    recording : str
        Id of the only recording that has it; empty for all.

    Raises
    ------
    ParameterError
        If the shape is unknown, has the wrong number of points, no area, or crosses itself.

    Examples
    --------
    >>> zone = Zone("nest", "circle", ((50.0, 60.0), (25.0,)))
    >>> zone.contains(np.array([[50.0, 80.0], [50.0, 90.0]])).tolist()
    [True, False]
    >>> zone.distance(np.array([[50.0, 95.0]])).tolist()
    [10.0]
    """

    name: str
    shape: str
    coordinates: tuple[tuple[float, ...], ...]
    unit: str = "px"
    recording: str = ""

    def __post_init__(self) -> None:
        if not self.name or self.name == ELSEWHERE:
            raise ParameterError(f"a zone needs a name other than {ELSEWHERE!r}" if self.name else "a zone has no name")
        if self.shape not in SHAPES:
            raise ParameterError(f"zone {self.name!r}: no shape {self.shape!r}; available: {', '.join(SHAPES)}")
        if self.unit not in UNITS:
            raise ParameterError(f"zone {self.name!r}: no unit {self.unit!r}; available: {', '.join(UNITS)}")
        object.__setattr__(self, "coordinates", tuple(tuple(map(float, point)) for point in self.coordinates))
        sizes = [len(point) for point in self.coordinates]
        is_circle = self.shape == "circle"
        fits = sizes == [2, 1] if is_circle else {*sizes} == {2} and (len(sizes) == 2 if self.shape == "rectangle" else len(sizes) >= 3)
        if not fits:
            raise ParameterError(f"zone {self.name!r}: a {self.shape} needs {SHAPES[self.shape]}, with decimal points")
        if not all(abs(value) < MAX_COORDINATE for point in self.coordinates for value in point):
            raise ParameterError(f"zone {self.name!r}: coordinates must be finite numbers")
        if is_circle and not self.coordinates[1][0] > 0:
            raise ParameterError(f"zone {self.name!r}: the radius must be positive, got {self.coordinates[1][0]:g}")
        if self.shape == "polygon":
            self._check_polygon()
        if not self.area > 0:
            raise ParameterError(f"zone {self.name!r} has no area: all its corners are on one line")

    def _check_polygon(self) -> None:
        shapely = import_shapely()
        polygon = shapely.Polygon(self.coordinates)
        if not polygon.is_valid and polygon.convex_hull.area > 0:
            reason = str(shapely.is_valid_reason(polygon))
            at = re.search(r"\[(\S+) (\S+?)[ \]]", reason)
            location = f" at ({float(at[1]):g}, {float(at[2]):g})" if at else ""
            raise ParameterError(f"zone {self.name!r} crosses itself{location}; list its corners in order around the border")

    @property
    def area(self) -> float:
        """Area, in the square of `unit`."""
        if self.shape == "circle":
            return float(np.pi * self.coordinates[1][0] ** 2)
        return float(self.geometry(1.0).area)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**asdict(self), "coordinates": [list(point) for point in self.coordinates]}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Zone:
        """Create a zone from the fields of `to_dict`."""
        return cls(**{**fields, "coordinates": tuple(tuple(point) for point in fields["coordinates"])})

    def scale(self, pixels_per_cm: float | None) -> float:
        """Return pixels per unit of this zone.

        Raises
        ------
        MismatchError
            If the zone is in cm and the scale is not known.
        """
        if self.unit == "px":
            return 1.0
        if pixels_per_cm is None:
            location = f" of recording {self.recording!r}" if self.recording else ""
            raise MismatchError(
                f"zone {self.name!r}{location} is in cm, but the scale is not known; add a column pixels_per_cm to recordings.csv"
            )
        return pixels_per_cm

    def geometry(self, scale: float = 1.0) -> Any:
        """Return the zone as a prepared shapely geometry; a circle has 256 corners.

        Parameters
        ----------
        scale : float
            Pixels per unit of the zone; the geometry is in pixels.
        """
        shapely = import_shapely()
        points = [tuple(value * scale for value in point) for point in self.coordinates]
        if self.shape == "circle":
            shape = shapely.Point(points[0]).buffer(points[1][0], quad_segs=64)
        elif self.shape == "rectangle":
            (x0, y0), (x1, y1) = points
            shape = shapely.box(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
        else:
            shape = shapely.Polygon(points)
        shapely.prepare(shape)
        return shape

    def contains(self, points: NDArray[np.float64], pixels_per_cm: float | None = None) -> NDArray[np.bool_]:
        """Return which points (n, 2), in pixels, are inside or on the border; missing points (NaN) are not."""
        scale = self.scale(pixels_per_cm)
        tracked = np.isfinite(points).all(axis=1)
        inside = np.zeros(len(points), dtype=bool)
        if self.shape == "circle":
            inside[tracked] = self._from_center(points[tracked], scale) <= self.coordinates[1][0] * scale
        else:
            inside[tracked] = import_shapely().intersects_xy(self.geometry(scale), points[tracked, 0], points[tracked, 1])
        return inside

    def distance(self, points: NDArray[np.float64], pixels_per_cm: float | None = None) -> NDArray[np.float64]:
        """Return the distance of points (n, 2) from the zone, in pixels; 0 inside, NaN for missing points."""
        scale = self.scale(pixels_per_cm)
        tracked = np.isfinite(points).all(axis=1)
        distance = np.full(len(points), np.nan)
        if self.shape == "circle":
            distance[tracked] = np.maximum(self._from_center(points[tracked], scale) - self.coordinates[1][0] * scale, 0.0)
        else:
            shapely = import_shapely()
            distance[tracked] = shapely.distance(self.geometry(scale), shapely.points(points[tracked]))
        return distance

    def _from_center(self, points: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        x, y = self.coordinates[0]
        return np.asarray(np.hypot(points[:, 0] - x * scale, points[:, 1] - y * scale))


def import_shapely() -> Any:
    """Import shapely, or say how to install it."""
    try:
        import shapely
    except ImportError:
        raise EthobenchError('zones need shapely: pip install "ethobench[stats]"') from None
    return shapely


def read_zones(path: str | Path) -> tuple[Zone, ...]:
    r"""Read the zones of a table such as ``zones.csv``; see the module for its columns.

    Raises
    ------
    FormatError
        Names the row of a zone that is not valid.

    Examples
    --------
    >>> _ = (folder / "zones.csv").write_text("name,shape,coordinates\ncenter,rectangle,100 100; 300 300")
    >>> read_zones(folder / "zones.csv")[0].area
    40000.0
    """
    path = Path(path)
    table = read_table(path)
    table.header = [name.strip().lower() for name in table.header]
    missing = [name for name in COLUMNS[:3] if name not in table.header]
    if missing:
        raise FormatError(path, f"no column {' and no '.join(map(repr, missing))}; zones have: {', '.join(COLUMNS)}", "header")
    zones: list[Zone] = []
    for cells, line in zip(table.rows, table.row_numbers, strict=True):
        row = {name: cell.strip() for name, cell in zip(table.header, cells, strict=True)}
        unit, recording = row.get("unit", "").lower() or "px", row.get("recording", "")
        try:
            zone = Zone(row["name"], row["shape"].lower(), parse_points(row["coordinates"]), unit, recording)
        except ParameterError as error:
            raise FormatError(path, str(error), f"row {line}") from None
        if any((zone.name, zone.recording) == (other.name, other.recording) for other in zones):
            raise FormatError(path, f"duplicate zone {zone.name!r}", f"row {line}")
        zones.append(zone)
    return tuple(zones)


def parse_points(text: str) -> tuple[tuple[float, ...], ...]:
    """Return the points of a text such as ``"0 0; 40 0; 20 35"``.

    Raises
    ------
    ParameterError
        If a point is not made of numbers.
    """
    points = []
    for point in filter(None, (component.strip() for component in text.split(";"))):
        try:
            points.append(tuple(parse_number(value) for value in re.split(r"\s*,\s*|\s+", point)))
        except ValueError:
            raise ParameterError(f"coordinates must be numbers such as '0 0; 40 0; 20 35', got {point!r}") from None
    return tuple(points)


def write_zones(zones: Iterable[Zone], path: str | Path, *, overwrite: bool = False) -> None:
    """Write zones to a table that `read_zones` reads.

    Examples
    --------
    >>> write_zones([Zone("nest", "circle", ((50, 60), (25,)))], folder / "zones.csv")
    >>> read_zones(folder / "zones.csv")
    (Zone(name='nest', shape='circle', coordinates=((50.0, 60.0), (25.0,)), unit='px', recording=''),)
    """
    import csv
    import io

    from ethobench.core.files import write_text

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for zone in zones:
        points = "; ".join(" ".join(repr(value) for value in point) for point in zone.coordinates)
        writer.writerow([zone.name, zone.shape, points, zone.unit, zone.recording])
    write_text(path, buffer.getvalue(), overwrite=overwrite)


def zones_of(recording: Recording, zones: Sequence[Zone] | None = None) -> tuple[Zone, ...]:
    """Return the zones of a recording, checked against its scale and its arena.

    Parameters
    ----------
    recording : Recording
    zones : sequence of Zone, optional
        Of all recordings. Default: those that a study has in ``zones.csv``.

    Raises
    ------
    MismatchError
        If a zone in cm has no scale, or a zone is outside the image or the zone ``arena``.

    Examples
    --------
    >>> from ethobench import Recording
    >>> shared, special = Zone("nest", "circle", ((5, 5), (2,))), Zone("nest", "circle", ((9, 9), (2,)), recording="m2")
    >>> zones_of(Recording("m2"), [shared, special])[0].coordinates[0]
    (9.0, 9.0)
    """
    if zones is None:
        zones = [Zone.from_dict(fields) for fields in recording.metadata.get("zones", ())]
    by_name: dict[str, Zone] = {}
    for zone in zones:
        if zone.recording == recording.id or (not zone.recording and zone.name not in by_name):
            by_name[zone.name] = zone
    selected = tuple(by_name.values())
    if selected:
        _check_arena(recording, selected)
    return selected


def pixels_per_cm(recording: Recording) -> float | None:
    """Return the scale of a recording; None if it is not known."""
    value = recording.metadata.get("pixels_per_cm")
    return float(value) if isinstance(value, (int, float)) and np.isfinite(value) and value > 0 else None


def check_recordings(zones: Sequence[Zone], names: Sequence[str], path: str | Path) -> None:
    """Raise an error if a zone belongs to a recording that does not exist."""
    for zone in zones:
        if zone.recording and zone.recording not in names:
            similar = get_close_matches(zone.recording, names, n=1)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            raise FormatError(path, f"zone {zone.name!r} is of recording {zone.recording!r}, which does not exist{hint}")


def _check_arena(recording: Recording, zones: Sequence[Zone]) -> None:
    shapely = import_shapely()
    per_cm = pixels_per_cm(recording)
    shapes = {zone.name: zone.geometry(zone.scale(per_cm)) for zone in zones}
    width, height = recording.metadata.get("width"), recording.metadata.get("height")
    frame, frame_name = shapes.get(ARENA), "the zone 'arena'"
    if frame is None and isinstance(width, (int, float)) and isinstance(height, (int, float)):
        frame, frame_name = shapely.box(0, 0, width, height), f"the image of {width:g} x {height:g} pixels"
    for name, shape in shapes.items():
        if frame is not None and not shape.intersects(frame):
            x0, y0, x1, y1 = shape.bounds
            raise MismatchError(
                f"zone {name!r} (x {x0:g} to {x1:g}, y {y0:g} to {y1:g} pixels) is outside {frame_name} of recording {recording.id!r}; "
                "are its coordinates in another unit, or of another camera?"
            )
