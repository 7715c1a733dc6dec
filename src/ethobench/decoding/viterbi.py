"""The most probable sequence of behaviors, given how long each lasts and which follows which.

A behavior is a chain of one or more stages that are passed one after the other; the time in each is geometric, so the time in all
is negative binomial: the more stages, the more regular the durations, and none is shorter than its stages.

The frames are cut into blocks that are searched side by side, each from where the one before it ends. Where that is not known yet,
all stages count as equally likely; blocks whose beginning turns out otherwise are searched again, until none does. The best paths
from all beginnings soon become one, so two rounds are the rule, and the result is that of the search frame by frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError

Array = NDArray[np.float64]
Sources = NDArray[np.unsignedinteger[Any]]
NO_BEHAVIOR = ""  # stands for "none of the behaviors" where the ethogram names no background
SHORTEST_BLOCK = 64
GROWTH = (1, 8, 64)  # larger blocks where paths are slow to become one
PATIENCE = 4
SAME = 1e-9
SHORTEST_STAY = 1e-3
UNSEEN = 0.5  # how often any behavior is taken to have followed any other beyond what was seen
LONG = 1e4  # seconds that a behavior lasts that was never seen to end
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class TransitionModel:
    """How long behaviors last and which follows which.

    Attributes
    ----------
    states : tuple of str
        Behaviors; an empty name stands for none of them.
    seconds : tuple of float
        Mean durations.
    stages : tuple of int
        Of each behavior; more make durations more regular.
    follow : tuple of tuple of float
        How probable it is that one behavior (row) is followed by another (column); rows sum to 1, the diagonal is 0.
    """

    states: tuple[str, ...]
    seconds: tuple[float, ...]
    stages: tuple[int, ...]
    follow: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        n = len(self.states)
        follow = np.array(self.follow, dtype=np.float64)
        if n == 0 or len({*self.states}) < n or len(self.seconds) != n or len(self.stages) != n or follow.shape != (n, n):
            raise EthobenchError(f"transition_models need a duration, stages and successors for each of {n} different behaviors")
        sums = follow.sum(axis=1)
        if (follow < 0).any() or np.diag(follow).any() or (n > 1 and not np.allclose(sums, 1)):
            raise EthobenchError("what follows a behavior are probabilities of the others, which sum to 1")
        if not all(np.isfinite(s) and s > 0 for s in self.seconds) or not all(isinstance(k, int) and k > 0 for k in self.stages):
            raise EthobenchError("behaviors last longer than 0 s and have one stage or more")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "states": list(self.states),
            "seconds": list(self.seconds),
            "stages": list(self.stages),
            "follow": [list(row) for row in self.follow],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make transition_models from what `to_dict` returned."""
        try:
            follow = tuple(tuple(map(float, row)) for row in plain["follow"])
            return cls(tuple(map(str, plain["states"])), tuple(map(float, plain["seconds"])), tuple(map(int, plain["stages"])), follow)
        except (KeyError, TypeError, ValueError) as error:
            raise EthobenchError(f"these are no transition_models of behaviors: {error!r}") from None

    def in_order(self, states: tuple[str, ...]) -> TransitionModel:
        """Return the same with the states in another order."""
        if {*states} != {*self.states}:
            known, wanted = (", ".join(repr(s) for s in names) for names in (self.states, states))
            raise MismatchError(f"the decoder learnt the durations of {known}; these are {wanted}")
        places = [self.states.index(state) for state in states]
        return TransitionModel(
            states,
            tuple(self.seconds[i] for i in places),
            tuple(self.stages[i] for i in places),
            tuple(tuple(self.follow[i][j] for j in places) for i in places),
        )


@dataclass(frozen=True)
class _Chain:
    """Stages of all behaviors in one row, and what it costs to stay in each or to leave it (logarithms of probabilities)."""

    behavior: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    stay: Array
    leave: Array
    follow: Array


def viterbi_path(evidence: Array, transition_models: TransitionModel, rate: float) -> NDArray[np.int64]:
    """Return the sequence of states that is most probable.

    Parameters
    ----------
    evidence : array (n_frames, n_states)
        Logarithms of how well each state explains each frame; the same for all states where nothing is known.
    transition_models : TransitionModel
        With the states in the order of the columns.
    rate : float
        Frames per second.

    Examples
    --------
    >>> doubtful = np.log([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.1, 0.9]])
    >>> viterbi_path(doubtful, TransitionModel(("a", "b"), (4.0, 4.0), (1, 1), ((0, 1), (1, 0))), rate=1).tolist()
    [0, 0, 0, 0, 1, 1, 1]
    """
    n = len(evidence)
    if n == 0 or len(transition_models.states) == 1:
        return np.zeros(n, dtype=np.int64)
    chain = _chain(transition_models, rate)
    start = evidence[0, chain.behavior]
    size = max(SHORTEST_BLOCK, int(np.sqrt(n)))  # as many blocks as frames in each, so that a step is worth its overhead
    for growth in GROWTH:
        found = _search_blocks(start, evidence[1:], max(min(growth * size, n - 1), 1), chain, PATIENCE if growth < GROWTH[-1] else n)
        if found is not None:
            return chain.behavior[_trace(*found)[:n]]
    raise AssertionError("a search of as many rounds as frames finds the path")


def _chain(transition_models: TransitionModel, rate: float) -> _Chain:
    frames = np.array(transition_models.seconds) * rate
    stages = np.minimum(np.array(transition_models.stages), np.maximum(frames.astype(np.int64), 1))
    first = np.cumsum(stages) - stages
    behavior = np.repeat(np.arange(len(stages)), stages)
    leave = np.minimum(stages / frames, 1 - SHORTEST_STAY)[behavior]
    with np.errstate(divide="ignore"):
        return _Chain(behavior, first, first + stages - 1, np.log1p(-leave), np.log(leave), np.log(np.array(transition_models.follow)))


def _search_blocks(start: Array, evidence: Array, size: int, chain: _Chain, patience: int) -> tuple[Sources, int] | None:
    """Search all blocks until each begins where the one before it ends.

    Returns where each stage of each frame came from, and the best stage of the last frame; or None where more than `patience`
    rounds would be needed.
    """
    steps = len(evidence)
    n_blocks, n_stages = max(-(-steps // size), 1), len(chain.behavior)
    padded = np.zeros((n_blocks * size, evidence.shape[1]))
    padded[:steps] = evidence
    blocks = padded.reshape(n_blocks, size, -1).transpose(1, 0, 2)
    inside = np.full(n_blocks, size)
    inside[-1] = steps - (n_blocks - 1) * size
    before = np.zeros((size, n_stages, n_blocks), dtype=np.uint8 if n_stages < 256 else np.uint16)
    starts, ends = np.zeros((n_blocks, n_stages)), np.zeros((n_blocks, n_stages))
    starts[0] = start
    todo, rounds = np.arange(n_blocks), 0
    while todo.size:
        if rounds == patience:
            return None
        ends[todo], before[..., todo] = _search(starts[todo], blocks[:, todo], inside[todo], chain, before.dtype)
        found = ends - ends.max(axis=1, keepdims=True)
        todo = np.flatnonzero(np.abs(found[:-1] - starts[1:]).max(axis=1, initial=0) > SAME) + 1
        starts[todo] = found[todo - 1]
        rounds += 1
    return before, int(ends[-1].argmax())


def _search(start: Array, evidence: Array, inside: NDArray[np.int64], chain: _Chain, dtype: np.dtype[Any]) -> tuple[Array, Sources]:
    """Search some blocks, frame by frame; return how good each stage is at their ends, and where each stage came from."""
    size, n_blocks, n_stages = *evidence.shape[:2], len(chain.behavior)
    stay, leave, follow = chain.stay[:, None], chain.leave[:, None], chain.follow[:, :, None]
    own = np.arange(n_stages, dtype=dtype)[:, None]
    later = np.setdiff1d(np.arange(n_stages), chain.first)
    last = chain.last.astype(dtype)
    before = np.empty((size, n_stages, n_blocks), dtype=dtype)
    good = start.T.copy()  # stages first, so that each step adds long rows
    came, source = np.empty_like(good), np.empty(good.shape, dtype=dtype)
    source[later] = (later - 1).astype(dtype)[:, None]
    shortest = int(inside.min())
    for t in range(size):
        left = good + leave
        came[later] = left[later - 1]
        entries = left[chain.last][:, None] + follow
        came[chain.first] = entries.max(axis=0)
        source[chain.first] = last[entries.argmax(axis=0)]
        stayed = good + stay
        moves = came > stayed
        step = np.maximum(came, stayed) + evidence[t].T[chain.behavior]
        before[t] = np.where(moves, source, own)
        if t >= shortest:  # the last block may be shorter than the others
            over = t >= inside
            step[:, over], before[t][:, over] = good[:, over], own
        good = step
    return good.T, before


def _trace(before: Sources, last: int) -> NDArray[np.int64]:
    """Follow the best path from the last stage back to the beginning; return the stages, from the frame before the first block on."""
    size, n_stages, n_blocks = before.shape
    origin, blocks = np.tile(np.arange(n_stages)[:, None], (1, n_blocks)), np.arange(n_blocks)
    for t in range(size - 1, -1, -1):
        origin = before[t][origin, blocks]
    state = np.empty(n_blocks, dtype=np.int64)
    for block in range(n_blocks - 1, -1, -1):
        state[block] = last
        last = int(origin[last, block])
    path = np.empty((size, n_blocks), dtype=np.int64)
    for t in range(size - 1, -1, -1):
        path[t] = state
        state = before[t, state, blocks]
    return np.concatenate([[last], path.T.ravel()])


def fit_transition_models(truths: Iterable[Annotation], *, exclusive: bool, most_stages: int = 1) -> dict[str, TransitionModel]:
    """Learn how long behaviors last and which follows which.

    Parameters
    ----------
    truths : iterable of Annotation
        Of one ethogram.
    exclusive : bool
        One behavior at a time, or each on its own.
    most_stages : int
        A behavior gets as many stages, up to this, as fit the spread of its durations.

    Returns
    -------
    dict
        As `Decoder.transition_models` takes it.
    """
    truths = list(truths)
    ethogram = truths[0].ethogram
    if exclusive:
        names = ethogram.names if ethogram.background is not None else (*ethogram.names, NO_BEHAVIOR)
        return {NO_BEHAVIOR: _fit_transitions([(frame_codes(truth), truth.rate) for truth in truths], names, most_stages)}
    result = {}
    for code, behavior in enumerate(ethogram):
        if code != ethogram.background and not behavior.point:
            tracks = [(behavior_codes(truth, code), truth.rate) for truth in truths]
            result[behavior.name] = _fit_transitions(tracks, (NO_BEHAVIOR, behavior.name), most_stages)
    return result


def frame_codes(truth: Annotation) -> Codes:
    """Return one code per frame; of several behaviors at once, the first in the ethogram."""
    nothing = len(truth.ethogram) if truth.ethogram.background is None else truth.ethogram.background
    frames = truth.to_frames()
    codes = np.where(frames.any(axis=1), frames.argmax(axis=1), nothing)
    seen = iv.to_mask(truth.observed.of_all(truth.ethogram.names), truth.n_frames)
    return np.asarray(np.where(seen, codes, -1))


def behavior_codes(truth: Annotation, code: int) -> Codes:
    """Return 1 where a behavior goes on, 0 where not, -1 where nobody looked."""
    on = iv.to_mask(iv.union(truth.spans(code)), truth.n_frames)
    seen = iv.to_mask(truth.observed.of(truth.ethogram[code].name), truth.n_frames)
    return np.asarray(np.where(seen, on.astype(np.int64), -1))


def _fit_transitions(tracks: list[tuple[Codes, float]], names: tuple[str, ...], most_stages: int) -> TransitionModel:
    n = len(names)
    follow = np.full((n, n), UNSEEN) * (1 - np.eye(n))
    whole: list[list[float]] = [[] for _ in names]
    total, ends = np.zeros(n), np.zeros(n)
    for codes, rate in tracks:
        runs = iv.encode_runs(codes)
        values, seconds = runs.values.astype(np.int64), (runs.stop - runs.start) / rate
        np.add.at(total, values[values >= 0], seconds[values >= 0])
        into = (values[:-1] >= 0) & (values[1:] >= 0)
        np.add.at(follow, (values[:-1][into], values[1:][into]), 1)
        np.add.at(ends, values[:-1][into], 1)
        inner = np.flatnonzero(into[:-1] & into[1:]) + 1
        for run in inner:
            whole[values[run]].append(float(seconds[run]))
    means, stages = [], []
    for code in range(n):
        lengths = np.array(whole[code])
        means.append(float(lengths.mean()) if len(lengths) else float(total[code] / ends[code]) if ends[code] else LONG)
        spread = float(lengths.var()) if len(lengths) > 1 else 0.0
        stages.append(int(np.clip(round(means[-1] ** 2 / spread), 1, most_stages)) if spread > 0 else 1)
    rows = follow / follow.sum(axis=1, keepdims=True) if n > 1 else follow
    return TransitionModel(names, tuple(means), tuple(stages), tuple(tuple(map(float, row)) for row in rows))
