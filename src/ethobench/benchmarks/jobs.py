"""Jobs with what every one of them needs to say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ethobench.core import Dataset
from ethobench.models import models
from ethobench.runs import Job, digest_of

BEGINNINGS = ("init", "weights")
"""Hyper-parameters that name files to begin with."""


def make_job(
    benchmark: str,
    data: Dataset,
    model: str,
    train: Iterable[str],
    test: Iterable[str],
    params: Mapping[str, Any] | None = None,
    **more: Any,
) -> Job:
    """Make a job of a dataset at hand.

    Parameters
    ----------
    benchmark : str
    data : Dataset
    model : str
    train, test : iterable of str
        Recordings' ids.
    params : mapping, optional
        Hyper-parameters that differ from the defaults; files that they name count by their content.
    **more
        Everything else that a `Job` has.
    """
    told = dict(params or {})
    facts: dict[str, Any] = {
        "dataset": data.name,
        "version": data.version,
        "revision": models[model].revision,
        "digest": digest_of(*(Path(told[name]) for name in BEGINNINGS if told.get(name))),
    }
    return Job(benchmark, model=model, train=tuple(train), test=tuple(test), params=told, **{**facts, **more})
