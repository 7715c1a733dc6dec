"""Searches: the best cell is chosen, poor ones are pruned early, and an interrupted search is resumed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ethobench.core.errors import EthobenchError
from ethobench.runs import GridSearch, Job, OptunaSearch, Result

pytestmark = pytest.mark.slow

GRID = {"rate": [0.001, 0.1], "size": [1, 3, 5], "kind": ["a", "b"], "cutoff": [0, 1.5]}
BY = ("ethobench", "f1")


def make_job(cell, share: float) -> Job:
    return Job("b", "d", "1", ("a",) * round(4 * share), ("z",), "rf", params=cell)


def quality(params) -> float:
    """Return a score whose optimum is rate 0.01, size 3, kind b, cutoff 1.5."""
    from math import log10

    return (
        1 - abs(log10(params["rate"]) + 2) / 4 - abs(params["size"] - 3) / 8 - 0.3 * (params["kind"] == "a") - 0.2 * (params["cutoff"] == 0)
    )


def play(choice, stop_after: int | None = None):
    """Answer a search's jobs; return its choice and the jobs, or only the jobs if it is stopped."""
    proposed, results = [], None
    try:
        while True:
            jobs = choice.send(results)
            proposed.append(jobs)
            if stop_after is not None and len(proposed) > stop_after:
                choice.close()
                return None, proposed
            results = [Result(job, {"ethobench": {"f1": quality(job.params) * len(job.train) / 4}}) for job in jobs]
    except StopIteration as end:
        return end.value, proposed


def test_the_complete_grid_is_evaluated():
    best, proposed = play(GridSearch().choose(GRID, make_job, BY))
    assert len(proposed[0]) == 24
    assert (best["size"], best["kind"], best["cutoff"]) == (3, "b", 1.5)
    assert best["rate"] == 0.001  # as good as 0.1: the first of equals


def test_failed_cells_are_not_chosen():
    choice = GridSearch().choose({"size": [1, 2]}, make_job, BY)
    jobs = next(choice)
    with pytest.raises(StopIteration) as end:
        choice.send([Result(jobs[0], error="broke"), Result(jobs[1], {"ethobench": {"f1": 0.1}})])
    assert end.value.value == {"size": 2}
    choice = GridSearch().choose({"size": [1]}, make_job, BY)
    jobs = next(choice)
    with pytest.raises(EthobenchError, match="could be scored: broke"):
        choice.send([Result(jobs[0], error="broke")])


def test_optuna_chooses_the_best_and_prunes_poor_candidates(tmp_path):
    best, proposed = play(OptunaSearch(tmp_path, trials=60, n_parallel=4).choose(GRID, make_job, BY))
    assert quality(best) > 0.9
    jobs = [job for batch in proposed for job in batch]
    tried = {share: sum(len(job.train) == share for job in jobs) for share in (1, 2, 4)}
    assert tried[1] == 60
    assert tried[4] < 50
    assert all(isinstance(job.params["size"], int) and 0.001 <= job.params["rate"] <= 0.1 for job in jobs)


def test_an_interrupted_search_is_resumed_with_the_same_proposals(tmp_path):
    uninterrupted, proposed = play(OptunaSearch(tmp_path / "a", trials=12, n_parallel=3).choose(GRID, make_job, BY))
    batches: list[list[dict]] = []
    for stop in (1, 4, None):
        best, jobs = play(OptunaSearch(tmp_path / "b", trials=12, n_parallel=3).choose(GRID, make_job, BY), stop)
        batches += [[dict(job.params) for job in batch] for batch in jobs]
    assert best == uninterrupted
    once = [batches[0], *(after for before, after in pairwise(batches) if after != before)]
    flat = {str(cell) for batch in once for cell in batch}
    assert flat == {str(dict(job.params)) for batch in proposed for job in batch}


def test_a_search_without_any_score_is_an_error(tmp_path):
    choice = OptunaSearch(tmp_path, trials=2, n_parallel=2).choose({"size": [1, 2]}, make_job, BY)
    jobs = next(choice)
    with pytest.raises(EthobenchError, match="no trial of rf on d could be scored"):
        choice.send([Result(job, error="broke") for job in jobs])


def test_fixed_hyper_parameters_identify_a_search(tmp_path):
    pytest.importorskip("optuna")
    grid = {"size": [1, 3, 5]}
    chosen = []
    for epochs in (2, 100):
        search = OptunaSearch(tmp_path, 3, 1)

        def fixed(cell, share, epochs=epochs) -> Job:
            return make_job({**cell, "epochs": epochs}, share)

        chosen.append(len([job for jobs in play_sizes(search.choose(grid, fixed, BY)) for job in jobs]))
    assert chosen[0] == chosen[1] > 0


def play_sizes(choice):
    """Answer a search over one size, and return the proposed jobs."""
    proposed, results = [], None
    try:
        while True:
            jobs = choice.send(results)
            proposed.append(jobs)
            results = [Result(job, {"ethobench": {"f1": job.params["size"] / 10}}) for job in jobs]
    except StopIteration:
        return proposed
