"""Runs an ingest: selects new traces, lets the engine convert them, and collects the outcomes."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import UsageError
from . import sources, store
from .engine import Engine
from .ingest import MORE, Outcome, Task, fits

#: Age in seconds at which temporary files are considered leftovers of a killed ingest.
_DEAD_S = 3600


@dataclass
class Ingested:
    """The result of an ingest."""

    to: Path
    seconds: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, *states: str) -> list[Outcome]:
        """Outcomes with these states: `new`, `there`, `bad`, `duplicate`."""
        return [outcome for outcome in self.outcomes if outcome.state in states]

    @property
    def ranks(self) -> int:
        """Number of requested ranks that are available now."""
        return len(self.of("new", "there"))

    def __str__(self) -> str:
        from .show import ingested

        return ingested(self)


def run(
    engine: Engine,
    given: Sequence[str | os.PathLike[str]],
    to: str | os.PathLike[str],
    job: str | None = None,
    tables: Sequence[str] = (),
    rules: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[int, int, Outcome], None] | None = None,
) -> Ingested:
    """Ingests the traces that are new or have changed."""
    began = time.monotonic()
    place = store.checked_place(to, "the directory")
    for table in tables:
        if table not in MORE:
            raise UsageError(f"unknown table {table!r}: use {', '.join(MORE)}")
    found = sources.find(list(given), job)
    place.mkdir(parents=True, exist_ok=True)
    common = Task(
        path="",
        job="",
        to=os.fspath(place),
        run=uuid.uuid4().hex,
        tables=tuple(sorted(set(tables))),
        rules=os.fspath(Path(rules).absolute()) if rules is not None else None,
        rules_fingerprint=hashlib.blake2b(Path(rules).read_bytes(), digest_size=16).hexdigest() if rules else None,
        force=force,
    )
    done = Ingested(place)
    tasks = _planned(found, common, place, done)
    if len(tasks) == 1 and engine.name == "duckdb":
        tasks = [replace(tasks[0], threads=None)]

    def finished(outcome: Outcome) -> None:
        done.outcomes.append(outcome)
        if progress is not None:
            progress(len(done.outcomes), len(found), outcome)

    try:
        if tasks:
            engine.ingest(tasks, jobs, finished)
    finally:
        for name in {source.job for source in found}:
            _sweep(place, name, common.run)
    done.outcomes.sort(key=lambda one: (one.job, one.rank if one.rank is not None else 1 << 31, one.path))
    done.seconds = time.monotonic() - began
    return done


def _planned(found: list[sources.Source], common: Task, place: Path, done: Ingested) -> list[Task]:
    """Plans the tasks. Traces ingested before and second files of a rank are added to the outcomes."""
    known = {name: store.ranks(place, name) for name in {source.job for source in found}}
    by_identity = {
        (name, row["file_bytes"], row["file_mtime_ns"], row["fingerprint"]): (rank, row)
        for name, rows in known.items()
        for rank, row in rows.items()
    }
    tasks = []
    taken: dict[tuple[str, int], str] = {}
    for source in found:
        task = replace(common, path=os.fspath(source.path), job=source.job)
        try:
            identity = sources.identity(source.path)
        except OSError as error:
            done.outcomes.append(Outcome(task.path, task.job, "bad", None, str(error)))
            continue
        key = (source.job, identity.file_bytes, identity.file_mtime_ns, identity.fingerprint)
        rank, row = by_identity.get(key, (None, None))
        moved = row is not None and row["file"] != task.path
        if row is not None and not common.force and fits(row, task, identity):
            state, reason = "there", None
            if moved and os.path.exists(row["file"]):
                state, reason = "duplicate", f"rank {rank} was already read from {row['file']}"
            done.outcomes.append(
                Outcome(
                    task.path, task.job, state, rank, reason, row["file_bytes"], row["text_bytes"], row["parquet_bytes"]
                )
            )
            if rank is not None and state == "there":
                taken[source.job, rank] = task.path
            continue
        tasks.append(task)
    kept = []
    for task in tasks:
        # Most traces have their rank in the first bytes. The first file of a rank then always wins.
        rank = sources.peek(Path(task.path))
        other = taken.setdefault((task.job, rank), task.path) if rank is not None else task.path
        if other == task.path:
            kept.append(task)
        else:
            reason = f"rank {rank} was already read from {other}"
            done.outcomes.append(Outcome(task.path, task.job, "duplicate", rank, reason))
    return kept


def _sweep(place: Path, job: str, run: str) -> None:
    """Removes the temporary files of this ingest and leftovers of killed ones."""
    now = time.time()
    for left in place.glob(f"*/job={_literal(store.quoted(job))}/rank=*/.*"):
        try:
            dead = now - left.stat().st_mtime > _DEAD_S
            if left.name == f".claim.{run}" or dead and left.name.startswith((".claim.", ".part.")):
                left.unlink()
        except OSError:
            continue


def _literal(name: str) -> str:
    # All other glob characters are already escaped in job names.
    return name.replace("[", "[[]")
