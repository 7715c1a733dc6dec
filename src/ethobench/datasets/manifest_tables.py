"""Tables of a study: the rows of ``recordings.csv``, the behaviors in ``ethogram.csv`` and the keypoints in ``keypoints.csv``."""

from __future__ import annotations

import os
import re
import unicodedata
import warnings
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from ethobench.core import Behavior, Ethogram, Keypoint, Track
from ethobench.core.errors import EthobenchError, FormatError, ParameterError, ReadWarning
from ethobench.core.video import Camera
from ethobench.core.wording import plural
from ethobench.datasets.labeled_behaviors import LABELED, parse_labeled_cell
from ethobench.formats.reader_options import parse_option_text
from ethobench.formats.tables import Table, read_table
from ethobench.formats.text import parse_number

MANIFEST = "recordings.csv"
ETHOGRAM = "ethogram.csv"
KEYPOINTS = "keypoints.csv"
CORRECTIONS = "corrections"
"""Subfolder of a study that the viewer saves corrections to."""

COLUMNS = (
    "recording",
    "individual",
    "rate",
    "signals",
    "annotations",
    "annotator",
    "entry",
    "options",
    "video",
    "video_offset",
    "features",
    "features_rate",
    "subject",
    "split",
    "fold",
    "observed_from",
    "observed_to",
    LABELED,
)
NUMBERS = ("width", "height", "pixels_per_cm")
TRUE = {"yes", "y", "true", "1", "x"}
FILES = ("signals", "annotations", "video", "features")
"""Columns with paths."""
SEVERAL_FILES = ("video", "features")
"""Columns that may have several paths, separated by semicolons."""

ALIASES = {"channel": "entry"}
"""Other names of columns that are read without a message."""

SYNONYMS = {
    "recording": "recording_id recording_name rec rec_id id name video_id video_name file filename file_name session_id trial_id",
    "individual": "individual_id animal animal_id animal_name subject_id mouse mouse_id rat rat_id bird bird_id fish fish_id ind",
    "rate": "fps hz frame_rate framerate frames_per_second sampling_rate sample_rate sampling_frequency frequency",
    "signals": "signal pose poses pose_file poses_file tracking tracking_file tracks signals_file signal_file dlc_file sleap_file",
    "annotations": "annotation label labels labels_file label_file annotation_file annotations_file behavior_file scoring boris_file",
    "annotator": "annotators rater rater_name observer observer_name coder scorer labeler labeller annotated_by",
    "entry": "entries observation observation_id stream",
    "video": "videos video_file video_path movie movie_file",
    "features": "feature feature_file features_file embedding embeddings embedding_file embeddings_file",
    "features_rate": "feature_rate embedding_rate embeddings_rate",
    "observed_from": "observed_start scored_from scored_start labeled_from labelled_from observation_start",
    "observed_to": "observed_stop observed_until scored_to scored_until labeled_to labelled_to observation_stop observation_end",
    LABELED: "behaviors_labelled behaviours_labeled behaviours_labelled labeled_behaviors labelled_behaviours behavior_labeled",
    "pixels_per_cm": "pixel_per_cm pix_per_cm px_per_cm pix_per_cm_approx pixels_per_centimeter pixels_per_centimetre",
}
"""Names that people give to a column. One that lacks the column of the right name is a mistake, not a column of their own."""

_COLUMN_OF = {name: column for column, names in SYNONYMS.items() for name in names.split()}
_MAX_LISTED_FILES = 50_000
MAX_OFFSET = 1e7
"""Maximum offset of a camera in seconds."""


@dataclass
class ManifestRow:
    """One row of ``recordings.csv``.

    Attributes
    ----------
    location : str
        The row in error messages, such as ``"row 3"``.
    root : Path
        The folder that paths are relative to.
    cells : dict of str to str
        By column.
    rate, features_rate, fold, observed_from, observed_to, options, numbers, labeled
        Parsed cells; see `check_row`. `labeled` is None if the row does not state what was labeled.
    is_correction : bool
        Whether the row is from the corrections of the viewer.
    """

    location: str
    root: Path
    cells: dict[str, str]
    rate: float | None = None
    features_rate: float | None = None
    fold: int | None = None
    observed_from: float = 0.0
    observed_to: float | None = None
    options: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    labeled: tuple[Track, ...] | None = None
    is_correction: bool = False

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def path(self, column: str) -> Path | None:
        """Return the path in a cell, of several videos the first."""
        return next(iter(self.paths(column)), None)

    def paths(self, column: str) -> list[Path]:
        """Return the paths in a cell; Windows separators, and umlauts in one or two characters, work on every system.

        The columns ``video`` (one for each camera) and ``features`` may have several, separated by semicolons.
        """
        if not self[column]:
            return []
        path = self._existing(self[column])
        if column not in SEVERAL_FILES or ";" not in self[column] or path.exists():
            return [path]
        return [self._existing(name.strip()) for name in self[column].split(";") if name.strip()]

    def _existing(self, name: str) -> Path:
        path = self.root / name.replace("\\", "/")
        variants = (Path(unicodedata.normalize(form, str(path))) for form in ("NFC", "NFD"))
        return path if path.exists() else next((variant for variant in variants if variant.exists()), path)

    def cameras(self) -> tuple[Camera, ...]:
        """Return the cameras of the recording.

        Raises
        ------
        ParameterError
            If the offsets are not numbers, or not one for each video.
        """
        paths, cells = self.paths("video"), [cell.strip() for cell in self["video_offset"].split(";")]
        if not self["video_offset"]:
            return tuple(Camera(path) for path in paths)
        try:
            offsets = [parse_number(cell.replace(",", ".")) if cell else 0.0 for cell in cells]
        except ValueError:
            offsets = []
        if len(offsets) != len(paths) or not all(abs(offset) < MAX_OFFSET for offset in offsets):
            raise ParameterError(
                f"video_offset must have one number of seconds for each of the {len(paths)} videos, separated by semicolons, "
                f"got {self['video_offset']!r}"
            )
        return tuple(Camera(path, offset) for path, offset in zip(paths, offsets, strict=True))


class Problems:
    """All problems of a manifest, so that one error can list them.

    Attributes
    ----------
    path : Path
        The manifest.
    problems : list of tuple of str
        Location and message of each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[tuple[str, str]] = []

    def add(self, location: str, message: object) -> None:
        """Add one problem."""
        self.problems.append((location, str(message)))

    @property
    def messages(self) -> list[str]:
        """All problems as text."""
        return [f"{location}: {message}" for location, message in self.problems]

    @cached_property
    def files(self) -> list[str]:
        """Files below the folder of the manifest, as paths relative to it; the first 50,000."""
        files: list[str] = []
        for folder, subfolders, names in os.walk(self.path.parent):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            relative = Path(folder).relative_to(self.path.parent)
            files += [(relative / name).as_posix() for name in sorted(names) if not name.startswith(".")]
            if len(files) >= _MAX_LISTED_FILES:
                break
        return files

    def similar_file(self, cell: str) -> str:
        """Return the file that a path which does not exist may refer to: the same name elsewhere, or a similar one; empty if none."""
        cell = cell.replace("\\", "/")
        name, folder = _comparable(cell.rpartition("/")[2]), cell.rpartition("/")[0]
        same_name = [file for file in self.files if _comparable(file.rpartition("/")[2]) == name]
        if same_name:
            return same_name[0]
        nearby = [file for file in self.files if file.rpartition("/")[0] == folder] or self.files
        return next(iter(get_close_matches(cell, nearby, n=1, cutoff=0.8)), "")

    def raise_if_any(self) -> None:
        """Raise an `EthobenchError` that lists all problems."""
        if self.messages:
            title = plural(len(self.messages), "{path} has a problem:", "{path} has {n} problems:", path=self.path)
            raise EthobenchError("\n  ".join([title, *self.messages]))


def read_rows(path: Path, problems: Problems) -> list[ManifestRow]:
    """Read and check the rows of a manifest; problems of the header and of single rows are collected."""
    table = _with_lowercase_header(read_table(path))
    duplicates = sorted({name for name in table.header if name and table.header.count(name) > 1})
    if duplicates:
        raise FormatError(path, f"duplicate columns: {', '.join(duplicates)}", "header")
    for i, (name, column) in enumerate(zip(table.header, _intended_columns(table.header), strict=True)):
        if column:
            problems.add("header", f"column {name!r} is not known; did you mean {column!r}?")
            table.header[i] = column
    if "recording" not in table:
        raise FormatError(path, f"no column 'recording'; a manifest has: {', '.join(COLUMNS)}", "header")
    rows = []
    for cells, line in zip(table.rows, table.row_numbers, strict=True):
        row = ManifestRow(f"row {line}", path.parent, {k: v.strip() for k, v in zip(table.header, cells, strict=True)})
        check_row(row, problems)
        rows.append(row)
    if not rows:
        problems.add("header", "no recordings are listed")
    return rows


def _intended_columns(header: list[str]) -> list[str]:
    """Return for each column the one that was probably meant, empty if none: a synonym or a misspelling of a column that is missing."""
    missing = [column for column in (*COLUMNS, *NUMBERS) if column not in header]
    intended = []
    for name in header:
        column = _COLUMN_OF.get(re.sub(r"[\W_]+", "_", name), "")
        if name not in (*COLUMNS, *NUMBERS) and not column:
            column = next(iter(get_close_matches(name, COLUMNS, n=1, cutoff=0.8)), "")
        if column in missing:
            missing.remove(column)
            intended.append(column)
        else:
            intended.append("")
    return intended


def read_correction_rows(path: Path) -> list[ManifestRow]:
    """Read the manifest of corrections; rows that cannot be used are skipped with a warning, so that the study still loads."""
    try:
        rows = read_rows(path, Problems(path))
    except (EthobenchError, OSError) as error:
        warnings.warn(f"the corrections are skipped: {error}", ReadWarning, stacklevel=4)
        return []
    usable = []
    for row in rows:
        row.is_correction, row.location = True, f"{CORRECTIONS}, {row.location}"
        problems = Problems(path)
        check_row(row, problems)
        for message in problems.messages:
            warnings.warn(f"{path}: a correction is skipped: {message}", ReadWarning, stacklevel=4)
        if not problems.messages:
            usable.append(row)
    return usable


def check_row(row: ManifestRow, problems: Problems) -> None:
    """Parse the numbers of a row, and check that it names a recording and files that exist."""
    if not row["recording"]:
        problems.add(row.location, "no name in column 'recording'")
    for column in ("rate", "features_rate", "fold", *NUMBERS):
        if not row[column]:
            continue
        value = _parse_cell(row[column], integer=column == "fold")
        if value is None:
            integer, number = "{0} must be an integer >= 0, got {1!r}", "{0} must be a positive number, got {1!r}"
            problems.add(row.location, (integer if column == "fold" else number).format(column, row[column]))
        elif column == "rate":
            row.rate = value
        elif column == "features_rate":
            row.features_rate = value
        elif column == "fold":
            row.fold = int(value)
        else:
            row.numbers[column] = value
    _parse_observed(row, problems)
    _parse_texts(row, problems)
    for column in FILES:
        paths = row.paths(column)
        for path in paths:
            if not path.exists():
                cell = row[column] if len(paths) == 1 else path.relative_to(row.root).as_posix()
                similar = problems.similar_file(cell)
                problems.add(row.location, f"{column}: {cell} does not exist" + (f"; did you mean {similar}?" if similar else ""))
    try:
        row.cameras()
    except ParameterError as error:
        problems.add(row.location, error)


def _parse_observed(row: ManifestRow, problems: Problems) -> None:
    """Parse the labeled time of a row."""
    for column in ("observed_from", "observed_to"):
        if row[column]:
            value = 0.0 if re.fullmatch(r"0+([.,]0*)?", row[column]) else _parse_cell(row[column], integer=False)
            if value is None:
                problems.add(row.location, f"{column} must be a time in seconds, got {row[column]!r}")
            elif column == "observed_from":
                row.observed_from = value
            else:
                row.observed_to = value
    if row.observed_to is not None and row.observed_to <= row.observed_from:
        problems.add(row.location, f"observed_to ({row.observed_to:g} s) must be after observed_from ({row.observed_from:g} s)")


def _parse_texts(row: ManifestRow, problems: Problems) -> None:
    """Parse the options and the list of labeled behaviors of a row."""
    try:
        row.options = parse_option_text(row["options"])
    except EthobenchError as error:
        problems.add(row.location, f"options: {error}")
    try:
        row.labeled = parse_labeled_cell(row[LABELED]) if row[LABELED] else None
    except EthobenchError as error:
        problems.add(row.location, error)


def _parse_cell(cell: str, *, integer: bool) -> float | None:
    """Parse a positive number, or an integer >= 0, with decimal point or comma; None if the cell is neither."""
    if re.fullmatch(r"\d{1,3}(,\d{3})+", cell):  # 1,000 could be one or a thousand
        return None
    try:
        value = parse_number(cell.replace(",", "."))
    except ValueError:
        return None
    is_valid = (0 <= value < float("inf") and value == int(value)) if integer else 1e-9 <= value < float("inf")
    return value if is_valid else None


def read_ethogram(path: Path, entries: set[str]) -> tuple[Ethogram | None, dict[str, str]]:
    """Read ``ethogram.csv``; behaviors of entries (streams, channels) that no recording uses are skipped.

    A behavior may have several aliases, separated by semicolons or in several rows; all but its first row need only these two cells.

    Returns
    -------
    ethogram : Ethogram or None
        None if there is no such file.
    aliases : dict of str to str
        Alias to behavior.
    """
    if not path.is_file():
        return None, {}
    behaviors: dict[str, Behavior] = {}
    aliases: dict[str, str] = {}
    background = None
    for location, row in _labeled_rows(path, "behavior"):
        name = row["behavior"]
        if row.get("entry") and row["entry"] not in entries:
            continue
        for alias in filter(None, (text.strip() for text in row.get("alias", "").split(";"))):
            if aliases.setdefault(alias, name) != name:
                raise FormatError(path, f"{alias!r} is an alias of both {aliases[alias]!r} and {name!r}; keep one of them", location)
        if name in behaviors and row.get("alias"):
            continue
        if name in behaviors:
            raise FormatError(path, f"duplicate behavior {name!r}", location)
        is_point = row.get("point", "").lower() in TRUE
        behaviors[name] = Behavior(name, row.get("definition", ""), is_point, row.get("key", ""), row.get("entry", ""))
        if row.get("background", "").lower() in TRUE:
            if background is not None:
                raise FormatError(path, f"two behaviors are background: {background!r} and {name!r}")
            background = name
    for alias, name in aliases.items():
        if alias in behaviors:
            raise FormatError(path, f"{alias!r} is both a behavior and an alias of {name!r}")
    return Ethogram(behaviors.values(), background), aliases


def read_keypoints(path: Path) -> dict[str, Keypoint]:
    """Read ``keypoints.csv``: roles and mirror partners by keypoint; empty if there is no such file."""
    if not path.is_file():
        return {}
    rows = [row for _, row in _labeled_rows(path, "keypoint")]
    return {row["keypoint"]: Keypoint(row["keypoint"], row.get("role", ""), row.get("mirror", "")) for row in rows}


def _labeled_rows(path: Path, required: str) -> list[tuple[str, dict[str, str]]]:
    """Return location and cells by column of each row of a table."""
    table = _with_lowercase_header(read_table(path))
    if required not in table:
        raise FormatError(path, f"no column {required!r}", "header")
    rows = (dict(zip(table.header, (cell.strip() for cell in cells), strict=True)) for cells in table.rows)
    return [(f"row {line}", row) for line, row in zip(table.row_numbers, rows, strict=True)]


def _with_lowercase_header(table: Table) -> Table:
    """Return a table with lower-case column names, and those of `ALIASES` under their documented names."""
    header = [name.strip().lower() for name in table.header]
    table.header = [name if (column := ALIASES.get(name, name)) in header else column for name in header]
    return table


def _comparable(name: str) -> str:
    """Return a file name in a form in which names that look the same are equal."""
    return unicodedata.normalize("NFC", name).casefold().strip()
