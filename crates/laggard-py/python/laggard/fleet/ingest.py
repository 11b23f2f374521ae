"""Converts the trace of one rank to Parquet, on this machine or on a worker of a cluster.

A task may run again, or twice at the same time. It writes to temporary files, renames them, and
writes the manifest last, so that a rank is either complete or missing.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Error, FormatError
from . import sources, store

if TYPE_CHECKING:
    from .._laggard import Table

#: Columns to keep of each table; `None` keeps all.
KEPT: dict[str, list[str] | None] = {
    "kernels": [
        "start_ns",
        "dur_ns",
        "name",
        "class",
        "class_group",
        "activity",
        "phase",
        "step",
        "device",
        "stream",
        "op",
        "python",
        "bytes",
    ],
    "collectives": None,
    "steps": None,
    "gaps": None,
    "devices": None,
}

#: Columns of the table `run` in the manifest. Other columns would need a full summary of the trace.
FACTS = ("gpu", "world_size", "backend", "base_time_ns", "first_ns", "span_ns", "events", "text_bytes", "lost")

#: Tables that are kept on request.
MORE = ("launches", "ops", "python", "annotations", "memory")


@dataclass(frozen=True)
class Task:
    """A trace to ingest."""

    path: str
    job: str
    to: str
    #: Identifies the ingest, in which each rank may have only one file.
    run: str
    tables: tuple[str, ...] = ()
    rules: str | None = None
    #: Hash of the content of the rules file.
    rules_fingerprint: str | None = None
    threads: int | None = 1
    force: bool = False


@dataclass(frozen=True)
class Outcome:
    """The outcome of ingesting one trace."""

    path: str
    job: str
    #: `new`, `there` (ingested before), `bad` or `duplicate`.
    state: str
    rank: int | None = None
    #: Why it was skipped, or its losses.
    reason: str | None = None
    file_bytes: int = 0
    text_bytes: int = 0
    parquet_bytes: int = 0
    seconds: float = 0.0


def ingest_one(task: Task) -> Outcome:
    """Converts one trace to Parquet. Problems of the trace are returned in the outcome; problems of the
    target directory raise an exception."""
    began = time.monotonic()
    path = Path(task.path)

    def skipped(state: str, reason: str, rank: int | None = None) -> Outcome:
        return Outcome(task.path, task.job, state, rank, reason, seconds=time.monotonic() - began)

    try:
        identity = sources.identity(path)
        trace = _load(path, task)
        run = trace.run.select(["rank", "gpus", *FACTS]).head(1)[0]
    except (Error, OSError) as error:
        return skipped("bad", str(error))
    if not run["events"]:
        return skipped("bad", "the trace has no events")
    rank = run["rank"] if run["rank"] is not None else sources.rank_of(path.name)
    if rank is None or not 0 <= rank < 1 << 31:
        return skipped("bad", "neither the trace nor the file name has a rank")
    other = _claimed(task, rank)
    if other is not None:
        return skipped("duplicate", f"rank {rank} was already read from {other}", rank)
    to = Path(task.to)
    manifest = store.part(to, "ranks", task.job, rank)
    # The rank is missing until the manifest is written, so readers never see a mix of old and new tables.
    manifest.unlink(missing_ok=True)
    metadata = {"laggard.version": _version(), "laggard.layout": str(store.LAYOUT), "laggard.file": path.name}
    written = 0
    for name, columns in [*KEPT.items(), *((name, None) for name in task.tables)]:
        table = trace.table(name)
        target = store.part(to, name, task.job, rank)
        write_parquet(table if columns is None else table.select(columns), target, metadata)
        written += target.stat().st_size
    gpus = run["gpus"] or 0
    host = sources.host_of(path.name) or (f"node{rank // gpus}" if gpus > 1 else None)
    row = {
        "layout": store.LAYOUT,
        "tables": list(task.tables),
        "rules": task.rules_fingerprint,
        "file": task.path,
        "file_bytes": identity.file_bytes,
        "file_mtime_ns": identity.file_mtime_ns,
        "fingerprint": identity.fingerprint,
        "host": host,
        "gpus": gpus,
        **{name: run[name] for name in FACTS},
        "losses": trace.losses,
        "parquet_bytes": written,
        "laggard": _version(),
        "ingest_seconds": round(time.monotonic() - began, 6),
    }
    store.write_manifest(manifest, row)
    return Outcome(
        task.path,
        task.job,
        "new",
        rank,
        "; ".join(trace.losses) or None,
        identity.file_bytes,
        run["text_bytes"],
        written,
        time.monotonic() - began,
    )


def fits(row: dict[str, Any], task: Task, identity: sources.Identity) -> bool:
    """Whether an ingested rank is from this file and has the requested tables and rules."""
    return (
        all(row.get(name) == getattr(identity, name) for name in ("file_bytes", "file_mtime_ns", "fingerprint"))
        and set(task.tables) <= set(row.get("tables", ()))
        and row.get("rules") == task.rules_fingerprint
    )


def write_parquet(table: Table, path: Path, metadata: dict[str, str]) -> None:
    """Writes a table atomically with the writer of the extension, so that workers need no engine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write_parquet(path, metadata)


def _load(path: Path, task: Task) -> Any:
    from ..evidence import load

    found = load(path, index=False, threads=task.threads, rules=task.rules)
    if found.kind != "trace":
        raise FormatError(f"{path} is not a trace (kind: {found.kind})")
    return found


def _claimed(task: Task, rank: int) -> str | None:
    """Claims the rank for this file. Returns the other file if the rank is already claimed."""
    manifest = store.part(Path(task.to), "ranks", task.job, rank)
    claim = manifest.with_name(f".claim.{task.run}")
    with store.replacing(claim, once=True) as temporary:
        temporary.write_text(task.path, encoding="utf-8", errors="surrogateescape")
    holder = claim.read_text(encoding="utf-8", errors="surrogateescape")
    # A claim of this file may be from an earlier attempt that was killed.
    if holder != task.path:
        return holder
    row = store.read_manifest(manifest)
    if row is None or task.force or row["file"] == task.path:
        return None
    return str(row["file"]) if _unchanged(row) else None


def _unchanged(row: dict[str, Any]) -> bool:
    """Whether the file of an ingested rank is unchanged."""
    try:
        about = os.stat(row["file"])
    except OSError:
        return False
    return bool((about.st_size, about.st_mtime_ns) == (row["file_bytes"], row["file_mtime_ns"]))


def _version() -> str:
    from .._laggard import __version__

    return __version__
