"""Write docs/licenses.md: the dependencies in pyproject.toml, what each is for, and its license as its package states it.

    python docs/_licenses.py            # needs all extras: pip install ".[all,dev]"

A test compares the page with pyproject.toml and with the packages that are installed.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, files, metadata, requires
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licenses.md"
PURPOSES = {
    "av": "read and write videos (FFmpeg)",
    "axe-playwright-python": "checks of accessibility in a browser (with axe-core, MPL-2.0)",
    "banos": "reference in the tests of the BANOS metrics",
    "bottleneck": "fast moving windows",
    "build": "build the package",
    "codespell": "check the spelling",
    "cryptography": "TLS certificates of clusters started by a run",
    "dask-jobqueue": "SLURM, PBS and SGE",
    "distributed": "Dask clusters",
    "duckdb": "SQL on results",
    "google-genai": "Gemini",
    "h5py": "HDF5 files of SLEAP, JABS, NWB and MATLAB",
    "hatchling": "build the package",
    "hypothesis": "property tests",
    "import-linter": "check the layers",
    "ipykernel": "run the tutorials",
    "jinja2": "templates of reports and prompts",
    "lightgbm": "boosted trees",
    "matplotlib": "figures",
    "mkdocs-material": "this site",
    "movement": "exchange with movement's datasets",
    "mypy": "check types",
    "nbclient": "run the tutorials",
    "nbformat": "read the tutorials",
    "ndx-ethogram": "ethograms in NWB files",
    "numpy": "arrays",
    "onnx": "write encoders for tests",
    "onnxruntime": "encoders of video frames in the ONNX format",
    "openai": "OpenAI and compatible servers",
    "openpyxl": "Excel files",
    "optuna": "search of hyper-parameters",
    "pandas": "tables",
    "pandas-stubs": "check types",
    "pillow": "pictures in clips",
    "playwright": "tests in a browser",
    "pooch": "downloads with checksums",
    "pre-commit": "checks before a commit",
    "pyarrow": "Parquet, fast CSV",
    "pydantic": "validation of what files contain",
    "pynwb": "NWB files",
    "pytest": "tests",
    "pytest-xdist": "tests in several processes",
    "pyyaml": "YAML files of DeepLabCut and others",
    "rich": "tables and progress in the terminal",
    "ruff": "style",
    "safetensors": "weights of networks, without pickle",
    "scikit-learn": "classifiers, clustering",
    "scipy": "filters, matching, statistics, MATLAB files",
    "shapely": "zones",
    "skops": "save scikit-learn models without pickle",
    "sleap-io": "SLEAP projects",
    "starlette": "the viewer's server",
    "statsmodels": "mixed models of group comparisons",
    "torch": "networks",
    "twine": "check the package",
    "typer": "the command line",
    "types-pyyaml": "check types",
    "uvicorn": "the viewer's server",
    "xarray": "tests of the exchange with movement",
}
SHORT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "BSD License": "BSD",
    "Simplified BSD": "BSD-2-Clause",
    "MIT License": "MIT",
    "MIT License (MIT)": "MIT",
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0",
}
NOT_IN_ALL = {"movement": "BSD-3-Clause"}
"""Licenses of packages that the extra `all` does not install."""
CLASSIFIER = "License :: OSI Approved :: "
LONGEST = 60  # characters of a field that is an identifier, not the text of a license


def normalized(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(requirement: str) -> str:
    """Return the package that a requirement names."""
    return normalized(re.match(r"[\w.-]+", requirement)[0])  # type: ignore[index]


def license_of(package: str) -> str | None:
    """Return the license that an installed package states; None if it is not installed."""
    try:
        stated = metadata(package)
    except PackageNotFoundError:
        return None
    expression = stated.get("License-Expression")
    classifiers = [c.removeprefix(CLASSIFIER) for c in stated.get_all("Classifier") or () if c.startswith(CLASSIFIER)]
    field = (stated.get("License") or "").strip().splitlines()
    short_field = field[0] if len(field) == 1 and len(field[0]) <= LONGEST else ""
    if not (expression or classifiers or field):
        return _from_file(package)
    text = expression or " and ".join(SHORT.get(c, c) for c in classifiers) or short_field or field[0]
    return SHORT.get(text, text)


def _from_file(package: str) -> str:
    """Return the first line of the license file of a package whose metadata name no license."""
    texts = [file.read_text() for file in files(package) or () if file.name.upper().startswith("LICENSE")]
    first = texts[0].strip().splitlines()[0] if texts else "not stated"
    return SHORT.get(first, first)


def groups() -> dict[str, list[str]]:
    """Return the packages of the core, of each extra, and for development, as pyproject.toml lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: packages for name, packages in project["optional-dependencies"].items() if name != "all"}
    return {name: [requirement_name(p) for p in packages] for name, packages in {"core": project["dependencies"], **extras}.items()}


def closure(packages: list[str]) -> list[str]:
    """Return the installed packages that these need, directly or not, without those of extras."""
    reached: set[str] = set()
    waiting = list(packages)
    while waiting:
        name = waiting.pop()
        if name in reached or license_of(name) is None:
            continue
        reached.add(name)
        waiting += [requirement_name(r) for r in requires(name) or () if "extra ==" not in r]
    return sorted(reached - {*packages})


def page() -> str:
    """Return the page."""
    lines = [TOP]
    for group, packages in groups().items():
        title = {"core": "Core", "dev": "Development and tests"}.get(group, f"Extra `{group}`")
        lines += [f"## {title}", "", "| package | license | for |", "|---|---|---|"]
        lines += [f"| {package} | {license_of(package) or NOT_IN_ALL[package]} | {PURPOSES[package]} |" for package in packages]
        lines.append("")
        if group == "core":
            further = ", ".join(f"{package} ({license_of(package)})" for package in closure(packages))
            lines += [f"These need, in turn: {further}.", ""]
    return "\n".join(lines)


TOP = """# Licenses of dependencies

Ethobench has the MIT license. It needs the packages under "Core"; everything else is optional. The license is the one that the package
states in its metadata. Written by `docs/_licenses.py`.

The core has no copyleft dependency, with one exception at second hand: certifi, the list of certificates that downloads need, has the
MPL 2.0, which covers changes to its own files only.

Weights and datasets have terms of their own: `ethobench datasets show NAME` prints those of a dataset, and a notice is printed when weights
with other terms are loaded.
"""

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
