"""Recording conditions of 19 labs, for `synthetic/labs`: rate, body parts, number of mice, scale, arena and labeled behaviors of videos.

The conditions are those of the MABe 2025 challenge. Each video is read from the metadata table of the challenge (``mabe2025/train.csv`` in
the data folder) if it is there. Otherwise they come from `BUILT_IN`, which has the typical conditions of each lab.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ethobench.core.errors import FormatError

SELF = "self"
MAX_MICE = 4

SEVEN = ("ear_left", "ear_right", "hip_left", "hip_right", "neck", "nose", "tail_base")
LATERAL = ("body_center", "ear_left", "ear_right", "lateral_left", "lateral_right", "nose", "tail_base")
LATERAL_TIP = (*LATERAL, "tail_tip")
HEADPIECE = tuple(f"headpiece_{z}{x}{y}" for z in ("bottom", "top") for x in ("back", "front") for y in ("left", "right"))
NECK_TAIL = (*LATERAL[:5], "neck", "nose", "tail_base", "tail_midpoint", "tail_tip")
SKELETONS: tuple[tuple[str, ...], ...] = (
    SEVEN,
    LATERAL,
    LATERAL_TIP,
    ("ear_left", "ear_right", "nose", "tail_base", "tail_tip"),
    (
        *LATERAL[:3],
        *("hip_left", "hip_right", "lateral_left", "lateral_right", "nose", "spine_1", "spine_2", "tail_base"),
        *("tail_middle_1", "tail_middle_2", "tail_tip"),
    ),
    ("body_center", "ear_left", "ear_right", "nose", "tail_base"),
    ("ear_left", "ear_right", "head", "tail_base"),
    NECK_TAIL,
    (*NECK_TAIL[:3], *HEADPIECE, *NECK_TAIL[3:]),
)
"""The nine sets of body parts of the challenge, by number of videos."""


@dataclass(frozen=True)
class Video:
    """Recording conditions of one video.

    Attributes
    ----------
    id, lab : str
    rate : float
        Frames per second.
    seconds : float
        Duration.
    pixels_per_cm : float
    width, height : float
        Size of the picture in pixels.
    arena_width, arena_height : float
        Size of the arena in cm.
    arena_shape : str
    mice : int
        Number of tracked mice.
    keypoints : tuple of str
        Tracked body parts.
    labeled : tuple of (str, str, str)
        Labeled behaviors as (agent, target, action); the target of a behavior on oneself is "self". Empty for unlabeled videos.
    tracker : str
    """

    id: str
    lab: str
    rate: float
    seconds: float
    pixels_per_cm: float
    width: float
    height: float
    arena_width: float
    arena_height: float
    arena_shape: str
    mice: int
    keypoints: tuple[str, ...]
    labeled: tuple[tuple[str, str, str], ...]
    tracker: str = ""

    @property
    def actions(self) -> tuple[str, ...]:
        """Labeled actions, sorted."""
        return tuple(sorted({action for *_, action in self.labeled}))


def read_videos(path: Path) -> list[Video]:
    """Read the videos of a metadata table of the challenge.

    Raises
    ------
    FormatError
        If a column is missing, a value is not a number above 0 (a scale of 0, for example), or a list is not valid JSON. The message names
        the row.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        videos = [_video(path, row, f"row {number}") for number, row in enumerate(reader, 2)]
    if not videos:
        raise FormatError(path, "no videos below the header", "row 1")
    return videos


def _video(path: Path, row: dict[str, str], location: str) -> Video:
    try:
        numbers = {
            name: float(row[column])
            for name, column in {
                "rate": "frames_per_second",
                "seconds": "video_duration_sec",
                "pixels_per_cm": "pix_per_cm_approx",
                "width": "video_width_pix",
                "height": "video_height_pix",
                "arena_width": "arena_width_cm",
                "arena_height": "arena_height_cm",
            }.items()
        }
        keypoints = tuple(json.loads(row["body_parts_tracked"]))
        labeled = parse_labeled(json.loads(row["behaviors_labeled"] or "[]"))
        mice = sum(any(row[f"mouse{n}_{field}"] for field in ("strain", "color", "id")) for n in range(1, MAX_MICE + 1))
        texts = {"id": row["video_id"], "lab": row["lab_id"], "arena_shape": row["arena_shape"], "tracker": row["tracking_method"]}
    except KeyError as error:
        raise FormatError(path, f"no column {error.args[0]!r}", location) from None
    except (TypeError, ValueError) as error:
        raise FormatError(path, f"invalid value ({error})", location) from None
    for name, value in numbers.items():
        if not (math.isfinite(value) and value > 0):
            raise FormatError(path, f"{name} must be > 0, got {value:g}", location)
    return Video(mice=mice or 2, keypoints=keypoints, labeled=labeled, **numbers, **texts)  # type: ignore[arg-type]


def parse_labeled(items: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """Return labeled behaviors as (agent, target, action), without duplicates; names may be in single quotes.

    Examples
    --------
    >>> parse_labeled(["mouse1,mouse2,sniff", "'mouse1','mouse2','sniff'", "mouse1,self,rear"])
    (('mouse1', 'mouse2', 'sniff'), ('mouse1', 'self', 'rear'))
    """
    entries: dict[tuple[str, str, str], None] = {}
    for item in items:
        names = [name.strip() for name in item.replace("'", "").split(",")]
        if len(names) != 3 or not all(names):
            raise ValueError(f"expected an entry such as 'mouse1,mouse2,sniff', got {item!r}")
        agent, target, action = names
        entries[agent, SELF if target == agent else target, action] = None
    return tuple(entries)


@dataclass(frozen=True)
class LabProfile:
    """Typical conditions of a lab.

    Attributes
    ----------
    name : str
    videos : int
        Number of videos in the challenge.
    seconds, pixels_per_cm : float
    rates : tuple of float
        The videos take turns.
    skeletons : tuple of int
        Indices into `SKELETONS`; the videos take turns.
    mice : tuple of int
        The videos take turns.
    arena : tuple of float
        Width and height in cm.
    directed, on_self : str
        Actions, separated by spaces.
    agents : int
        Number of mice whose behavior is labeled.
    shape, tracker : str
    """

    name: str
    videos: int
    seconds: float
    pixels_per_cm: float
    rates: tuple[float, ...]
    skeletons: tuple[int, ...]
    mice: tuple[int, ...]
    arena: tuple[float, float]
    directed: str
    on_self: str = ""
    agents: int = 1
    shape: str = "rectangular"
    tracker: str = "DeepLabCut"

    def video(self, number: int) -> Video:
        """Return the conditions of the video with this number."""
        mice = self.mice[number % len(self.mice)]
        names = [f"mouse{n + 1}" for n in range(mice)]
        agents = names[: self.agents]
        labeled = [(a, b, action) for a in agents for b in names if a != b for action in self.directed.split()]
        labeled += [(a, SELF, action) for a in agents for action in self.on_self.split()]
        return Video(
            id=f"{self.name}-{number + 1:03d}",
            lab=self.name,
            rate=self.rates[number % len(self.rates)],
            seconds=self.seconds,
            pixels_per_cm=self.pixels_per_cm,
            width=round(1.2 * self.arena[0] * self.pixels_per_cm),
            height=round(1.2 * self.arena[1] * self.pixels_per_cm),
            arena_width=self.arena[0],
            arena_height=self.arena[1],
            arena_shape=self.shape,
            mice=mice,
            keypoints=SKELETONS[self.skeletons[number % len(self.skeletons)]],
            labeled=tuple(labeled),
            tracker=self.tracker,
        )


_SNIFFS = "sniff sniffbody sniffface sniffgenital"

BUILT_IN: tuple[LabProfile, ...] = (
    LabProfile(
        *("AdaptableSnail", 17, 1800, 16.0, (30.0, 25.0), (7, 8), (4, 3), (60.0, 60.0)),
        *("approach attack avoid chase chaseattack submit", "rear", 4, "square", "SLEAP"),
    ),
    LabProfile("BoisterousParrot", 8, 19800, 5.5, (30.0,), (5,), (2,), (45.0, 45.0), "shepherd", "", 2, "square"),
    LabProfile("CRIM13", 20, 600, 14.4, (25.0,), (0,), (2,), (35.0, 15.0), "approach attack disengage mount sniff", "rear selfgroom"),
    LabProfile(
        *("CalMS21_supplemental", 297, 400, 18.33, (30.0,), (0,), (2,), (35.0, 15.0)),
        f"attack mount approach attemptmount dominancemount intromit {_SNIFFS}",
        tracker="MARS",
    ),
    LabProfile(
        *("CalMS21_task1", 101, 400, 18.33, (30.0,), (0,), (2,), (35.0, 15.0)),
        *(f"approach attack intromit mount {_SNIFFS}", "genitalgroom"),
        tracker="MARS",
    ),
    LabProfile("CalMS21_task2", 76, 600, 18.33, (30.0,), (0,), (2,), (35.0, 15.0), "attack mount sniff", tracker="MARS"),
    LabProfile(
        *("CautiousGiraffe", 10, 600, 21.0, (25.0,), (1,), (2,), (30.0, 30.0)),
        *("approach chase escape reciprocalsniff sniffbody sniffgenital sniff", "", 1, "square"),
    ),
    LabProfile("DeliriousFly", 6, 900, 16.0, (60.01, 60.0), (2,), (2,), (38.0, 18.5), "attack dominance sniff", "", 2),
    LabProfile(
        *("ElegantMink", 19, 1800, 18.2, (30.0,), (0,), (2,), (33.0, 22.0)),
        *("attack intromit mount sniff sniffgenital attemptmount allogroom ejaculate", "rear selfgroom"),
    ),
    LabProfile(
        *("GroovyShrew", 17, 1160, 11.1, (30.0,), (6,), (2,), (33.0, 19.0)),
        *("approach attemptmount defend escape intromit mount sniff sniffgenital", "climb dig rear rest run selfgroom", 2),
    ),
    LabProfile(
        *("InvincibleJellyfish", 33, 570, 32.0, (30.0,), (1,), (2,), (28.0, 18.0)),
        *("allogroom attack dominancegroom escape sniff sniffgenital", "dig selfgroom"),
    ),
    LabProfile("JovialSwallow", 52, 900, 15.3, (10.0,), (0,), (2,), (15.0, 35.0), "attack chase sniff"),
    LabProfile(
        *("LyricalHare", 24, 300, 10.9, (120.0, 120.02), (3,), (2,), (30.8, 22.2)),
        *("approach attack defend escape sniff", "freeze rear", 2),
    ),
    LabProfile(
        *("NiftyGoldfinch", 11, 1180, 13.5, (30.0,), (5,), (2,), (33.0, 19.0)),
        "approach attack chase defend escape flinch follow sniff sniffface sniffgenital tussle",
        *("biteobject climb dig exploreobject rear selfgroom", 2),
    ),
    LabProfile(
        *("PleasantMeerkat", 36, 600, 15.8, (45.0,), (2,), (2,), (120.0, 120.0)),
        *("attack chase escape follow", "", 2, "split rectangular", "SLEAP"),
    ),
    LabProfile("ReflectiveManatee", 20, 600, 15.0, (25.0,), (0,), (2,), (35.0, 20.0), "attack sniff", "", 2),
    LabProfile("SparklingTapir", 69, 300, 24.0, (30.0, 50.0, 60.0, 120.0), (0,), (2,), (19.0, 28.5), "attack defend escape mount"),
    LabProfile(
        *("TranquilPanther", 25, 900, 13.7, (30.0,), (0,), (2,), (35.0, 20.0)),
        *("intromit mount sniff sniffgenital", "rear selfgroom"),
    ),
    LabProfile(
        *("UppityFerret", 21, 600, 12.5, (24.99, 24.98, 24.62), (4,), (2,), (38.0, 38.0)),
        *("intromit mount reciprocalsniff sniff sniffgenital", "huddle rear selfgroom", 2, "circular", "SLEAP"),
    ),
)
"""The 19 labs of the challenge."""


def built_in_videos() -> list[Video]:
    """Return the videos of `BUILT_IN`: as many for each lab as in the challenge."""
    return [profile.video(number) for profile in BUILT_IN for number in range(profile.videos)]


def select_videos(videos: Sequence[Video], per_lab: int | None) -> list[Video]:
    """Select videos of each lab, so that few videos cover its skeletons, rates and actions; unlabeled videos come last.

    Parameters
    ----------
    videos : sequence of Video
    per_lab : int, optional
        Number of videos of each lab. Default: all.
    """
    labs: dict[str, list[Video]] = {}
    for video in videos:
        labs.setdefault(video.lab, []).append(video)
    return [video for members in labs.values() for video in (members if per_lab is None else _cover(members, per_lab))]


def _cover(videos: list[Video], count: int) -> list[Video]:
    """Select the video with most conditions that are not covered, again and again; start over when all are covered."""
    conditions: dict[str, set[object]] = {v.id: {v.keypoints, v.rate, *((action, v.mice) for action in v.actions)} for v in videos}
    remaining, selected = [*videos], list[Video]()
    missing: set[object] = set()
    while remaining and len(selected) < count:
        available = set[object]().union(*(conditions[v.id] for v in remaining))
        missing = (missing & available) or available
        n_new = [(bool(v.labeled), len(conditions[v.id] & missing)) for v in remaining]
        best = remaining.pop(n_new.index(max(n_new)))
        selected.append(best)
        missing = missing - conditions[best.id]
    return sorted(selected, key=videos.index)
