"""Where a fleet's tables lie: `TO/<table>/job=<job>/rank=<rank>/part.parquet`, as Hive partitions.

`ranks` is the manifest: `TO/ranks/job=<job>/rank=<rank>/part.json`, one line of JSON a rank, written
last and readable without any engine. A rank without it is not there, whatever other files it has.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import Error, UsageError

#: Version of the layout; a rank of another one is ingested anew.
LAYOUT = 1

#: What Spark escapes in the name of a partition. Other characters stay as they are: it would not
#: put the bytes of an escaped one together again.
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")

#: What partitions of a missing value are called; no job can be.
_MISSING = "__HIVE_DEFAULT_PARTITION__"

#: Columns of the manifest, with the types that both engines know.
RANKS: dict[str, str] = {
    "file": "string",
    "file_bytes": "bigint",
    "file_mtime_ns": "bigint",
    "fingerprint": "string",
    "host": "string",
    "gpu": "string",
    "gpus": "bigint",
    "world_size": "bigint",
    "backend": "string",
    "base_time_ns": "bigint",
    "first_ns": "bigint",
    "span_ns": "bigint",
    "events": "bigint",
    "text_bytes": "bigint",
    "lost": "bigint",
    "parquet_bytes": "bigint",
    "laggard": "string",
    "ingest_seconds": "double",
}


def quoted(name: str) -> str:
    """A job's name as part of a path."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def unquoted(name: str) -> str:
    """The name that `quoted` made a part of a path."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), name)


def checked_job(name: str) -> str:
    """A name that can be a job's."""
    try:
        size = len(f"job={quoted(name)}".encode())
    except UnicodeEncodeError:
        raise UsageError("the job's name is no UTF-8 text", "name it with --job NAME") from None
    if not name or name == _MISSING or size > 255:
        raise UsageError(f"a job cannot be called {name[:80]!r}", "name it with --job NAME")
    return name


def checked_place(path: str | os.PathLike[str], what: str) -> Path:
    """A directory of this machine, or of storage that it has mounted."""
    text = os.fspath(path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        raise UsageError(
            f"{what} {text} is no path of a file system; object stores are not supported",
            "mount it, or copy it to storage that all hosts see",
        )
    return Path(text).absolute()


def part(to: Path, table: str, job: str, rank: int) -> Path:
    """The file of one table of one rank."""
    name = "part.json" if table == "ranks" else "part.parquet"
    return to / table / f"job={quoted(job)}" / f"rank={rank}" / name


@contextmanager
def replacing(path: Path, once: bool = False) -> Iterator[Path]:
    """A temporary name in the same directory, which becomes `path` when the block ends well; `once`
    leaves a file that is there. Engines pass over names that start with a dot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        if not once:
            os.replace(temporary, path)
        elif not path.exists():
            with suppress(FileExistsError):
                os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_manifest(path: Path, row: dict[str, Any]) -> None:
    """Makes a rank be there."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        # ASCII only: a lone surrogate in a file's name would not survive otherwise.
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(path: Path) -> dict[str, Any] | None:
    """What is known of a rank, if it is there and of this layout."""
    try:
        row = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) and row.get("layout") == LAYOUT else None


def jobs(fleet: Path) -> list[str]:
    """Names of the jobs that have a rank."""
    try:
        inside = sorted(entry.name for entry in os.scandir(fleet / "ranks"))
    except FileNotFoundError:
        inside = []
    names = [unquoted(name.removeprefix("job=")) for name in inside if name.startswith("job=")]
    return [name for name in names if ranks(fleet, name)]


def ranks(fleet: Path, job: str) -> dict[int, dict[str, Any]]:
    """The ranks of a job that are there, in order, with what is known of each."""
    directory = fleet / "ranks" / f"job={quoted(job)}"
    try:
        inside = [entry.name for entry in os.scandir(directory)]
    except FileNotFoundError:
        return {}
    numbers = sorted(int(name[5:]) for name in inside if re.fullmatch("rank=[0-9]+", name))
    found = {rank: read_manifest(part(fleet, "ranks", job, rank)) for rank in numbers}
    return {rank: row for rank, row in found.items() if row is not None}


def the_job(fleet: Path, named: str | None, flag: str) -> str:
    """The job that was asked for, or the only one."""
    found = jobs(fleet)
    if not found:
        raise Error(f"there is no rank in {fleet}", "laggard fleet ingest TRACES --to DIR")
    if named is None and len(found) > 1:
        some = ", ".join(repr(name) for name in found[:5]) + (", …" if len(found) > 5 else "")
        raise UsageError(f"there are {len(found)} jobs in {fleet}: {some}", f"name one with {flag} NAME")
    if named is not None and named not in found:
        some = ", ".join(repr(name) for name in found[:5]) + (", …" if len(found) > 5 else "")
        raise UsageError(f"there is no job {named!r} in {fleet}; there is {some}")
    return found[0] if named is None else named
