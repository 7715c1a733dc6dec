"""Hyper-parameter search: the complete grid, or Optuna, which stops poor candidates early.

A search is part of a plan: it yields jobs, is sent their results, and returns the best hyper-parameters. It never uses the folds that
are reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ethobench.core.errors import EthobenchError
from ethobench.runs.plan import Job, Result

if TYPE_CHECKING:
    import optuna

Cell = dict[str, Any]
Grid = Mapping[str, Sequence[Any]]
MakeJob = Callable[[Cell, float], Job]
"""Creates the job that evaluates a cell of the grid, trained on a share (0 to 1) of the training folds."""
Choice = Generator[list[Job], list[Result], Cell]


class Search(Protocol):
    """Chooses hyper-parameters from a grid."""

    def choose(self, grid: Grid, make_job: MakeJob, by: tuple[str, str]) -> Choice:
        """Yield jobs, receive their results, and return the best cell; `by` is a suite and a metric."""
        ...


@dataclass(frozen=True)
class GridSearch:
    """Evaluates every cell of a grid; ties go to the first."""

    def choose(self, grid: Grid, make_job: MakeJob, by: tuple[str, str]) -> Choice:
        """Yield a job for every cell."""
        cells = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        jobs = [make_job(cell, 1.0) for cell in cells]
        results = yield jobs
        scored = [(value, -k) for k, result in enumerate(results) if (value := result.value(*by)) is not None]
        if not scored:
            raise EthobenchError(f"no cell of the grid of {jobs[0].model} on {jobs[0].dataset} could be scored: {results[0].error}")
        return cells[-max(scored)[1]]


@dataclass(frozen=True)
class OptunaSearch:
    """Evaluates cells that Optuna proposes, each on increasing shares of the training folds, and prunes those that fall behind.

    The state of the search is kept in the store, so that an interrupted search can be resumed.

    Attributes
    ----------
    folder : Path
        Folder for the state.
    trials : int
        Number of cells.
    n_parallel : int
        Number of cells evaluated in parallel.
    shares : tuple of float
        Shares of the training folds on which a cell is evaluated, in this order.
    seed : int
    """

    folder: Path
    trials: int = 50
    n_parallel: int = 4
    shares: tuple[float, ...] = (0.25, 0.5, 1.0)
    seed: int = 0

    def choose(self, grid: Grid, make_job: MakeJob, by: tuple[str, str]) -> Choice:
        """Yield the jobs of a few trials at a time."""
        first = make_job({name: values[0] for name, values in grid.items()}, 1.0)
        study = self._study(first, grid, by)
        yield from self._evaluate(study, _running_trials(study), make_job, by)
        while (n_remaining := self.trials - len(study.trials)) > 0:
            trials = [self._propose(study, grid) for _ in range(min(n_remaining, self.n_parallel))]
            yield from self._evaluate(study, trials, make_job, by)
        try:
            best = study.best_trial
        except ValueError:
            raise EthobenchError(f"no trial of {first.model} on {first.dataset} could be scored") from None
        return {name: best.params[name] for name in grid}

    def _propose(self, study: optuna.Study, grid: Grid) -> optuna.Trial:
        """Propose a cell, which depends only on the trials before it, so that a resumed search proposes the same cells."""
        import optuna

        study.sampler = optuna.samplers.TPESampler(seed=self.seed + len(study.trials), constant_liar=True)
        return study.ask(_distributions(grid))

    def _evaluate(
        self, study: optuna.Study, trials: list[optuna.Trial], make_job: MakeJob, by: tuple[str, str]
    ) -> Generator[list[Job], list[Result], None]:
        """Evaluate trials on increasing shares of the training folds; trials that fail or fall behind are dropped."""
        import optuna

        for step, share in enumerate(self.shares):
            if not trials:
                return
            results = yield [make_job(dict(trial.params), share) for trial in trials]
            remaining = []
            for trial, result in zip(trials, results, strict=True):
                value = result.value(*by)
                if value is None:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)
                    continue
                if step not in study.trials[trial.number].intermediate_values:
                    trial.report(value, step)
                if share == self.shares[-1]:
                    study.tell(trial, value, skip_if_finished=True)
                elif trial.should_prune():
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED, skip_if_finished=True)
                else:
                    remaining.append(trial)
            trials = remaining

    def _study(self, job: Job, grid: Grid, by: tuple[str, str]) -> optuna.Study:
        """Load the state of this search, or create it."""
        try:
            import optuna
        except ImportError:
            raise EthobenchError('the search with Optuna needs another package: pip install "ethobench[search]"') from None
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        job_values = {name: value for name, value in job.to_dict().items() if name not in ("params", "train", "source")}
        fixed = {name: value for name, value in job.to_dict()["params"].items() if name not in grid}
        identity = [job_values, fixed, list(by), {name: list(values) for name, values in grid.items()}, self.shares, self.seed]
        name = hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=8).hexdigest()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{job.model}-{name}.journal"
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))),
            study_name=name,
            load_if_exists=True,
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
        )


def _running_trials(study: optuna.Study) -> list[optuna.Trial]:
    """Return the trials that were running when the search was interrupted."""
    import optuna

    running = study.get_trials(states=(optuna.trial.TrialState.RUNNING,))
    return [optuna.Trial(study, trial._trial_id) for trial in running]


def _distributions(grid: Grid) -> dict[str, Any]:
    """Convert each list of positive numbers to a range, and any other list to a categorical choice."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    distributions: dict[str, Any] = {}
    for name, values in grid.items():
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) and v > 0 for v in values) and len(values) > 1
        if numbers and all(isinstance(v, int) for v in values):
            distributions[name] = IntDistribution(min(values), max(values), log=max(values) >= 10 * min(values))
        elif numbers:
            distributions[name] = FloatDistribution(min(values), max(values), log=max(values) >= 10 * min(values))
        else:
            distributions[name] = CategoricalDistribution(list(values))
    return distributions
