"""Creating models by name, and packages that are not installed."""

from __future__ import annotations

import pytest

import ethobench as eb
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.models import registry


@pytest.mark.parametrize(("name", "extra"), [("boost", "boost"), ("auto", "boost"), ("tcn", "nn"), ("crnn", "nn"), ("conv1d", "nn")])
def test_missing_packages_are_named(monkeypatch, name, extra):
    monkeypatch.setattr(registry, "find_spec", lambda package: None)
    with pytest.raises(EthobenchError, match=rf'model {name!r} needs .*pip install "ethobench\[{extra}\]"'):
        eb.create_model(name)


def test_installed_packages_need_no_command():
    assert registry.install_command({"numpy": "nn"}) == ""
    assert registry.install_command({"numpy": "nn", "no_such_package": "boost"}) == 'pip install "ethobench[boost]"'


def test_a_similar_name_is_suggested():
    with pytest.raises(NotFoundError, match="no model 'boots'; did you mean 'boost'"):
        eb.create_model("boots")


def test_modules_of_a_saved_model(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=20)
    eb.create_model("dt").fit(data).save(tmp_path / "model")
    assert registry.modules_of_saved_model(tmp_path / "model") == ["ethobench.models.frame_classifiers", "ethobench.models.skops_files"]
    assert registry.modules_of_saved_model(tmp_path / "nowhere") == []
    for content in ("", "[]", '{"model": "os"}', '{"model": ["dt"]}'):  # nothing but a module of a model is imported
        (tmp_path / "model" / "model.json").write_text(content, encoding="utf-8")
        assert registry.modules_of_saved_model(tmp_path / "model") == []
    assert {*registry.TRAINING_LIBRARIES} <= {*registry.MODULES.values()}
