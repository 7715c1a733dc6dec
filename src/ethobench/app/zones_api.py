"""Zones that are drawn in the page, and their HTTP API.

================================  ===========================================================================================
``GET  /api/recordings/0/zones``  ``{"revision", "file", "recording", "zones", "fixed"}``: the zones that were drawn, and those
                                  of the user's own ``zones.csv`` that apply to this recording, in pixels
``POST /api/zones``               ``{"revision": "...", "zones": [{"name", "shape", "coordinates", "recording"}]}``: replace all
                                  drawn zones; refused if another page changed them since this revision
================================  ===========================================================================================

Drawn zones are saved as ``zones.csv`` in the folder of corrections. The user's own ``zones.csv`` is never changed; a study is loaded with
both.
"""

from __future__ import annotations

import hashlib
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from ethobench.app.project import Project
from ethobench.app.requests import change_route, read_route
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.datasets.zones import ZONES, Zone, parse_points, pixels_per_cm, read_zones, write_zones, zones_of

MAX_ZONES = 500
MAX_NAME_LENGTH = 100
MAX_POINTS = 1000


class ZonesApi:
    """Handlers for the requests of the page for zones.

    Parameters
    ----------
    project : Project
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.path = project.corrections.folder / ZONES
        try:
            drawn = {*self._read()}
        except EthobenchError as error:
            drawn = set()
            project.notes.append(f"drawn zones are not shown: {error}")
        listed = (Zone.from_dict(fields) for each in project.recordings for fields in each.recording.metadata.get("zones", ()))
        self.fixed = tuple(dict.fromkeys(zone for zone in listed if zone not in drawn))

    @property
    def routes(self) -> list[Route]:
        """All routes."""
        return [read_route("/api/recordings/{recording:int}/zones", self.show), change_route("/api/zones", self.save)]

    def show(self, request: Request) -> Any:
        """Return the zones of a recording."""
        return self._payload(request.path_params["recording"])

    def save(self, request: Request, body: dict[str, Any]) -> Any:
        """Replace the drawn zones."""
        zones = self._parse(body.get("zones"))
        with self.project.corrections.locked():
            if body.get("revision") != self._revision():
                raise MismatchError("the zones were changed in another window; they are shown now, draw again")
            write_zones(zones, self.path, overwrite=True)
        return {"revision": self._revision(), "zones": [zone.to_dict() for zone in zones]}

    def _payload(self, index: int) -> dict[str, Any]:
        recording = self.project.recording(index).recording
        return {
            "revision": self._revision(),
            "file": str(self.path),
            "recording": recording.id,
            "zones": [zone.to_dict() for zone in self._read()],
            "fixed": [_in_pixels(zone, pixels_per_cm(recording)) for zone in zones_of(recording, self.fixed)],
        }

    def _revision(self) -> str:
        """Return a value that changes with the content of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16] if self.path.is_file() else ""

    def _read(self) -> tuple[Zone, ...]:
        return read_zones(self.path) if self.path.is_file() else ()

    def _parse(self, rows: object) -> list[Zone]:
        if not isinstance(rows, list) or len(rows) > MAX_ZONES or not all(isinstance(row, dict) for row in rows):
            raise EthobenchError(f"zones must be a list of at most {MAX_ZONES} zones")
        zones: list[Zone] = []
        names = {each.recording.id for each in self.project.recordings}
        for row in rows:
            zone = _parse_zone(row)
            if zone.recording and zone.recording not in names:
                raise EthobenchError(f"zone {zone.name!r} is of recording {zone.recording!r}, which is not open")
            if any((zone.name, zone.recording) == (other.name, other.recording) for other in zones):
                raise EthobenchError(f"there are two zones {zone.name!r}; choose another name")
            if any((zone.name, zone.recording) == (other.name, other.recording) for other in self.fixed):
                raise EthobenchError(f"your own {ZONES} has a zone {zone.name!r}; choose another name")
            zones.append(zone)
        for each in self.project.recordings:
            try:
                zones_of(each.recording, [*self.fixed, *zones])  # a zone outside the image would make the study unreadable
            except MismatchError as error:
                raise EthobenchError(str(error)) from None
        return zones


def _parse_zone(row: dict[str, Any]) -> Zone:
    """Return a zone of a request. Coordinates are lists of numbers, or text as in the file."""
    name, shape, recording = (str(row.get(field, "")).strip() for field in ("name", "shape", "recording"))
    if not name.isprintable() or len(name) > MAX_NAME_LENGTH:
        raise EthobenchError(f"the name of a zone must have at most {MAX_NAME_LENGTH} printable characters")
    coordinates = row.get("coordinates")
    points = parse_points(coordinates) if isinstance(coordinates, str) else coordinates
    if not isinstance(points, list | tuple) or len(points) > MAX_POINTS:
        raise EthobenchError(f"zone {name!r}: coordinates must be a list of at most {MAX_POINTS} points")
    try:
        corners = tuple(tuple(float(value) for value in point) for point in points)
    except (TypeError, ValueError):
        raise EthobenchError(f"zone {name!r}: coordinates must be numbers") from None
    return Zone(name, shape, corners, "px", recording)


def _in_pixels(zone: Zone, per_cm: float | None) -> dict[str, Any]:
    scale = zone.scale(per_cm)
    return {**zone.to_dict(), "unit": "px", "coordinates": [[value * scale for value in point] for point in zone.coordinates]}
