"""Finds traces to ingest, and extracts rank and host from their names."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from ..errors import Error
from .store import SUFFIXES, checked_job, checked_place

#: Bytes hashed at the start, middle and end of a file for its fingerprint.
_SAMPLE = 1 << 16

#: File names of PyTorch's `tensorboard_trace_handler`: host, process and time.
_HANDLER = re.compile(r"(?P<host>.+)_(?P<pid>[0-9]+)\.(?P<time>[0-9]+)\.pt\.trace\.json(\.gz|\.zst)?")
_RANK = re.compile(r"rank[_\-.]?0*(?P<rank>[0-9]{1,9})(?![0-9])", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"(?:^|[_\-.])0*(?P<rank>[0-9]{1,9})(?=\.)")
_IN_TRACE = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*([0-9]{1,9})')


@dataclass(frozen=True)
class Source:
    """A file that may be the trace of a rank."""

    path: Path
    job: str


@dataclass(frozen=True)
class Identity:
    """Identifies an unchanged file."""

    file_bytes: int
    file_mtime_ns: int
    fingerprint: str


def find(given: list[str | os.PathLike[str]], job: str | None) -> list[Source]:
    """Expands the given files and directories. Each directory is a job and stands for the traces in it."""
    sources: dict[Path, Source] = {}
    for each in given:
        path = checked_place(each, "the trace")
        if not path.exists():
            raise FileNotFoundError(2, "No such file or directory", os.fspath(each))
        if not path.is_dir():
            name = job if job is not None else path.parent.resolve().name or "job"
            sources.setdefault(path, Source(path, checked_job(name)))
            continue
        inside = sorted(entry for entry in path.iterdir() if entry.name.endswith(SUFFIXES) and entry.is_file())
        if not inside:
            raise Error(f"no trace (*.json, *.json.gz, *.json.zst) in {path}")
        name = checked_job(job if job is not None else path.resolve().name or "job")
        for file in inside:
            sources.setdefault(file, Source(file, name))
    return list(sources.values())


def identity(path: Path) -> Identity:
    """Size, modification time, and a hash of the start, middle and end of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        for start in (0, max(0, about.st_size // 2 - _SAMPLE // 2), max(0, about.st_size - _SAMPLE)):
            file.seek(start)
            digest.update(file.read(_SAMPLE))
    return Identity(about.st_size, about.st_mtime_ns, digest.hexdigest())


def host_of(name: str) -> str | None:
    """The host, if the file was named by PyTorch."""
    found = _HANDLER.fullmatch(name)
    return found["host"] if found else None


def rank_of(name: str) -> int | None:
    """The rank in a file name: `rank3`, `rank_3`, or the last number before a suffix."""
    if found := list(_RANK.finditer(name)):
        return int(found[-1]["rank"])
    # Numbers in names given by PyTorch are process ids and times.
    if _HANDLER.fullmatch(name):
        return None
    found = list(_LAST_NUMBER.finditer(name))
    return int(found[-1]["rank"]) if found else None


def peek(path: Path) -> int | None:
    """The rank from the first bytes of the trace or from its name. Loading the whole trace is more reliable."""
    try:
        with open(path, "rb") as file:
            head = file.read(_SAMPLE)
        if head.startswith(b"\x1f\x8b"):
            head = zlib.decompressobj(31).decompress(head, 4 * _SAMPLE)
    except (OSError, zlib.error):
        head = b""
    found = _IN_TRACE.search(head)
    return int(found[1]) if found else rank_of(path.name)
