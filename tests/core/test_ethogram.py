"""Ethograms."""

from __future__ import annotations

import itertools

import pytest

from ethobench.core import Behavior, Ethogram
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.ethogram import guess_background


def test_codes_names_and_background():
    e = Ethogram(["attack", Behavior("bite", point=True), "other"], background="other")
    assert (len(e), e.names, e.background, e.background_name) == (3, ("attack", "bite", "other"), 2, "other")
    assert e["bite"].point
    assert e[0].name == "attack"
    assert "bite" in e
    assert [b.name for b in e] == list(e.names)
    assert e == Ethogram(list(e), "other")
    assert e != Ethogram(list(e))
    assert hash(e) == hash(Ethogram(list(e), "other"))


def test_invalid_ethograms_are_refused():
    with pytest.raises(EthobenchError, match="duplicate behaviors in the ethogram: 'a'"):
        Ethogram(["a", "a"])
    with pytest.raises(EthobenchError, match="has an empty name"):
        Ethogram([""])
    with pytest.raises(NotFoundError, match="no behavior 'x'"):
        Ethogram(["a"], background="x")


def test_restrict_rename_join():
    e = Ethogram([Behavior("a", "first"), Behavior("b", "second"), "other"], "other")
    assert e.restrict(["b", "a"]).background is None
    assert e.restrict(["other"]).background == 0
    merged = e.rename({"a": "b"})
    assert merged.names == ("b", "other")
    assert merged["b"].definition == "second"
    assert e.rename({"other": "none"}).background_name == "none"
    assert e.join(Ethogram(["c", "a"])).names == ("a", "b", "other", "c")
    with pytest.raises(NotFoundError):
        e.rename({"zzz": "a"})


@pytest.mark.parametrize(("names", "background"), [(["a", "Other"], "Other"), (["a"], None), (["other", "background"], None)])
def test_guess_background(names, background):
    assert guess_background(names) == background


def test_ethograms_differ_from_other_objects_and_suggest_similar_names():
    e = Ethogram(["attack", "bite"], exclusive=True)
    assert e != ["attack", "bite"]
    assert Behavior("attack") in e
    assert Behavior("rest") not in e
    with pytest.raises(NotFoundError, match=r"\(attack, bite\); did you mean 'attack'\?"):
        e.code("atack")
    with pytest.raises(NotFoundError, match=r"\(it is empty\)$"):
        Ethogram([]).code("a")


def test_exclusive_is_stated_if_both_sides_state_the_same():
    sides = {stated: Ethogram([f"a{stated}"], exclusive=stated) for stated in (True, False, None)}
    for first, second in itertools.product(sides, sides):
        assert sides[first].join(sides[second]).exclusive is (first if first == second else None)
    assert Ethogram([]).join(sides[True]).exclusive is True


def test_notebooks_show_the_type_of_each_behavior():
    html = Ethogram([Behavior("a", "x < y", key="k"), Behavior("b", point=True), "other"], "other")._repr_html_()
    for cells in (("0", "a", "state", "k", "x &lt; y"), ("1", "b", "point", "", ""), ("2", "other", "background", "", "")):
        assert "".join(f"<td>{cell}</td>" for cell in cells) in html


def test_only_duplicates_are_listed():
    with pytest.raises(EthobenchError, match=r"ethogram: 'a', 'c'$"):
        Ethogram(["c", "a", "b", "a", "c", "c"])
