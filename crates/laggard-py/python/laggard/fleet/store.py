"""The directory layout of a fleet: `TO/<table>/job=<job>/rank=<rank>/part.parquet`, as Hive partitions.

`ranks` is the manifest: `TO/ranks/job=<job>/rank=<rank>/part.json`, one line of JSON per rank. It is
written last and can be read without an engine. A rank without it is ignored, even if it has other files.
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

#: Suffixes of traces.
SUFFIXES = (".json", ".json.gz", ".json.zst")

#: Version of the layout. Ranks with another version are ingested again.
LAYOUT = 1

#: Characters that Spark escapes in partition names. Others must not be escaped, because Spark does not
#: reassemble the bytes of an escaped multi-byte character.
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")

#: Partition name of a missing value, which cannot be the name of a job.
_MISSING = "__HIVE_DEFAULT_PARTITION__"

#: Columns of the manifest, with types known to both engines.
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
    """Escapes a job name for use in a path."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def unquoted(name: str) -> str:
    """Reverts `quoted`."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), name)


def checked_job(name: str) -> str:
    """Returns the name if it is a valid job name; raises otherwise."""
    try:
        size = len(f"job={quoted(name)}".encode())
    except UnicodeEncodeError:
        raise UsageError("the job name is not valid UTF-8", "set it with --job NAME") from None
    if not name or name == _MISSING or size > 255:
        raise UsageError(f"invalid job name {name[:80]!r}", "set it with --job NAME")
    return name


def checked_place(path: str | os.PathLike[str], what: str) -> Path:
    """Converts to an absolute path; raises for URLs of object stores."""
    text = os.fspath(path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        raise UsageError(
            f"{what} {text} is not a file system path; object stores are not supported",
            "mount it, or copy it to storage that all hosts can access",
        )
    return Path(text).absolute()


def part(to: Path, table: str, job: str, rank: int) -> Path:
    """The file of one table of one rank."""
    name = "part.json" if table == "ranks" else "part.parquet"
    return to / table / f"job={quoted(job)}" / f"rank={rank}" / name


@contextmanager
def replacing(path: Path, once: bool = False) -> Iterator[Path]:
    """A temporary file in the same directory that becomes `path` when the block succeeds. With `once`, an
    existing file is kept. Engines ignore names that start with a dot."""
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
    """Writes the manifest of a rank, which makes the rank visible to readers."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        # ASCII only, to preserve lone surrogates in file names.
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Reads the manifest of a rank; None if it is missing or has another layout."""
    try:
        row = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) and row.get("layout") == LAYOUT else None


def jobs(fleet: Path) -> list[str]:
    """Names of all jobs with at least one rank."""
    try:
        inside = sorted(entry.name for entry in os.scandir(fleet / "ranks"))
    except FileNotFoundError:
        inside = []
    names = [unquoted(name.removeprefix("job=")) for name in inside if name.startswith("job=")]
    return [name for name in names if ranks(fleet, name)]


def ranks(fleet: Path, job: str) -> dict[int, dict[str, Any]]:
    """The manifests of all ranks of a job, in order."""
    directory = fleet / "ranks" / f"job={quoted(job)}"
    try:
        inside = [entry.name for entry in os.scandir(directory)]
    except FileNotFoundError:
        return {}
    numbers = sorted(int(name[5:]) for name in inside if re.fullmatch("rank=[0-9]+", name))
    found = {rank: read_manifest(part(fleet, "ranks", job, rank)) for rank in numbers}
    return {rank: row for rank, row in found.items() if row is not None}


def the_job(fleet: Path, named: str | None, flag: str) -> str:
    """The named job, or the only one."""
    found = jobs(fleet)
    if not found and fleet.is_dir() and any(entry.name.endswith(SUFFIXES) for entry in os.scandir(fleet)):
        raise Error(
            f"{fleet} contains traces, not a fleet",
            f"report on one job: laggard report {fleet}; many jobs: laggard fleet ingest {fleet} --to DIR first",
        )
    if not found:
        raise Error(f"no ranks in {fleet}", "ingest traces first: laggard fleet ingest TRACES --to DIR")
    if named is None and len(found) > 1:
        some = ", ".join(repr(name) for name in found[:5]) + (", …" if len(found) > 5 else "")
        raise UsageError(f"{fleet} has {len(found)} jobs: {some}", f"select one with {flag} NAME")
    if named is not None and named not in found:
        some = ", ".join(repr(name) for name in found[:5]) + (", …" if len(found) > 5 else "")
        raise UsageError(f"no job {named!r} in {fleet}", f"jobs: {some}")
    return found[0] if named is None else named
