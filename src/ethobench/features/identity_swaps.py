"""Identity swaps: frames in which a tracker seems to have exchanged two animals."""

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

MAX_STEP, MAX_SPEED = 0.4, 8.0  # body lengths at once, plus body lengths per second, that an animal may move
MAX_CROSSED_SHARE = 0.5  # of the jump: with exchanged identities, both animals must move less than this
BLOCK_FRAMES = 1 << 14


class IdentitySwap(NamedTuple):
    """The first frame after two animals seem to have been exchanged."""

    frame: int
    first: str
    second: str


def find_identity_swaps(
    poses: Poses,
    *,
    rate: float | None = None,
    keypoints: Mapping[str, Keypoint] | None = None,
    scene: Scene | None = None,
    min_confidence: float = MIN_CONFIDENCE,
) -> tuple[IdentitySwap, ...]:
    """Find frames in which two animals jump to each other's positions, further than animals move.

    Swaps of animals that are on top of each other cannot be found, since neither jumps.

    Parameters
    ----------
    poses : Poses
        As tracked. Swaps across gaps of up to half a second are found too.
    rate : float, optional
        Frames per second, where the poses have no rate.
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names by default.
    scene : Scene, optional
        Measured by default.
    min_confidence : float
        Keypoints with a lower confidence are missing.
    """
    rate = resolve_rate(poses, rate)
    scene = scene or estimate_scene(poses, keypoints=keypoints, min_confidence=min_confidence)
    skeleton, centers = Skeleton.from_names(poses.keypoints, keypoints), []
    for start in range(0, max(len(poses), 1), BLOCK_FRAMES):
        frames = slice(start, start + BLOCK_FRAMES)
        block = replace(poses, positions=poses.positions[frames], confidence=poses.confidence[frames])
        centers.append(locate_bodies(valid_positions(block, min_confidence, scene.zeros_missing), skeleton).center)
    center = np.concatenate(centers, axis=1) / scene.body_length
    tracked = ~np.isnan(center)
    swaps = []
    for a, b in combinations(range(len(center)), 2):
        both_tracked = np.flatnonzero(tracked[a] & tracked[b])
        before, after = both_tracked[:-1], both_tracked[1:]
        near = after - before <= max_gap_frames(MAX_GAP_SECONDS, rate) + 1
        before, after = before[near], after[near]
        moved_a, moved_b = (np.abs(center[i, after] - center[i, before]) for i in (a, b))
        crossed_a, crossed_b = (np.abs(center[j, after] - center[i, before]) for i, j in ((a, b), (b, a)))
        max_distance = MAX_STEP + MAX_SPEED * (after - before) / rate
        jump = (moved_a > max_distance) & (moved_b > max_distance)
        jump &= (crossed_a < MAX_CROSSED_SHARE * moved_a) & (crossed_b < MAX_CROSSED_SHARE * moved_b)
        swaps += [IdentitySwap(int(frame), poses.individuals[a], poses.individuals[b]) for frame in after[jump]]
    return tuple(sorted(swaps))


def summarize_swaps(swaps: Sequence[IdentitySwap], max_frames: int = 5) -> tuple[Note, ...]:
    """Return a note for each pair of animals, with the number of swaps and the first few frames."""
    pairs: dict[tuple[str, str], list[int]] = {}
    for swap in swaps:
        pairs.setdefault((swap.first, swap.second), []).append(swap.frame)
    notes = []
    for (first, second), frames in pairs.items():
        listed = ", ".join(map(str, frames[:max_frames])) + (", ..." if len(frames) > max_frames else "")
        notes.append(Note(f"the tracker seems to swap {first} and {second} {len(frames)} times: frames {listed}"))
    return tuple(notes)


def identity_swap_notes(recording: Recording) -> tuple[Note, ...]:
    """Return notes about identity swaps in a recording; none where it has fewer than two tracked animals, or no rate."""
    poses, rate = recording.signals, recording.rate
    if not isinstance(poses, Poses) or len(poses.individuals) < 2 or not (poses.rate or rate):
        return ()
    return summarize_swaps(find_identity_swaps(poses, rate=poses.rate or rate))
