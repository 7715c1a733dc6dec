"""Asking about many recordings, and handing each on as soon as all its windows are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ethobench.mllm.annotate import Assignment
from ethobench.mllm.ask import Asked
from ethobench.mllm.request import Request

AskAll = Callable[[Sequence[Request]], Iterable[Asked]]


def ask_about(assignments: Sequence[Assignment], ask_all: AskAll) -> Iterator[tuple[Assignment, list[Asked]]]:
    """Ask all questions, the same one once, and yield recordings with what came of theirs.

    Parameters
    ----------
    assignments : sequence of Assignment
    ask_all : callable
        `Asker.ask_all` or `Batcher.ask_all`.
    """
    questions = unique_requests(assignments)
    answers: dict[str, Asked] = {}
    waiting = list(assignments)
    for asked in ask_all(questions):
        answers[asked.request.key] = asked
        for assignment in [a for a in waiting if all(request.key in answers for request in a.requests)]:
            waiting.remove(assignment)
            yield assignment, [answers[request.key] for request in assignment.requests]


def unique_requests(assignments: Iterable[Assignment]) -> list[Request]:
    """Return the questions of all assignments, each once."""
    return list({request.key: request for assignment in assignments for request in assignment.requests}.values())
