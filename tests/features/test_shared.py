"""Values that are computed once while a recording is predicted."""

from __future__ import annotations

import pytest

from ethobench.features.shared import share_values, shared


class Source:
    """Equal to all others, but not the same."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source)

    __hash__ = None  # type: ignore[assignment]


def test_values_of_the_same_sources_and_equal_settings_are_computed_once():
    computed, source = [], Source()

    def value_of(kind: str, sources: tuple[object, ...], settings: object) -> int:
        return shared(kind, sources, settings, lambda: computed.append(kind) or len(computed))

    with share_values():
        assert value_of("a", (source,), [1]) == value_of("a", (source,), [1]) == 1
        others = [("b", (source,), [1]), ("a", (Source(),), [1]), ("a", (source,), [2]), ("a", (source, source), [1])]
        assert [value_of(*other) for other in others] == [2, 3, 4, 5]
        with share_values():
            assert value_of("a", (source,), [1]) == 1
        assert value_of("a", (source,), [1]) == 1
    assert len(computed) == 5


def test_nothing_is_kept_outside_the_context_or_after_an_error():
    source = Source()
    assert [shared("a", (source,), None, lambda value=value: value) for value in (1, 2)] == [1, 2]
    with pytest.raises(ZeroDivisionError), share_values():
        shared("a", (source,), None, lambda: 1 / 0)
    assert shared("a", (source,), None, lambda: 4) == 4
    with share_values():
        assert shared("a", (source,), None, lambda: 5) == 5


def test_the_outermost_context_that_keeps_a_kind_keeps_its_values():
    source, computed = Source(), []

    def value_of(kind: str) -> int:
        return shared(kind, (source,), None, lambda: computed.append(kind) or len(computed))

    with share_values("a"):
        with share_values():
            assert (value_of("a"), value_of("b"), value_of("b")) == (1, 2, 2)
        assert value_of("a") == 1
        assert (value_of("b"), value_of("b")) == (3, 4)  # kept by no active context
        with share_values("b"):
            assert (value_of("b"), value_of("b"), value_of("a")) == (5, 5, 1)
    assert value_of("a") == 6
