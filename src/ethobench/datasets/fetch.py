"""Fetching published files, once, into the data folder."""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ValidationError

from ethobench.core.errors import EthobenchError, MissingDataError
from ethobench.core.files import temporary_folder

TIMEOUT = 60
MAX_RATIO = 500


def data_folder() -> Path:
    """Return the folder of named datasets: ``$ETHOBENCH_DATA`` or one in the user's cache folder."""
    stated = os.environ.get("ETHOBENCH_DATA")
    if stated:
        return Path(stated)
    import pooch

    return Path(pooch.os_cache("ethobench")) / "data"


class RemoteFile(BaseModel):
    """One file of a public record."""

    url: str
    name: str
    checksum: str | None = None


class _Link(BaseModel):
    content: str


class _Entry(BaseModel):
    key: str
    checksum: str | None = None
    links: _Link


class _Listing(BaseModel):
    entries: list[_Entry]


def list_record(api: str) -> list[RemoteFile]:
    """List the files of a record on an InvenioRDM server (Zenodo, CaltechDATA), with the checksums it states.

    Parameters
    ----------
    api : str
        The record's address, e.g. ``https://zenodo.org/api/records/7947104``.
    """
    request = urllib.request.Request(f"{api}/files", headers={"Accept": "application/json", "User-Agent": "ethobench"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310 - the address is ours, not a file's
        listing = _Listing.model_validate(json.load(response))
    return [RemoteFile(url=e.links.content, name=e.key, checksum=e.checksum) for e in listing.entries]


def fetch_from_record(api: str, pattern: str, target: Path, accept: Callable[[str], bool], pinned: str | None = None) -> None:
    """Download the file of a record that matches a pattern and unpack the members that are wanted.

    Parameters
    ----------
    api : str
        The record's address.
    pattern : str
        Shell-style pattern of the file's name; alternatives are separated by ``|``, the first that matches wins.
    target : Path
        Folder for the members.
    accept : callable
        Tells from a member's name whether it is wanted.
    pinned : str, optional
        The checksum that the file must have, whatever the record says: ``sha256:...`` (preferred) or ``md5:...``.

    Raises
    ------
    MissingDataError
        One line that names the file and the folder to put it in, where the download does not work.
    """
    try:
        files = list_record(api)
        chosen = next((f for p in pattern.split("|") for f in files if fnmatch.fnmatch(f.name, p)), None)
        if chosen is None:
            raise MissingDataError(f"{api} lists no file {pattern}; put its content into {target} by hand")
        target.mkdir(parents=True, exist_ok=True)
        with temporary_folder(target.parent) as scratch:
            archive = download(chosen, scratch, pinned)
            unpack(archive, target, accept)
    except EthobenchError:
        raise
    except (OSError, ValueError, ValidationError) as error:
        reason = getattr(error, "reason", None) or error
        name = pattern.split("|", maxsplit=1)[0]
        raise MissingDataError(
            f"{name} could not be fetched from {api} ({reason}); download it by hand and unpack it into {target}"
        ) from None


def download(file: RemoteFile, folder: Path, pinned: str | None = None) -> Path:
    """Download one file with a progress bar on a terminal, and check it."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    progress = os.isatty(2) if hasattr(os, "isatty") else False
    downloader = pooch.HTTPDownloader(progressbar=progress and _has_tqdm(), timeout=TIMEOUT)
    name = PurePosixPath(file.name).name
    return Path(pooch.retrieve(file.url, known_hash=pinned or file.checksum, fname=name, path=folder, downloader=downloader))


def unpack(archive: Path, target: Path, accept: Callable[[str], bool]) -> list[Path]:
    """Unpack the wanted members of a zip file flat or as they lie, each appearing whole.

    Names that leave the folder, links and archives that would unpack to far more than they are, are refused.
    """
    made = []
    try:
        with zipfile.ZipFile(archive) as source:
            wanted = [m for m in source.infolist() if not m.is_dir() and accept(m.filename)]
            if sum(m.file_size for m in wanted) > MAX_RATIO * max(archive.stat().st_size, 10_000):
                raise EthobenchError(f"{archive.name} would unpack to far more than it is; refused")
            for member in wanted:
                relative = PurePosixPath(member.filename.replace("\\", "/"))
                if relative.is_absolute() or ".." in relative.parts or ":" in member.filename:
                    raise EthobenchError(f"{archive.name} holds a name that leaves its folder: {member.filename!r}; refused")
                place = target.joinpath(*relative.parts)
                place.parent.mkdir(parents=True, exist_ok=True)
                partial = place.with_name(place.name + ".part")
                with source.open(member) as packed, partial.open("wb") as file:
                    shutil.copyfileobj(packed, file, 1 << 20)
                partial.replace(place)
                made.append(place)
    except zipfile.BadZipFile as error:
        raise MissingDataError(f"{archive.name} is damaged ({error}); fetch it again") from None
    return made


def _has_tqdm() -> bool:
    from importlib.util import find_spec

    return find_spec("tqdm") is not None
