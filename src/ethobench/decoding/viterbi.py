"""Viterbi decoding: the most likely sequence of behaviors, given how long each lasts and which follows which.

A behavior is a chain of one or more stages. The time spent in a stage is geometric, so the duration of a bout is negative binomial:
more stages make durations more regular, and no bout has fewer frames than its behavior has stages.

The recording is cut into blocks that are searched in parallel. The score of each stage at the start of a block is that at the end of
the block before. In the first round it is unknown and all stages count as equally likely; blocks whose start scores turn out to differ
are searched again until none does. Best paths from different starts merge soon, so two rounds are typical. The result equals that of
the search frame by frame.

References
----------
L. R. Rabiner, "A tutorial on hidden Markov models and selected applications in speech recognition", Proceedings of the IEEE, 1989.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, ParameterError
from ethobench.core.targets import overlapping_targets

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
BackPointers = NDArray[np.unsignedinteger[Any]]
NO_BEHAVIOR = ""  # the state "none of the behaviors", where the ethogram names no background
MIN_BLOCK_FRAMES = 64
BLOCK_GROWTH = (1, 8, 64)  # larger blocks where paths merge slowly
MAX_ROUNDS = 4  # with blocks of one size, unless they are the largest
SCORE_TOLERANCE = 1e-9
MIN_STAY_PROBABILITY = 1e-3
TRANSITION_PSEUDOCOUNT = 0.5
NEVER_ENDING_SECONDS = 1e4  # mean duration of a behavior whose end was never observed


@dataclass(frozen=True)
class TransitionModel:
    """Durations of behaviors and probabilities of transitions between them.

    Attributes
    ----------
    states : tuple of str
        Names of behaviors; the empty name is none of them.
    mean_seconds : tuple of float
        Mean duration of each state.
    stages : tuple of int
        Number of stages of each state. More stages make durations more regular.
    transitions : tuple of tuple of float
        Probability that one state (row) is followed by another (column). Rows sum to 1, the diagonal is 0.
    """

    states: tuple[str, ...]
    mean_seconds: tuple[float, ...]
    stages: tuple[int, ...]
    transitions: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        n = len(self.states)
        transitions = np.array(self.transitions, dtype=np.float64)
        if n == 0 or len({*self.states}) < n or len(self.mean_seconds) != n or len(self.stages) != n or transitions.shape != (n, n):
            raise EthobenchError(f"a transition model needs a duration, stages and transitions for each of {n} different states")
        row_sums = transitions.sum(axis=1)
        if (transitions < 0).any() or np.diag(transitions).any() or (n > 1 and not np.allclose(row_sums, 1)):
            raise ParameterError("`transitions` must be >= 0, with 0 on the diagonal, and every row must sum to 1")
        if not all(np.isfinite(s) and s > 0 for s in self.mean_seconds) or not all(isinstance(k, int) and k > 0 for k in self.stages):
            raise ParameterError("`mean_seconds` must be finite and > 0, and `stages` integers >= 1")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON can hold."""
        return {
            "states": list(self.states),
            "mean_seconds": list(self.mean_seconds),
            "stages": list(self.stages),
            "transitions": [list(row) for row in self.transitions],
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Create a model from the result of `to_dict`."""
        try:
            states, stages = tuple(map(str, saved["states"])), tuple(map(int, saved["stages"]))
            mean_seconds = tuple(map(float, saved["mean_seconds"]))
            transitions = tuple(tuple(map(float, row)) for row in saved["transitions"])
        except (KeyError, TypeError, ValueError) as error:
            raise EthobenchError(f"not a valid transition model: {error!r}") from None
        return cls(states, mean_seconds, stages, transitions)

    def reordered(self, states: tuple[str, ...]) -> TransitionModel:
        """Return the same model with its states in another order."""
        if {*states} != {*self.states}:
            fitted, requested = (", ".join(repr(s) for s in names) for names in (self.states, states))
            raise MismatchError(f"the decoder was fitted for the behaviors {fitted}, not for {requested}")
        order = [self.states.index(state) for state in states]
        return TransitionModel(
            states,
            tuple(self.mean_seconds[i] for i in order),
            tuple(self.stages[i] for i in order),
            tuple(tuple(self.transitions[i][j] for j in order) for i in order),
        )


def viterbi_path(log_likelihood: Array, model: TransitionModel, rate: float) -> Codes:
    """Return the most likely sequence of states.

    Parameters
    ----------
    log_likelihood : array (n_frames, n_states)
        Logarithm of the likelihood of each frame under each state; equal for all states where a frame is unobserved.
    model : TransitionModel
        With its states in the order of the columns.
    rate : float
        Frames per second.

    Returns
    -------
    array of int (n_frames,)
        The index of the state of each frame.

    Examples
    --------
    >>> noisy = np.log([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.1, 0.9]])
    >>> viterbi_path(noisy, TransitionModel(("a", "b"), (4.0, 4.0), (1, 1), ((0, 1), (1, 0))), rate=1).tolist()
    [0, 0, 0, 0, 1, 1, 1]
    """
    n = len(log_likelihood)
    if n == 0 or len(model.states) == 1:
        return np.zeros(n, dtype=np.int64)
    chain = _expand_stages(model, rate)
    start = log_likelihood[0, chain.state]
    size = max(MIN_BLOCK_FRAMES, int(np.sqrt(n)))  # as many blocks as frames per block, so that each NumPy call covers enough data
    for growth in BLOCK_GROWTH:
        block_frames = max(min(growth * size, n - 1), 1)
        result = _search_blocks(start, log_likelihood[1:], block_frames, chain, MAX_ROUNDS if growth < BLOCK_GROWTH[-1] else n)
        if result is not None:
            return chain.state[_trace_back(*result)[:n]]
    raise AssertionError("a search with as many rounds as frames always ends")


def fit_transition_models(annotations: Iterable[Annotation], *, exclusive: bool, max_stages: int = 1) -> dict[str, TransitionModel]:
    """Estimate durations of behaviors and transitions between them from reference annotations.

    Parameters
    ----------
    annotations : iterable of Annotation
        With one ethogram.
    exclusive : bool
        Whether behaviors exclude each other. Otherwise each behavior and its absence are the two states of one model.
    max_stages : int
        Each behavior has as many stages as fit the variance of its durations, at most this many.

    Returns
    -------
    dict of str to TransitionModel
        As `Decoder.transition_models`: one model under ``""`` for exclusive behaviors, else one for each behavior.
    """
    annotations = list(annotations)
    ethogram = annotations[0].ethogram
    if exclusive:
        states = ethogram.names if ethogram.background is not None else (*ethogram.names, NO_BEHAVIOR)
        return {NO_BEHAVIOR: _fit_transition_model([(frame_codes(a), a.rate) for a in annotations], states, max_stages)}
    targets = [(overlapping_targets(annotation), annotation.rate) for annotation in annotations]
    return {
        behavior.name: _fit_transition_model([(t[:, code], rate) for t, rate in targets], (NO_BEHAVIOR, behavior.name), max_stages)
        for code, behavior in enumerate(ethogram)
        if code != ethogram.background and not behavior.point
    }


def frame_codes(annotation: Annotation) -> Codes:
    """Return one behavior per frame; where behaviors overlap, the first in the ethogram.

    Returns
    -------
    array of int (n_frames,)
        The index of the behavior. Frames without one have the index of the background, or ``len(ethogram)`` where none is named.
        Frames in which any behavior is unobserved have -1.
    """
    no_behavior = len(annotation.ethogram) if annotation.ethogram.background is None else annotation.ethogram.background
    frames = annotation.to_frames()
    codes = np.where(frames.any(axis=1), frames.argmax(axis=1), no_behavior)
    observed = iv.to_mask(annotation.observed.of_all(annotation.ethogram.names), annotation.n_frames)
    return np.asarray(np.where(observed, codes, -1))


@dataclass(frozen=True)
class _StageChain:
    """The stages of all states in one row, with the log probabilities of staying in each and of leaving it."""

    state: Codes
    first: Codes
    last: Codes
    log_stay: Array
    log_leave: Array
    log_transitions: Array


def _expand_stages(model: TransitionModel, rate: float) -> _StageChain:
    mean_frames = np.array(model.mean_seconds) * rate
    stages = np.minimum(np.array(model.stages), np.maximum(mean_frames.astype(np.int64), 1))
    first = np.cumsum(stages) - stages
    state = np.repeat(np.arange(len(stages)), stages)
    leave = np.minimum(stages / mean_frames, 1 - MIN_STAY_PROBABILITY)[state]
    with np.errstate(divide="ignore"):
        log_transitions = np.log(np.array(model.transitions))
    return _StageChain(state, first, first + stages - 1, np.log1p(-leave), np.log(leave), log_transitions)


def _search_blocks(
    start: Array, log_likelihood: Array, block_frames: int, chain: _StageChain, max_rounds: int
) -> tuple[BackPointers, int] | None:
    """Search all blocks until the start scores of each equal the end scores of the one before.

    Returns
    -------
    (back pointers, best stage of the last frame), or None
        None where more than `max_rounds` rounds are needed.
    """
    n_steps = len(log_likelihood)
    n_blocks, n_stages = max(-(-n_steps // block_frames), 1), len(chain.state)
    padded = np.zeros((n_blocks * block_frames, log_likelihood.shape[1]))
    padded[:n_steps] = log_likelihood
    blocks = padded.reshape(n_blocks, block_frames, -1).transpose(1, 0, 2)
    block_lengths = np.full(n_blocks, block_frames)
    block_lengths[-1] = n_steps - (n_blocks - 1) * block_frames
    pointers = np.zeros((block_frames, n_stages, n_blocks), dtype=np.uint8 if n_stages < 256 else np.uint16)
    starts, ends = np.zeros((n_blocks, n_stages)), np.zeros((n_blocks, n_stages))
    starts[0] = start
    pending, rounds = np.arange(n_blocks), 0
    while pending.size:
        if rounds == max_rounds:
            return None
        ends[pending], pointers[..., pending] = _search(starts[pending], blocks[:, pending], block_lengths[pending], chain, pointers.dtype)
        relative = ends - ends.max(axis=1, keepdims=True)
        pending = np.flatnonzero(np.abs(relative[:-1] - starts[1:]).max(axis=1, initial=0) > SCORE_TOLERANCE) + 1
        starts[pending] = relative[pending - 1]
        rounds += 1
    return pointers, int(ends[-1].argmax())


def _search(
    start: Array, log_likelihood: Array, block_lengths: Codes, chain: _StageChain, dtype: np.dtype[Any]
) -> tuple[Array, BackPointers]:
    """Search several blocks frame by frame; return the score of each stage at their ends, and the back pointers."""
    size, n_blocks, n_stages = *log_likelihood.shape[:2], len(chain.state)
    log_stay, log_leave, log_transitions = chain.log_stay[:, None], chain.log_leave[:, None], chain.log_transitions[:, :, None]
    same_stage = np.arange(n_stages, dtype=dtype)[:, None]
    later_stages = np.setdiff1d(np.arange(n_stages), chain.first)
    last = chain.last.astype(dtype)
    pointers = np.empty((size, n_stages, n_blocks), dtype=dtype)
    scores = start.T.copy()  # stages first, so that each step adds long rows
    entering, source = np.empty_like(scores), np.empty(scores.shape, dtype=dtype)
    source[later_stages] = (later_stages - 1).astype(dtype)[:, None]
    shortest = int(block_lengths.min())
    for t in range(size):
        leaving = scores + log_leave
        entering[later_stages] = leaving[later_stages - 1]
        into_first = leaving[chain.last][:, None] + log_transitions
        entering[chain.first] = into_first.max(axis=0)
        source[chain.first] = last[into_first.argmax(axis=0)]
        staying = scores + log_stay
        updated = np.maximum(entering, staying) + log_likelihood[t].T[chain.state]
        pointers[t] = np.where(entering > staying, source, same_stage)
        if t >= shortest:  # the last block may be shorter than the others
            past_end = t >= block_lengths
            updated[:, past_end], pointers[t][:, past_end] = scores[:, past_end], same_stage
        scores = updated
    return scores.T, pointers


def _trace_back(pointers: BackPointers, last: int) -> Codes:
    """Follow the best path back from the last stage; return its stages, beginning with the frame before the first block."""
    size, n_stages, n_blocks = pointers.shape
    origin, blocks = np.tile(np.arange(n_stages)[:, None], (1, n_blocks)), np.arange(n_blocks)
    for t in range(size - 1, -1, -1):
        origin = pointers[t][origin, blocks]
    stage = np.empty(n_blocks, dtype=np.int64)
    for block in range(n_blocks - 1, -1, -1):
        stage[block] = last
        last = int(origin[last, block])
    path = np.empty((size, n_blocks), dtype=np.int64)
    for t in range(size - 1, -1, -1):
        path[t] = stage
        stage = pointers[t, stage, blocks]
    return np.concatenate([[last], path.T.ravel()])


def _fit_transition_model(labels: list[tuple[NDArray[Any], float]], states: tuple[str, ...], max_stages: int) -> TransitionModel:
    """Fit a model to (codes, rate) of several recordings; codes below 0 are unobserved."""
    n = len(states)
    counts = np.full((n, n), TRANSITION_PSEUDOCOUNT) * (1 - np.eye(n))
    complete_durations: list[list[float]] = [[] for _ in states]  # of bouts whose start and end were observed
    total_seconds, n_ends = np.zeros(n), np.zeros(n)
    for codes, rate in labels:
        runs = iv.encode_runs(codes)
        values, seconds = runs.values.astype(np.int64), (runs.stop - runs.start) / rate
        np.add.at(total_seconds, values[values >= 0], seconds[values >= 0])
        is_transition = (values[:-1] >= 0) & (values[1:] >= 0)
        np.add.at(counts, (values[:-1][is_transition], values[1:][is_transition]), 1)
        np.add.at(n_ends, values[:-1][is_transition], 1)
        for run in np.flatnonzero(is_transition[:-1] & is_transition[1:]) + 1:
            complete_durations[values[run]].append(float(seconds[run]))
    means, stages = [], []
    for code in range(n):
        durations = np.array(complete_durations[code])
        if len(durations):
            means.append(float(durations.mean()))
        else:
            means.append(float(total_seconds[code] / n_ends[code]) if n_ends[code] else NEVER_ENDING_SECONDS)
        variance = float(durations.var()) if len(durations) > 1 else 0.0
        stages.append(int(np.clip(round(means[-1] ** 2 / variance), 1, max_stages)) if variance > 0 else 1)
    rows = counts / counts.sum(axis=1, keepdims=True) if n > 1 else counts
    return TransitionModel(states, tuple(means), tuple(stages), tuple(tuple(map(float, row)) for row in rows))
