"""Download published files, once, into the data folder."""

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
from ethobench.core.files import atomic_path, temporary_folder

TIMEOUT = 60
MAX_RATIO = 500


def data_folder() -> Path:
    """Return the folder of named datasets: ``$ETHOBENCH_DATA``, else a folder in the user's cache."""
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
    """List the files of a record on an InvenioRDM server (Zenodo, CaltechDATA), with their checksums.

    Parameters
    ----------
    api : str
        Address of the record, e.g. ``https://zenodo.org/api/records/7947104``.
    """
    request = urllib.request.Request(f"{api}/files", headers={"Accept": "application/json", "User-Agent": "ethobench"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310 - the address is constant, not read from a file
        listing = _Listing.model_validate(json.load(response))
    return [RemoteFile(url=e.links.content, name=e.key, checksum=e.checksum) for e in listing.entries]


def fetch_from_record(api: str, pattern: str, target: Path, accept: Callable[[str], bool], pinned: str | None = None) -> None:
    """Download the file of a record that matches a pattern, and unpack accepted members.

    Parameters
    ----------
    api : str
        Address of the record.
    pattern : str
        Shell-style pattern of the file name. Alternatives are separated by ``|``; the first that matches is used.
    target : Path
        Folder for the members.
    accept : callable
        Returns from the name of a member whether to unpack it.
    pinned : str, optional
        Checksum that the file must have, regardless of the record: ``sha256:...`` (preferred) or ``md5:...``.

    Raises
    ------
    MissingDataError
        If the download fails. The message names the file and the folder to unpack it into.
    """
    try:
        files = list_record(api)
        chosen = next((f for p in pattern.split("|") for f in files if fnmatch.fnmatch(f.name, p)), None)
        if chosen is None:
            raise MissingDataError(f"{api} has no file {pattern}; download the dataset by hand and unpack it into {target}")
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
            f"{name} could not be downloaded from {api} ({reason}); download it by hand and unpack it into {target}"
        ) from None


def download(file: RemoteFile, folder: Path, pinned: str | None = None) -> Path:
    """Download one file, with a progress bar on a terminal, and verify its checksum."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    progress = os.isatty(2) if hasattr(os, "isatty") else False
    downloader = pooch.HTTPDownloader(progressbar=progress and _has_tqdm(), timeout=TIMEOUT)
    name = PurePosixPath(file.name).name
    return Path(pooch.retrieve(file.url, known_hash=pinned or file.checksum, fname=name, path=folder, downloader=downloader))


def unpack(archive: Path, target: Path, accept: Callable[[str], bool]) -> list[Path]:
    """Unpack the accepted members of a zip file, each atomically; return their paths.

    Raises
    ------
    EthobenchError
        If a name points outside the folder, or the unpacked size is implausible (a zip bomb).
    MissingDataError
        If the archive is damaged.
    """
    unpacked = []
    try:
        with zipfile.ZipFile(archive) as source:
            members = [m for m in source.infolist() if not m.is_dir() and accept(m.filename)]
            if sum(m.file_size for m in members) > MAX_RATIO * max(archive.stat().st_size, 10_000):
                raise EthobenchError(f"{archive.name} refused: its unpacked size is more than {MAX_RATIO} times its size")
            for member in members:
                relative = PurePosixPath(member.filename.replace("\\", "/"))
                if relative.is_absolute() or ".." in relative.parts or ":" in member.filename:
                    raise EthobenchError(f"{archive.name} refused: the name {member.filename!r} points outside the folder")
                path = target.joinpath(*relative.parts)
                with (
                    atomic_path(path, overwrite=True, durable=False) as temporary,
                    source.open(member) as packed,
                    temporary.open("wb") as file,
                ):
                    shutil.copyfileobj(packed, file, 1 << 20)
                unpacked.append(path)
    except zipfile.BadZipFile as error:
        raise MissingDataError(f"{archive.name} is damaged ({error}); download it again") from None
    return unpacked


def _has_tqdm() -> bool:
    from importlib.util import find_spec

    return find_spec("tqdm") is not None
