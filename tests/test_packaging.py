"""What a release consists of: one version, metadata that agree, and a wheel that has everything."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import ethobench as eb

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BOUND = re.compile(r"^([\w-]+)(?:-base)? ?>=([\d.]+)$")
PYTHONS = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def bounds(requirements: list[str]) -> dict[str, str]:
    matches = [BOUND.match(requirement) for requirement in requirements]
    return {match[1].lower().removesuffix("-base"): match[2] for match in matches if match}


def test_one_version_everywhere():
    assert PROJECT["dynamic"] == ["version"]
    assert yaml.safe_load(text("CITATION.cff"))["version"] == eb.__version__
    assert f'version = "{eb.__version__}"' in text("conda/meta.yaml")
    newest = re.search(r"^## \[(\d.*?)\]", text("CHANGELOG.md"), re.MULTILINE)
    assert newest
    assert newest[1] == eb.__version__


def test_the_changelog_has_the_sections_of_keep_a_changelog():
    changelog = text("CHANGELOG.md")
    assert re.search(r"^## \[[\d.]+\] - (\d{4}-\d\d-\d\d|unreleased)$", changelog, re.MULTILINE)
    kinds = re.findall(r"^### (.*)$", changelog, re.MULTILINE)
    assert kinds
    assert {*kinds} <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_names_the_four_papers():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "authors", "message", "license", "version"} <= {*citation}
    suites = [reference["notes"].rpartition(" ")[2] for reference in citation["references"]]
    assert suites == ["calms21.", "bebe.", "rodentbench.", "banos."]
    for reference in citation["references"]:
        assert {"type", "title", "authors", "year"} <= {*reference}
        assert "doi" in reference or "identifiers" in reference


def test_oldest_versions_are_the_lower_bounds():
    groups = (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    lower = bounds([requirement for group in groups for requirement in group])
    oldest = dict(line.split("==") for line in text("constraints-oldest.txt").splitlines() if not line.startswith("#"))
    assert {*bounds(PROJECT["dependencies"])} <= {*oldest}
    for package, version in oldest.items():
        assert re.fullmatch(re.escape(lower[package]) + r"(\.0)*", version), package


def test_the_conda_recipe_has_the_dependencies_of_the_core():
    recipe = yaml.safe_load(re.sub(r"^\{%.*$|\{\{ ?|\ ?\}\}", "", text("conda/meta.yaml"), flags=re.MULTILINE))
    run = bounds(recipe["requirements"]["run"])
    assert f">={run.pop('python')}" == PROJECT["requires-python"]
    assert run.pop("lightgbm") == bounds(PROJECT["optional-dependencies"]["boost"])["lightgbm"]
    assert run == bounds(PROJECT["dependencies"])


def test_workflows_test_the_versions_that_the_classifiers_name():
    workflows = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    matrix = workflows["test.yml"]["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS == ["3.11", "3.12", "3.13", "3.14"]
    assert [system.partition("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]
    targets = {*re.findall(r"^([\w-]+):", text("Makefile"), re.MULTILINE)}
    for name, workflow in workflows.items():
        assert workflow["permissions"] == {"contents": "read"}, name
        commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
        called = {target for command in commands for target in re.findall(r"make ([a-z][\w-]*)", command)}
        assert called <= targets, name
    assert workflows["release.yml"]["jobs"]["publish"]["permissions"] == {"id-token": "write"}


def test_templates_and_containers_are_valid():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert form["name"]
        assert all({"type", "attributes"} <= {*field} for field in form["body"])
    assert json.loads(text(".devcontainer/devcontainer.json"))["image"]
    lines = [line for line in text("Dockerfile").splitlines() if line and not line.startswith("#")]
    assert lines.index("USER 1000") < lines.index('ENTRYPOINT ["ethobench"]')
    copied = {word for line in lines if line.startswith("COPY") and "--from" not in line for word in line.split()[1:-1]}
    assert copied == {line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_wheel_and_sdist_are_complete(wheel):
    packed = {*zipfile.ZipFile(wheel).namelist()}
    assert wheel.name == f"ethobench-{eb.__version__}-py3-none-any.whl"
    sources = [path.relative_to(ROOT / "src") for path in (ROOT / "src" / "ethobench").rglob("*") if path.is_file()]
    assert {path.as_posix() for path in sources if "__pycache__" not in path.parts} <= packed
    assert not [name for name in packed if not name.startswith(("ethobench/", f"ethobench-{eb.__version__}.dist-info/"))]
    checked = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, wheel.parent.iterdir())], check=False)
    assert checked.returncode == 0


@pytest.mark.slow
def test_the_wheel_works_in_a_new_environment(wheel, tmp_path):
    """Dependencies are those of this environment, so that nothing is downloaded; the package itself is the wheel's."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    site = Path(subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True).strip())
    zipfile.ZipFile(wheel).extractall(site)
    (site / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: str) -> str:
        return subprocess.run([python, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    assert Path(run("-c", "import ethobench; print(ethobench.__file__)").strip()).is_relative_to(tmp_path)
    assert eb.__version__ in run("-m", "ethobench", "--version")
    program = "import ethobench as eb; data = eb.load_dataset('synthetic/tag', individuals=1, seconds=20); "
    run("-c", program + "eb.write_annotation(data.recordings[0].annotation(), 'a.csv')")
    run("-m", "ethobench", "score", "a.csv", "a.csv", "--report", "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000
