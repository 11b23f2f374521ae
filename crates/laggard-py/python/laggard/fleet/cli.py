"""The verb `fleet` of the command line: flags to calls, answers to a file or standard output."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .engine import Engine, choose
from .ingest import Outcome
from .report import SCHEMA, Answer, compare, report
from .run import run
from .show import many, size, visible
from .store import checked_place

#: Rows of each table, unless flags say otherwise.
TOP = 10

FAILED = 2

_SUFFIXES = {".txt": "text", ".json": "json", ".md": "md", ".markdown": "md"}


def main(args: dict[str, Any], quiet: bool, progress: bool) -> int:
    """Runs `fleet` with the flags that the command line parsed; gives the exit code."""
    ((verb, flags),) = args["verb"].items()
    if verb != "ingest":
        _target(flags)  # a flag that cannot be is better said before the work than after it
    with choose(args["engine"], args["master"], args["worker_python"]) as engine:
        if verb == "ingest":
            return _ingest(engine, flags, quiet, progress)
        if verb == "report":
            answer = report(engine, checked_place(flags["fleet"], "the directory"), flags["job"])
        else:
            places = [checked_place(fleet, "the directory") for fleet in flags["fleet"]]
            if len(places) == 1 and flags["a"] == flags["b"]:
                raise UsageError("a job is not compared with itself", "name two with --a NAME and --b NAME")
            answer = compare(engine, (places[0], flags["a"]), (places[-1], flags["b"]))
    _put(answer, flags)
    return 0


def _ingest(engine: Engine, flags: dict[str, Any], quiet: bool, progress: bool) -> int:
    meter = _Meter() if progress and not quiet and sys.stderr.isatty() else None
    try:
        done = run(
            engine,
            flags["from"],
            flags["to"],
            flags["job"],
            flags["tables"],
            flags["rules"],
            flags["jobs"],
            flags["force"],
            meter,
        )
    finally:
        if meter is not None:
            meter.clear()
    for outcome in done.outcomes:
        if outcome.state in ("bad", "duplicate"):
            print(f"warning: {visible(outcome.path)} is skipped: {visible(outcome.reason)}", file=sys.stderr)
        elif outcome.reason and not quiet:
            print(f"warning: {visible(outcome.path)}: {visible(outcome.reason)}", file=sys.stderr)
    if not done.ranks:
        print(f"error: none of {many(len(done.outcomes), 'file')} is a rank's trace", file=sys.stderr)
        return FAILED
    if not quiet:
        print(done)
    return 0


class _Meter:
    """How far an ingest is, on one line of the terminal."""

    def __init__(self) -> None:
        self._bytes = 0

    def __call__(self, done: int, of: int, outcome: Outcome) -> None:
        self._bytes += outcome.text_bytes
        print(f"\r\x1b[2K  {done:,} of {many(of, 'rank')}, {size(self._bytes)} of JSON", end="", file=sys.stderr)
        sys.stderr.flush()

    def clear(self) -> None:
        """Takes the line away."""
        print("\r\x1b[2K", end="", file=sys.stderr)
        sys.stderr.flush()


def _target(flags: dict[str, Any]) -> tuple[str, Path | None]:
    """The form, and the file if it is not standard output."""
    form: str | None = "json" if flags["json"] else flags["format"]
    if flags["output"] is None or flags["output"] == "-":
        return form or "text", None
    path = Path(flags["output"])
    form = form or _SUFFIXES.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"the suffix of {path} says no form", "--format text, json or md")
    if path.exists() and not flags["force"] and not _ours(path):
        raise UsageError(f"{path} is there, and of another kind", "overwrite it with --force")
    return form, path


def _ours(path: Path) -> bool:
    """Whether a file is an earlier answer, or empty."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096).decode("utf-8", "replace")
    except OSError:
        return False
    return not head.strip() or SCHEMA in head or head.startswith(("Fleet", "## Fleet"))


def _put(answer: Answer, flags: dict[str, Any]) -> None:
    form, path = _target(flags)
    top = None if flags["all"] else TOP if flags["top"] is None else flags["top"]
    out = answer.json() if form == "json" else answer.markdown(top) if form == "md" else answer.text(top)
    if path is None:
        sys.stdout.buffer.write(out.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()
        return
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_text(out, encoding="utf-8", errors="backslashreplace")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
