"""Synthetic mice in the recording conditions of 19 labs, annotated in the style of each lab.

A random script decides which mouse does what to whom, simulated mice perform it, and each lab annotates what it lists, by its own criteria.
A criterion is the behavior of the script together with a limit of a measured quantity, such as the distance of the nose or the speed. Labs
differ in their limits, reaction times and shortest bouts, and in what they include: a lab that lists "sniff" but not "sniffface" calls both
"sniff". Only the behaviors that a video lists are observed. Positions are in pixels and contain errors of a tracker: jitter, missing
keypoints, swapped identities, and mice that are missing for a long time.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Ethogram, Observed, Poses, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import ParameterError
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.datasets.fetch import data_folder
from ethobench.datasets.lab_profiles import SELF, Video, built_in_videos, read_videos, select_videos
from ethobench.datasets.synthetic_signals import State, draw_dropouts, smooth

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]

REVISION = 1
"""Increased when the same arguments give other data."""

SIZES: dict[str, tuple[int | None, float]] = {"small": (4, 60.0), "medium": (12, 180.0), "full": (None, 600.0)}
"""Number of videos of each lab (None: all) and maximum duration in seconds, by size."""

TABLE = "mabe2025/train.csv"
"""Metadata of the challenge in the data folder."""

BODY_LENGTH = 8.5
"""Mean distance of tail base and nose in cm."""

NOSE, TAIL_BASE = 0.55, -0.5
BODY = {
    "nose": (NOSE, 0.0),
    "head": (0.4, 0.0),
    "ear_left": (0.38, 0.13),
    "ear_right": (0.38, -0.13),
    "neck": (0.25, 0.0),
    "spine_1": (0.12, 0.0),
    "body_center": (0.0, 0.0),
    "lateral_left": (-0.02, 0.18),
    "lateral_right": (-0.02, -0.18),
    "spine_2": (-0.2, 0.0),
    "hip_left": (-0.3, 0.16),
    "hip_right": (-0.3, -0.16),
    "tail_base": (TAIL_BASE, 0.0),
    "tail_middle_1": (-0.75, 0.0),
    "tail_midpoint": (-0.88, 0.0),
    "tail_middle_2": (-1.0, 0.0),
    "tail_tip": (-1.25, 0.0),
    **{
        f"headpiece_{z}{x}{y}": (0.4 + (0.06 if x == "front" else -0.06), (0.05 if y == "left" else -0.05) * (1.2 if z == "top" else 1.0))
        for z in ("bottom", "top")
        for x in ("back", "front")
        for y in ("left", "right")
    },
}
"""Positions of body parts of a mouse of unit length that faces along x."""


# What mice do


@dataclass(frozen=True)
class Movement:
    """How a mouse moves during a behavior.

    Attributes
    ----------
    seconds : float
        Mean bout duration.
    share : float
        Relative frequency.
    speed : float
        Speed in cm/s of the mouse, or of the one that leads.
    nose : complex, optional
        Where the nose of the follower is in the frame of the leader, in cm. None: nobody follows.
    turn : float
        Heading of the follower relative to that of the leader, in radians.
    reach : float
        Time constant of closing in, in seconds.
    agent_leads : bool
        Whether the target follows the agent.
    mutual : bool
        Whether both mice show the behavior.
    stretch, bend : float
        Apparent length of the body, and angle of the head in radians.
    wiggle, thrust, frequency : float
        Oscillation of the head (radians) and of the body (cm), and its frequency in Hz.
    """

    seconds: float
    share: float
    speed: float
    nose: complex | None = None
    turn: float = 0.0
    reach: float = 0.5
    agent_leads: bool = False
    mutual: bool = False
    stretch: float = 1.0
    bend: float = 0.0
    wiggle: float = 0.0
    thrust: float = 0.0
    frequency: float = 0.0


DIRECTED = {
    "allogroom": Movement(4, 0.6, 0, 2.5 + 1.2j, -1.0, wiggle=0.25, frequency=5),
    "approach": Movement(1.5, 1, 3, -8 + 3j, 0.2, reach=1.0),
    "attack": Movement(1.8, 1, 10, 1j, 1.2, reach=0.4, wiggle=0.6, thrust=0.8, frequency=7),
    "attemptmount": Movement(1.2, 0.6, 5, -1, 0.3),
    "avoid": Movement(1.5, 0.8, 7, -15, 0.0, agent_leads=True),
    "chase": Movement(2, 1, 28, -6, 0.0, reach=0.6),
    "chaseattack": Movement(1.5, 0.6, 24, -3.5 + 0.5j, 0.0, reach=0.3, wiggle=0.4, frequency=8),
    "defend": Movement(1.5, 0.8, 0.5, 6 + 1j, 2.8, agent_leads=True, stretch=0.6),
    "disengage": Movement(1.2, 0.8, 13),
    "dominance": Movement(2.5, 0.8, 0, 3, 0.6, stretch=0.9),
    "dominancegroom": Movement(2.5, 0.6, 0, 3 + 0.6j, -2.0, wiggle=0.35, frequency=4),
    "dominancemount": Movement(2.5, 0.6, 1, 3, 3.0, thrust=0.3, frequency=3),
    "ejaculate": Movement(4, 0.2, 0, 0.5, 0.0, stretch=0.8),
    "escape": Movement(1.5, 1, 28, -7, 0.0, agent_leads=True),
    "flinch": Movement(0.6, 0.6, 3, -5 + 2j, 0.0, reach=0.2, agent_leads=True, stretch=0.75),
    "follow": Movement(2.5, 0.8, 9, -7, 0.0),
    "huddle": Movement(6, 0.6, 0, 4.5 + 3j, 0.0, mutual=True, stretch=0.85),
    "intromit": Movement(4, 0.7, 0.5, 1, 0.0, thrust=0.5, frequency=2.5),
    "mount": Movement(3, 1, 1.5, 1.5, 0.0),
    "reciprocalsniff": Movement(1.5, 0.8, 0.3, 5.4, np.pi, mutual=True, wiggle=0.1, frequency=6),
    "shepherd": Movement(3, 1, 10, -3 + 2j, 0.5),
    "sniffbody": Movement(2, 1, 1, 2j, -1.4, wiggle=0.1, frequency=6),
    "sniffface": Movement(1.5, 1, 1, 5.2 + 0.6j, 2.4, wiggle=0.1, frequency=6),
    "sniffgenital": Movement(2, 1, 2, -4.8, 0.0, wiggle=0.1, frequency=6),
    "submit": Movement(2, 0.8, 0, 1 + 1j, -1.0, agent_leads=True, stretch=0.7),
    "tussle": Movement(1.5, 0.6, 4, 2, 2.6, reach=0.3, mutual=True, wiggle=0.6, thrust=0.6, frequency=6),
}
"""Behaviors of one mouse towards another."""

EXPLORE = "explore"
ON_SELF = {
    EXPLORE: Movement(5, 1, 5),
    "biteobject": Movement(2, 0.3, 0, stretch=1.1, wiggle=0.15, frequency=10),
    "climb": Movement(2.5, 0.3, 0.5, stretch=0.6, wiggle=0.3, frequency=2),
    "dig": Movement(3, 0.3, 0.3, wiggle=0.25, thrust=0.2, frequency=8),
    "exploreobject": Movement(2.5, 0.3, 1, stretch=1.15, wiggle=0.4, frequency=1),
    "freeze": Movement(3, 0.3, 0, stretch=1.05),
    "genitalgroom": Movement(2.5, 0.3, 0, stretch=0.75, bend=1.6, wiggle=0.15, frequency=5),
    "rear": Movement(2, 0.4, 1, stretch=0.55),
    "rest": Movement(6, 0.2, 0, stretch=0.8, bend=0.6),
    "run": Movement(1.5, 0.3, 25),
    "selfgroom": Movement(4, 0.4, 0, stretch=0.7, bend=0.5, wiggle=0.3, frequency=6),
}
"""Behaviors of a mouse on its own."""

MOVEMENTS = {**ON_SELF, **DIRECTED}
CODE = {name: code for code, name in enumerate(MOVEMENTS)}

INCLUDED = {
    "sniff": ("sniffface", "sniffbody", "sniffgenital", "reciprocalsniff"),
    "mount": ("mount", "attemptmount", "intromit", "dominancemount", "ejaculate"),
}
"""Movements that a broad action includes, except those that the video lists by name."""

ABSORBED = {
    "approach": ("follow",),
    "attack": ("chaseattack", "tussle", "chase"),
    "chase": ("follow",),
    "defend": ("submit",),
    "escape": ("avoid", "flinch"),
    "rest": ("freeze", "huddle"),
    "selfgroom": ("genitalgroom",),
    "sniff": ("allogroom",),
}
"""Movements that a lab may include in an action, depending on its style, if it does not list them."""

LIMITS = {
    "approach": ("closing", 6.0),
    "attack": ("distance", -8.0),
    "chase": ("speed", 12.0),
    "escape": ("speed", 10.0),
    "follow": ("speed", 3.0),
    "mount": ("distance", -6.0),
    "rest": ("speed", -1.5),
    "run": ("speed", 13.0),
    "shepherd": ("speed", 4.0),
    "sniff": ("nose", -1.8),
    "sniffbody": ("nose", -2.2),
    "sniffface": ("nose", -2.0),
    "sniffgenital": ("nose", -1.8),
}
"""Measured quantity (cm or cm/s) and its limit by action: a minimum, or a maximum if negative."""


# How labs annotate


@dataclass(frozen=True)
class LabStyle:
    """Criteria of a lab.

    Attributes
    ----------
    onset : float
        How complete a movement must be to count, from 0 to 1.
    delay : float
        Reaction time in seconds.
    shortest, gap : float
        Shortest bout and longest gap within a bout, in seconds.
    factors : mapping of str to float
        By action: factor of its limit in `LIMITS`.
    absorbed : mapping of str to tuple of str
        By action: the movements of `ABSORBED` that the lab includes.

    Examples
    --------
    >>> lab_style("CRIM13") == lab_style("CRIM13"), lab_style("CRIM13") == lab_style("LyricalHare")
    (True, False)
    """

    onset: float
    delay: float
    shortest: float
    gap: float
    factors: dict[str, float] = field(default_factory=dict)
    absorbed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def movements(self, action: str, listed: Sequence[str]) -> tuple[str, ...]:
        """Return the movements that the lab annotates as an action, if a video lists these actions."""
        names = INCLUDED.get(action, (action,))
        names = tuple(name for name in names if name == action or name not in listed) or names
        return (*names, *(name for name in self.absorbed.get(action, ()) if name not in listed and name not in names))


def lab_style(lab: str) -> LabStyle:
    """Return the style of a lab, which depends on its name only."""
    generator = np.random.default_rng(zlib.crc32(lab.encode()))
    onset, delay, shortest, gap = generator.uniform([0.3, -0.1, 0.1, 0.1], [0.8, 0.4, 0.5, 0.5])
    factors = {action: float(np.exp(generator.normal(0, 0.25))) for action in LIMITS}
    absorbed = {action: tuple(name for name in names if generator.random() < 0.4) for action, names in ABSORBED.items()}
    return LabStyle(float(onset), float(delay), float(shortest), float(gap), factors, absorbed)


# Scripts


@dataclass(frozen=True)
class Script:
    """Who does what to whom.

    Attributes
    ----------
    directed : array (n_frames,)
        Code of the directed movement, -1 for none.
    agent, target : arrays (n_frames,)
        Mice of the directed movement, -1 for none.
    side : array (n_frames,)
        -1 where the directed movement is mirrored, else 1.
    on_self : array (n_frames, n_mice)
        Code of each mouse's movement on its own.
    """

    directed: NDArray[np.int64]
    agent: NDArray[np.int64]
    target: NDArray[np.int64]
    side: NDArray[np.int64]
    on_self: NDArray[np.int64]

    def performs(self, name: str, agent: int, target: int | None) -> Masks:
        """Return the frames in which a mouse performs a movement (n_frames,); towards any mouse if `target` is None."""
        if name in ON_SELF:
            busy = (self.agent == agent) | (self.target == agent)
            return np.asarray((self.on_self[:, agent] == CODE[name]) & ~busy)
        pairs = (self.agent == agent) & ((self.target == target) if target is not None else True)
        if MOVEMENTS[name].mutual:
            pairs = pairs | (self.target == agent) & ((self.agent == target) if target is not None else True)
        return np.asarray((self.directed == CODE[name]) & pairs)


def write_script(video: Video, n_frames: int, generator: np.random.Generator) -> Script:
    """Draw a script in which the behaviors that a video lists are frequent."""
    from ethobench.datasets.synthetic import sample_codes  # imports this module for the dataset

    style = lab_style(video.lab)
    needed = {name for action in video.actions for name in style.movements(action, video.actions)} | {"sniffbody", "approach"}
    names = [name for name in DIRECTED if name in needed] if video.mice > 1 else []
    busy = sum(DIRECTED[name].share for name in names)
    states = (State("none", 4.0, 1.5, max(busy, 1.0)), *(State(n, DIRECTED[n].seconds, 3.0, DIRECTED[n].share) for n in names))
    drawn = sample_codes(states, n_frames, video.rate, generator) if names else np.zeros(n_frames, dtype=np.int64)
    runs = iv.encode_runs(drawn)
    lengths = runs.stop - runs.start
    pairs = [(a, b) for a in range(video.mice) for b in range(video.mice) if a != b]
    listed = [(_mouse_index(a), _mouse_index(b)) for a, b, _ in video.labeled if b != SELF]
    focus = [pair for pair in dict.fromkeys(listed) if pair in pairs] or pairs
    chosen = [_draw(focus if generator.random() < 0.8 else pairs, generator) for _ in lengths]
    codes = np.array([-1, *(CODE[name] for name in names)])[drawn]
    agent, target = (np.where(codes < 0, -1, np.repeat([pair[i] for pair in chosen], lengths)) for i in (0, 1))
    side = np.repeat(generator.choice([-1, 1], len(lengths)), lengths)

    alone = [EXPLORE, *(name for name in ON_SELF if name in needed)]
    own_states = tuple(State(n, ON_SELF[n].seconds, 3.0, ON_SELF[n].share) for n in alone)
    own_codes = np.array([CODE[name] for name in alone])
    on_self = [
        own_codes[sample_codes(own_states, n_frames, video.rate, generator)] if len(alone) > 1 else np.full(n_frames, own_codes[0])
        for _ in range(video.mice)
    ]
    return Script(codes, agent, target, side, np.stack(on_self, axis=1))


def _draw(pairs: Sequence[tuple[int, int]], generator: np.random.Generator) -> tuple[int, int]:
    return pairs[int(generator.integers(len(pairs)))] if pairs else (-1, -1)


def _mouse_index(name: str) -> int:
    number = name.removeprefix("mouse")
    return int(number) - 1 if number.isdecimal() else -1


# Movement


class Motion:
    """True positions of mice that follow a script, in cm from the center of the arena.

    Attributes
    ----------
    script : Script
    center : array of complex (n_frames, n_mice)
    heading : array (n_frames, n_mice)
        In radians.
    length : array (n_mice,)
        Body length in cm.
    """

    def __init__(self, video: Video, n_frames: int, seed: np.random.SeedSequence) -> None:
        generator = np.random.default_rng(seed)
        self.video, self.rate = video, video.rate
        self.script = script = write_script(video, n_frames, generator)
        self.length = BODY_LENGTH * np.exp(generator.normal(0, 0.07, video.mice))
        self.pace = np.exp(generator.normal(0, 0.15, video.mice))
        self.movement = self._movements()
        paths = [_path(video, self._speed(mouse), generator) for mouse in range(video.mice)]
        self.center = np.stack([path[0] for path in paths], axis=1)
        self.heading = np.stack([path[1] for path in paths], axis=1)
        self._follow(script)
        self._set_postures(generator)

    def _movements(self) -> NDArray[np.int64]:
        """Return the code of the movement that each mouse shows (n_frames, n_mice); the other mouse of a directed movement explores."""
        script = self.script
        codes = script.on_self.copy()
        mutual = np.array([movement.mutual for movement in MOVEMENTS.values()])[script.directed] & (script.directed >= 0)
        for mouse in range(codes.shape[1]):
            acts = (script.agent == mouse) | ((script.target == mouse) & mutual)
            codes[script.target == mouse, mouse] = CODE[EXPLORE]
            codes[acts, mouse] = script.directed[acts]
        return codes

    def _speed(self, mouse: int) -> Floats:
        """Return the speed of a mouse along its path (n_frames,); followers do not advance on their path."""
        script = self.script
        speeds = np.array([movement.speed for movement in MOVEMENTS.values()])
        follows_nobody = np.array([movement.nose is None for movement in MOVEMENTS.values()])
        agent_leads = np.array([movement.agent_leads for movement in MOVEMENTS.values()]) | follows_nobody
        speed = speeds[script.on_self[:, mouse]]
        busy = script.directed >= 0
        leads = np.where(agent_leads[script.directed], script.agent, script.target) == mouse
        takes_part = busy & ((script.agent == mouse) | (script.target == mouse))
        speed = np.where(takes_part, np.where(leads, speeds[script.directed], 0.0), speed)
        return smooth(speed * self.pace[mouse], _ease(0.15, self.rate))

    def _follow(self, script: Script) -> None:
        """Move followers to their place beside the leader; afterwards they return to their path gradually."""
        n_mice = self.center.shape[1]
        path, course = self.center.copy(), self.heading.copy()
        shift, turned = np.zeros(n_mice, dtype=complex), np.zeros(n_mice)
        key = (script.directed + 1) * 64 + (script.agent + 1) * 8 + script.target + 1
        runs = iv.encode_runs(key)
        for start, stop in zip(runs.start.tolist(), runs.stop.tolist(), strict=True):
            frames = slice(start, stop)
            elapsed = np.arange(1, stop - start + 1)[:, None] / self.rate
            self.center[frames] = path[frames] + shift * np.exp(-elapsed / 1.5)
            self.heading[frames] = course[frames] + turned * np.exp(-elapsed / 0.5)
            if script.directed[start] >= 0:
                self._place_follower(script, frames, path[start] + shift, course[start] + turned)
            shift = self.center[stop - 1] - path[stop - 1]
            turned = np.angle(np.exp(1j * (self.heading[stop - 1] - course[stop - 1])))

    def _place_follower(self, script: Script, frames: slice, center: NDArray[np.complex128], heading: Floats) -> None:
        movement = list(MOVEMENTS.values())[script.directed[frames.start]]
        if movement.nose is None:
            return
        leader, follower = int(script.target[frames.start]), int(script.agent[frames.start])
        if movement.agent_leads:
            leader, follower = follower, leader
        side = int(script.side[frames.start])
        turn, nose = movement.turn * side, complex(movement.nose.real, movement.nose.imag * side)
        offset = nose - NOSE * self.length[follower] * np.exp(1j * turn)
        # the smoothed heading keeps a follower from being swung around when the leader turns
        beside = self.center[frames, leader] + np.exp(1j * smooth(self.heading[frames, leader], _ease(0.4, self.rate))) * offset
        wall = 0.45 * np.array([self.video.arena_width, self.video.arena_height])
        goal = np.clip(beside.real, -wall[0], wall[0]) + 1j * np.clip(beside.imag, -wall[1], wall[1])
        elapsed = np.arange(1, len(goal) + 1) / self.rate
        gap = (center[follower] - goal[0]) * np.exp(-elapsed / movement.reach)
        distance = np.abs(gap)
        facing = np.clip((distance - 2) / 6, 0, 1)
        direction = (1 - facing) * np.exp(1j * (self.heading[frames, leader] + turn)) - facing * gap / np.maximum(distance, 1e-9)
        course = np.unwrap(np.angle(direction))
        turned = np.angle(np.exp(1j * (heading[follower] - course[0])))
        self.center[frames, follower] = goal + gap
        self.heading[frames, follower] = course + turned * np.exp(-elapsed / 0.15)

    def _set_postures(self, generator: np.random.Generator) -> None:
        """Set apparent length and bend of each body, and add oscillations."""
        movements = list(MOVEMENTS.values())
        names = ("stretch", "bend", "wiggle", "thrust", "frequency")
        tables = {name: np.array([getattr(movement, name) for movement in movements]) for name in names}
        n_frames, n_mice = self.center.shape
        self.stretch, self.bend = np.ones((n_frames, n_mice)), np.zeros((n_frames, n_mice))
        ease = _ease(0.15, self.rate)
        for mouse in range(n_mice):
            codes = self.movement[:, mouse]
            runs = iv.encode_runs(codes)
            side = np.repeat(generator.choice([-1.0, 1.0], len(runs.start)), runs.stop - runs.start)
            phase = 2 * np.pi * (np.cumsum(tables["frequency"][codes]) / self.rate + generator.random())
            sway = 0.08 * smooth(generator.standard_normal(n_frames) * np.sqrt(self.rate), _ease(0.5, self.rate))
            self.stretch[:, mouse] = smooth(tables["stretch"][codes], ease)
            self.bend[:, mouse] = smooth(side * tables["bend"][codes], ease) + smooth(tables["wiggle"][codes], ease) * np.sin(phase) + sway
            self.center[:, mouse] += smooth(tables["thrust"][codes], ease) * np.cos(phase) * np.exp(1j * self.heading[:, mouse])

    def points(self, mouse: int, names: Sequence[str]) -> NDArray[np.complex128]:
        """Return body parts of a mouse (n_frames, n_names)."""
        along, across = np.array([BODY[name] if name in BODY else BODY["body_center"] for name in names]).T
        in_front = np.maximum(along, 0) / NOSE
        body = self.stretch[:, mouse, None] * along * np.exp(1j * self.bend[:, mouse, None] * in_front) + 1j * across
        return np.asarray(self.center[:, mouse, None] + self.length[mouse] * np.exp(1j * self.heading[:, mouse, None]) * body)

    @cached_property
    def speed(self) -> Floats:
        """Speed of each mouse in cm/s (n_frames, n_mice)."""
        if len(self.center) < 2:
            return np.zeros(self.center.shape)
        ease = _ease(0.15, self.rate)
        step = np.abs(np.gradient(self.center, axis=0)) * self.rate
        return np.stack([smooth(step[:, mouse], ease) for mouse in range(step.shape[1])], axis=1)

    def measure(self, quantity: str, action: str, agent: int, target: int | None) -> Floats:
        """Return a quantity of `LIMITS` (n_frames,)."""
        if quantity == "speed" or target is None:
            return self.speed[:, agent]
        distance = np.abs(self.center[:, agent] - self.center[:, target])
        if quantity == "distance":
            return distance
        if quantity == "closing":
            approach = -np.gradient(distance) * self.rate if len(distance) > 1 else np.zeros(len(distance))
            return smooth(approach, _ease(0.15, self.rate))
        nose = self.points(agent, ["nose"])
        parts = {"sniffface": ["nose", "head"], "sniffbody": ["neck", "body_center", "lateral_left", "lateral_right"]}
        parts["sniffgenital"] = ["tail_base"]
        every = [name for names in parts.values() for name in names]
        return np.asarray(np.abs(self.points(target, parts.get(action, every)) - nose).min(axis=1))


def _ease(seconds: float, rate: float) -> float:
    """Return the weight of the newest frame of an exponential filter with this time constant."""
    return float(1 - np.exp(-1 / (seconds * rate)))


def _path(video: Video, speed: Floats, generator: np.random.Generator) -> tuple[NDArray[np.complex128], Floats]:
    """Draw a smooth curve in the arena and walk along it at this speed: positions in cm and headings (n_frames,)."""
    half = 0.42 * np.array([video.arena_width, video.arena_height])
    distance = np.cumsum(speed) / video.rate
    n_nodes, total = 200, float(distance[-1]) if len(distance) else 0.0
    while True:
        noise = generator.standard_normal((n_nodes, 2))
        steps = np.stack([smooth(smooth(noise[:, axis], 1 / 12), 1 / 12) for axis in (0, 1)], axis=1)
        curve = 6.0 * steps
        radius = np.hypot(*curve.T)[:, None]
        curve = half * (curve / np.sqrt(1 + radius**2) if video.arena_shape == "circular" else np.tanh(curve))
        arc = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(curve, axis=0).T))])
        if arc[-1] >= total:
            break
        n_nodes = int(n_nodes * max(2.0, 1.2 * total / arc[-1]))
    course = np.gradient(curve, axis=0)
    heading = np.unwrap(np.arctan2(course[:, 1], course[:, 0]))
    x, y, angle = (np.interp(distance, arc, column) for column in (curve[:, 0], curve[:, 1], heading))
    return x + 1j * y, smooth(angle, _ease(0.15, video.rate))


# Annotations and tracking


def annotate_video(motion: Motion, ethogram: Ethogram) -> Annotation:
    """Annotate the behaviors that a video lists in the style of its lab; everything else is unobserved."""
    video, style = motion.video, lab_style(motion.video.lab)
    n_frames, rate = len(motion.center), video.rate
    start, stop, columns = list[int](), list[int](), list[tuple[str, str, str | None]]()
    for agent, target, action in video.labeled:
        other = None if target == SELF else _mouse_index(target)
        if _mouse_index(agent) >= video.mice or (other is not None and other >= video.mice):
            continue  # some lists name mice that are not there
        spans = _annotate_action(motion, style, action, _mouse_index(agent), other)
        spans = iv.clip(iv.shift(spans, round(style.delay * rate)), 0, n_frames)
        start += spans.start.tolist()
        stop += spans.stop.tolist()
        columns += [(action, agent, None if target == SELF else target)] * len(spans.start)
    tracks = [Track(action, agent, None if target == SELF else target) for agent, target, action in video.labeled]
    return Annotation.from_bouts(
        start,
        stop,
        [action for action, *_ in columns],
        ethogram,
        rate,
        n_frames,
        subject=[agent for _, agent, _ in columns],
        target=[target for *_, target in columns],
        observed=Observed(iv.empty(), dict.fromkeys(tracks, iv.full(n_frames))),
        subjects=[f"mouse{n + 1}" for n in range(video.mice)],
    )


def _annotate_action(motion: Motion, style: LabStyle, action: str, agent: int, target: int | None) -> iv.Intervals:
    names = [name for name in style.movements(action, motion.video.actions) if name in MOVEMENTS]
    if action == "approach":  # whatever a mouse does next, it has to get there first
        names = [name for name, movement in DIRECTED.items() if movement.nose is not None and not movement.agent_leads]
    performed = np.zeros(len(motion.center), dtype=bool)
    for name in names:
        performed |= motion.script.performs(name, agent, target)
    annotated = smooth(performed.astype(np.float64), _ease(0.2, motion.rate)) > style.onset
    if action in LIMITS:
        quantity, limit = LIMITS[action]
        values, bound = motion.measure(quantity, action, agent, target), abs(limit) * style.factors[action]
        annotated &= values < bound if limit < 0 else values > bound
    spans = iv.fill_gaps(iv.from_mask(annotated), max(1, round(style.gap * motion.rate)))
    keep = spans.stop - spans.start >= max(1, round(style.shortest * motion.rate))
    return iv.Intervals(spans.start[keep], spans.stop[keep])


def track_video(video: Video, n_frames: int, motion_seed: np.random.SeedSequence, seed: np.random.SeedSequence, errors: float) -> Poses:
    """Simulate what a tracker finds in a video: positions in pixels, with errors.

    Parameters
    ----------
    video : Video
    n_frames : int
    motion_seed, seed : SeedSequence
        Of the motion, and of the errors.
    errors : float
        Factor of all errors; 0 for none.
    """
    motion, generator = Motion(video, n_frames, motion_seed), np.random.default_rng(seed)
    middle = complex(video.width, video.height) / 2
    points = np.stack([motion.points(mouse, video.keypoints) for mouse in range(video.mice)], axis=1) * video.pixels_per_cm + middle
    positions = points.view(np.float64).reshape(*points.shape, 2)
    if errors > 0:
        jitter = errors * video.pixels_per_cm * generator.uniform(0.05, 0.15)
        positions += jitter * generator.standard_normal(positions.shape, dtype=np.float32)
        closeness = _closeness(motion)
        _swap_identities(positions, video.rate, errors, closeness, generator)
        positions[draw_dropouts(positions.shape[:3], video.rate, min(0.03 * errors, 0.9), generator, closeness)] = np.nan
        if generator.random() < min(0.2 * errors, 1.0):
            absence = int(n_frames * generator.uniform(0.1, 0.35))  # minutes of a video of usual length
            first = int(generator.integers(0, max(1, n_frames - absence)))
            positions[first : first + absence, int(generator.integers(video.mice))] = np.nan
    mice = tuple(f"mouse{n + 1}" for n in range(video.mice))
    return Poses(positions, np.full(positions.shape[:3], np.nan), mice, video.keypoints, video.rate)


def _closeness(motion: Motion) -> Floats:
    """Return 1 where two mice are within a body length, else 0 (n_frames,)."""
    n_mice = motion.center.shape[1]
    close = np.zeros(len(motion.center), dtype=bool)
    for a in range(n_mice):
        for b in range(a):
            close |= np.abs(motion.center[:, a] - motion.center[:, b]) < BODY_LENGTH
    return close.astype(np.float64)


def _swap_identities(positions: Floats, rate: float, errors: float, closeness: Floats, generator: np.random.Generator) -> None:
    """Swap two mice for a few seconds, about every two minutes, where mice are close."""
    n_frames, n_mice = positions.shape[:2]
    candidates = np.flatnonzero(closeness)
    if n_mice < 2 or not len(candidates):
        return
    for _ in range(generator.poisson(errors * n_frames / rate / 120)):
        first = int(generator.choice(candidates))
        last = first + int(generator.exponential(3.0) * rate) + 1
        pair = generator.choice(n_mice, 2, replace=False)
        positions[first:last, pair] = positions[first:last, pair[::-1]]


# The dataset


def make_labs(
    *,
    size: str = "small",
    videos: int | None = None,
    seconds: float | None = None,
    labs: Sequence[str] | None = None,
    seed: int = 0,
    errors: float = 1.0,
    folds: int = 5,
    metadata: bool = True,
) -> Dataset:
    """Simulate the videos of 19 labs; the same arguments give the same data.

    Recordings have the metadata `lab`, `pixels_per_cm`, `behaviors_labeled` ("agent,target,action"), `arena_width_cm`, `arena_height_cm`,
    `arena_shape`, `width`, `height` and `tracking_method`. Folds are by video, stratified by lab.

    Parameters
    ----------
    size : {"small", "medium", "full"}
        4 videos of each lab and 1 min, 12 and 3 min, or all videos and 10 min. Videos that are shorter in the table stay shorter.
    videos : int, optional
        Number of videos of each lab, in place of that of `size`.
    seconds : float, optional
        Maximum duration, in place of that of `size`.
    labs : sequence of str, optional
        Only these labs.
    seed : int
        Random seed. The style of a lab does not depend on it.
    errors : float
        Factor of all tracking errors; 0 for none.
    folds : int
    metadata : bool
        Whether to use the metadata table of the challenge if it is in the data folder; otherwise the typical conditions of each lab.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> data = make_labs(videos=1, seconds=5, labs=["CRIM13", "JovialSwallow"], metadata=False)
    >>> [(r.metadata["lab"], r.rate, r.n_frames) for r in data]
    [('CRIM13', 25.0, 125), ('JovialSwallow', 10.0, 50)]
    """
    if size not in SIZES:
        raise ParameterError(f"`size` must be one of {', '.join(map(repr, SIZES))}, got {size!r}")
    if videos is not None and videos < 1:
        raise ParameterError(f"`videos` must be >= 1, got {videos}")
    if seconds is not None and not seconds > 0:
        raise ParameterError(f"`seconds` must be > 0, got {seconds:g}")
    if not errors >= 0:
        raise ParameterError(f"`errors` must be >= 0, got {errors:g}")
    if folds < 1:
        raise ParameterError(f"`folds` must be >= 1, got {folds}")
    table = data_folder() / TABLE
    from_table = metadata and table.is_file()
    available = read_videos(table) if from_table else built_in_videos()
    names = list(dict.fromkeys(video.lab for video in available))
    unknown = [lab for lab in labs or () if lab not in names]
    if unknown:
        raise ParameterError(f"`labs` has unknown names: {', '.join(unknown)}; available: {', '.join(names)}")
    per_lab, longest = SIZES[size]
    limit = longest if seconds is None else seconds
    chosen = select_videos([v for v in available if labs is None or v.lab in labs], per_lab if videos is None else videos)
    ethogram = Ethogram(sorted({action for video in available for action in video.actions}))
    recordings, fold_of, n_of_lab = [], {}, dict[str, int]()
    for video in chosen:
        number = n_of_lab[video.lab] = n_of_lab.get(video.lab, -1) + 1
        fold_of[video.id] = number % folds
        recordings.append(_recording(video, min(video.seconds, limit), seed, errors, ethogram))
    options = f"{size}-{videos}-{limit:g}-{'+'.join(labs or ())}-{seed}-{errors:g}-{'table' if from_table else 'built-in'}"
    return Dataset(
        recordings=tuple(recordings),
        ethogram=ethogram,
        name="synthetic/labs",
        folds=fold_of,
        source="made by ethobench, in the recording conditions of MABe 2025",
        licence="MIT",
        version=f"{REVISION}-{options}",
    )


def _recording(video: Video, seconds: float, seed: int, errors: float, ethogram: Ethogram) -> Recording:
    n_frames = max(1, round(seconds * video.rate))
    motion_seed, error_seed = np.random.SeedSequence([seed, zlib.crc32(video.lab.encode()), zlib.crc32(video.id.encode())]).spawn(2)
    annotations = {}
    if video.labeled:
        annotations[DEFAULT_ANNOTATOR] = annotate_video(Motion(video, n_frames, motion_seed), ethogram)
    return Recording(
        video.id,
        rate=video.rate,
        n_frames=n_frames,
        signals=partial(track_video, video, n_frames, motion_seed, error_seed, errors),
        annotations=annotations,
        subjects=tuple(f"mouse{n + 1}" for n in range(video.mice)),
        metadata={
            "lab": video.lab,
            "pixels_per_cm": video.pixels_per_cm,
            "behaviors_labeled": [",".join(entry) for entry in video.labeled],
            "arena_width_cm": video.arena_width,
            "arena_height_cm": video.arena_height,
            "arena_shape": video.arena_shape,
            "width": video.width,
            "height": video.height,
            "tracking_method": video.tracker,
        },
    )
