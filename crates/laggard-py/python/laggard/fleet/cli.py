"""The command-line verb `fleet`."""

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

#: Default number of rows per table.
TOP = 10

FAILED = 2

_SUFFIXES = {".txt": "text", ".json": "json", ".md": "md", ".markdown": "md"}


def main(args: dict[str, Any], quiet: bool, progress: bool) -> int:
    """Runs `fleet` with parsed flags and returns the exit status."""
    ((verb, flags),) = args["verb"].items()
    if verb != "ingest":
        _target(flags)  # rejects invalid flags before the work starts
    with choose(args["engine"], args["master"], args["worker_python"]) as engine:
        if verb == "ingest":
            return _ingest(engine, flags, quiet, progress)
        if verb == "report":
            answer = report(engine, checked_place(flags["fleet"], "the directory"), flags["job"])
        else:
            places = [checked_place(fleet, "the directory") for fleet in flags["fleet"]]
            if len(places) == 1 and flags["a"] == flags["b"]:
                raise UsageError("cannot compare a job with itself", "select two jobs with --a NAME and --b NAME")
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
        print(f"error: no rank traces in {many(len(done.outcomes), 'file')}", file=sys.stderr)
        return FAILED
    if not quiet:
        print(done)
    return 0


class _Meter:
    """Shows the progress of an ingest on one line of the terminal."""

    def __init__(self) -> None:
        self._bytes = 0

    def __call__(self, done: int, of: int, outcome: Outcome) -> None:
        self._bytes += outcome.text_bytes
        print(f"\r\x1b[2K  {done:,} of {many(of, 'rank')}, {size(self._bytes)} of JSON", end="", file=sys.stderr)
        sys.stderr.flush()

    def clear(self) -> None:
        """Clears the line."""
        print("\r\x1b[2K", end="", file=sys.stderr)
        sys.stderr.flush()


def _target(flags: dict[str, Any]) -> tuple[str, Path | None]:
    """The output format, and the file; None is standard output."""
    form: str | None = "json" if flags["json"] else flags["format"]
    if flags["output"] is None or flags["output"] == "-":
        return form or "text", None
    path = Path(flags["output"])
    form = form or _SUFFIXES.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"cannot infer a format from the suffix of {path}", "give --format text, json or md")
    if path.exists() and not flags["force"] and not _ours(path):
        raise UsageError(f"{path} exists and is not a fleet report", "use --force to overwrite it")
    return form, path


def _ours(path: Path) -> bool:
    """Whether a file is an earlier report, or empty."""
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
