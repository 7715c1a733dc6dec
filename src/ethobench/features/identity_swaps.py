"""Places where a tracker seems to have confused two animals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ethobench.core.errors import Note
from ethobench.core.recording import Recording
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.body import Scene, Skeleton, estimate_scene, locate_bodies
from ethobench.features.missing_data import MAX_GAP_SECONDS, MIN_CONFIDENCE, max_gap_frames, resolve_rate, valid_positions

REACH, SPEED = 0.4, 8.0  # an animal may move so many body lengths at once, and so many a second more
BLOCK = 1 << 14  # frames at a time
CLOSER = 0.5  # exchanged, both tracks go on within this share of the jump


class IdentitySwap(NamedTuple):
    """The first frame after two animals seem to have changed places."""

    frame: int
    one: str
    other: str


def find_identity_swaps(
    poses: Poses,
    *,
    rate: float | None = None,
    keypoints: Mapping[str, Keypoint] | None = None,
    scene: Scene | None = None,
    min_confidence: float = MIN_CONFIDENCE,
) -> tuple[IdentitySwap, ...]:
    """Find frames in which two animals jump to each other's places, further than animals move.

    Only exchanges that can be seen are found: animals that lie on top of each other do not jump.

    Parameters
    ----------
    poses : Poses
        As tracked; gaps of up to half a second are looked across.
    rate : float, optional
        Frames per second, where the poses do not tell.
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names unless given.
    scene : Scene, optional
        Measured unless given.
    min_confidence : float
        Keypoints below it are not used.
    """
    rate = resolve_rate(poses, rate)
    scene = scene or estimate_scene(poses, keypoints=keypoints, min_confidence=min_confidence)
    skeleton, centers = Skeleton.from_names(poses.keypoints, keypoints), []
    for start in range(0, max(len(poses), 1), BLOCK):
        part = replace(poses, positions=poses.positions[start : start + BLOCK], confidence=poses.confidence[start : start + BLOCK])
        centers.append(locate_bodies(valid_positions(part, min_confidence, scene.zeros_missing), skeleton).center)
    center = np.concatenate(centers, axis=1) / scene.body_length
    known = ~np.isnan(center)
    found = []
    for a, b in combinations(range(len(center)), 2):
        frames = np.flatnonzero(known[a] & known[b])
        before, after = frames[:-1], frames[1:]
        near = after - before <= max_gap_frames(MAX_GAP_SECONDS, rate) + 1
        before, after = before[near], after[near]
        own = [np.abs(center[i, after] - center[i, before]) for i in (a, b)]
        crossed = [np.abs(center[j, after] - center[i, before]) for i, j in ((a, b), (b, a))]
        most = REACH + SPEED * (after - before) / rate
        jump = (own[0] > most) & (own[1] > most) & (crossed[0] < CLOSER * own[0]) & (crossed[1] < CLOSER * own[1])
        found += [IdentitySwap(int(frame), poses.individuals[a], poses.individuals[b]) for frame in after[jump]]
    return tuple(sorted(found))


def summarize_swaps(swaps: Sequence[IdentitySwap], few: int = 5) -> tuple[Note, ...]:
    """Say for each pair of animals how often, and where first, they seem to have been confused."""
    pairs: dict[tuple[str, str], list[int]] = {}
    for swap in swaps:
        pairs.setdefault((swap.one, swap.other), []).append(swap.frame)
    notes = []
    for (one, other), frames in pairs.items():
        rest = ", ..." if len(frames) > few else ""
        notes.append(Note(f"{one} and {other} seem to change places {len(frames)} times: frames {', '.join(map(str, frames[:few]))}{rest}"))
    return tuple(notes)


def identity_swap_notes(recording: Recording) -> tuple[Note, ...]:
    """Tell where animals of a recording seem to have been confused; nothing where there are no two of them, or no rate."""
    poses, rate = recording.signals, recording.rate
    if not isinstance(poses, Poses) or len(poses.individuals) < 2 or not (poses.rate or rate):
        return ()
    return summarize_swaps(find_identity_swaps(poses, rate=poses.rate or rate))
