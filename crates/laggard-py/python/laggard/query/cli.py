"""The command-line verb `query`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from . import prompt, schema, show
from .session import Session, engine
from .sources import Source, gathered
from .write import places, replaced, rows_as, write

if TYPE_CHECKING:
    from .write import Place

#: Default number of table rows on a terminal.
TOP = 40
#: Maximum number of loss warnings per file.
_LOSSES = 3


def main(args: dict[str, Any], quiet: bool) -> int:
    """Runs the verb with parsed flags and returns the exit status."""
    sql, files = sql_and_files(args)
    top = None if args["all"] else TOP if args["top"] is None else args["top"]
    wanted = places(args["output"], args["format"], files, args["force"])

    def note(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr)

    if args["schema"]:
        return _schema(args, files, wanted, quiet)
    engine()  # fails before files are loaded if DuckDB is missing
    session = Session(_load(args, files, quiet), threads=args["threads"])
    try:
        if sql is None:
            if args["output"] not in (None, "-"):
                raise UsageError("-o needs a query", "give SQL before the files")
            return prompt.run(session, wanted[0], top, quiet=quiet)
        write(session, sql, wanted, top, note)
        return 0
    finally:
        session.close()


def sql_and_files(args: dict[str, Any]) -> tuple[str | None, list[str]]:
    """Splits the arguments into the query and the files. The first argument may be a file too."""
    first, files = args["sql"], list(args["files"])
    script = args["sql_file"]
    if first is not None and (script is not None or args["schema"] or is_file(first)):
        first, files = None, [first, *files]
    if script is not None:
        first = sys.stdin.read() if script == "-" else Path(script).read_text(encoding="utf-8")
    return first, files


def is_file(word: str) -> bool:
    """Whether a word is a file, or looks like the name of a missing file, instead of SQL."""
    if "\n" not in word and os.path.exists(word):
        return True
    return not any(char.isspace() or char in ";()" for char in word) and any(char in word for char in "./")


def _load(args: dict[str, Any], files: list[str], quiet: bool) -> list[Source]:
    shown = False

    def warn(text: str) -> None:
        if not quiet:
            print(f"warning: {text}", file=sys.stderr)

    def progress(done: int, count: int) -> None:
        nonlocal shown
        if not quiet and sys.stderr.isatty():
            shown = True
            sys.stderr.write(f"\rloaded {done} of {count} files")
            sys.stderr.flush()

    try:
        sources = gathered(
            files,
            rules=args["rules"],
            index=not args["no_index"],
            threads=args["threads"],
            warn=warn,
            progress=progress,
        )
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
    for source in sources:
        losses = source.evidence.losses
        for loss in losses[:_LOSSES]:
            warn(f"{source.file}: {show.printable(loss)}")
        if len(losses) > _LOSSES:
            warn(f"{source.file}: {len(losses) - _LOSSES} more warnings, see laggard report")
    return sources


def _schema(args: dict[str, Any], files: list[str], wanted: list[Place], quiet: bool) -> int:
    kinds = [source.evidence.kind for source in _load(args, files, quiet)] if files else None
    for place in wanted:
        if place.form == "table":
            width = shutil.get_terminal_size((show.WIDTH, 24)).columns if place.path is None else show.WIDTH
            text = schema.text(kinds, width)
        else:
            text = rows_as(place.form, schema.NAMES, list(schema.rows(kinds)))
        if place.path is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            with replaced(place.path) as temporary:
                Path(temporary).write_text(text, encoding="utf-8")
    return 0
