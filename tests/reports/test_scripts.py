"""Modules become one script."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files

import pytest

from ethobench.reports.scripts import join_modules

MODULES = {
    "main": 'import { one, two } from "./numbers.js";\nimport { one as x } from "./numbers.js";\n',
    "good": 'import { one, two } from "./numbers.js";\nconst hidden = one + two;\nconsole.log(hidden);\n',
    "numbers": "const hidden = 1;\nexport const one = hidden;\nexport function two() { return 2; }\nexport class Three {}\n",
    "a": 'import { b } from "./b.js";\nexport const a = 1;\n',
    "b": 'import { a } from "./a.js";\nexport const b = 1;\n',
    "default": "export default 3;\n",
}


def test_imports_become_names_and_scopes_stay_apart():
    text = join_modules("good", MODULES.__getitem__)
    assert text.index("numbers_module = ") < text.index("good_module = ")
    assert "const { one, two } = numbers_module;" in text
    assert "return { one, two, Three };" in text
    assert "import" not in text
    assert "export" not in text


@pytest.mark.parametrize(("entry", "told"), [("main", "does not know"), ("default", "does not know"), ("a", "in a circle")])
def test_what_it_does_not_know_is_refused(entry, told):
    with pytest.raises(ValueError, match=told):
        join_modules(entry, MODULES.__getitem__)


def test_every_module_is_used():
    folder = files("ethobench.reports") / "static"
    read = []

    def take(name: str) -> str:
        read.append(name)
        return (folder / f"{name}.js").read_text(encoding="utf-8")

    join_modules("main", take)
    assert sorted(read) == sorted(p.name.removesuffix(".js") for p in folder.iterdir() if p.name.endswith(".js"))


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node on the path")
def test_the_joined_script_runs(tmp_path):
    (tmp_path / "joined.mjs").write_text(join_modules("good", MODULES.__getitem__).replace("one + two", "one + two()"), encoding="utf-8")
    done = subprocess.run(["node", tmp_path / "joined.mjs"], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
