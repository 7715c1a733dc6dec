"""The registry of formats, models and other plug-ins."""

from __future__ import annotations

import pytest

from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.registry import Registry
from ethobench.formats import Format, formats


def test_registry_lists_without_importing_and_suggests():
    assert "tidy" in formats
    assert isinstance(formats["tidy"], Format)
    with pytest.raises(NotFoundError, match="did you mean 'tidy'"):
        formats["tidi"]
    registry: Registry[object] = Registry("thing", {"ethogram": "ethobench.core.ethogram"})
    assert registry.names() == ("ethogram",)
    with pytest.raises(EthobenchError, match="does not register a thing"):
        registry["ethogram"]
