"""The interactive prompt, with history, completion and `\\d` to list tables. Statements end with `;`."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Error, UsageError
from . import schema, show
from .functions import FUNCTIONS
from .statements import is_complete
from .write import Place, put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .session import Session

_LONGEST_HISTORY = 5000
_WORDS = "select from where group order by limit having join using with as and or not null distinct count sum min max"

HELP = r"""Statements end with ;
  \d        tables
  \d TABLE  columns of a table
  \f        functions over intervals
  \q        quit, like Ctrl-D
Ctrl-C clears the line or cancels the running query. SQL reference: https://duckdb.org/docs
"""


def run(session: Session, place: Place, top: int | None, *, quiet: bool) -> int:
    """Runs statements from standard input until it ends. On a terminal, it continues after errors."""
    at_terminal = sys.stdin.isatty()
    if at_terminal and not quiet:
        tables = ", ".join(session.tables) or "none"
        print(f"Tables: {tables}\nEnd statements with ;  Type \\? for help", file=sys.stderr)
    with _history(session) if at_terminal else contextlib.nullcontext():
        for text in _statements(at_terminal):
            try:
                _answer(session, text, place, top)
            except KeyboardInterrupt:
                if not at_terminal:
                    raise
                print("interrupted", file=sys.stderr)
            except Error as error:
                if not at_terminal:
                    raise
                print(f"error: {error}", file=sys.stderr)
                if error.hint:
                    print(f"\nhint: {error.hint}", file=sys.stderr)
            except _End:
                break
    return 0


class _End(Exception):
    """The user typed `\\q`."""


def _answer(session: Session, text: str, place: Place, top: int | None) -> None:
    if text.startswith("\\"):
        _command(session, text)
        return
    for statement in session.statements(text):
        put(session, statement, place, top)


def _command(session: Session, text: str) -> None:
    command, *words = text.rstrip(";").split()
    width = shutil.get_terminal_size((show.WIDTH, 24)).columns
    if command in ("\\q", "\\quit", "\\exit"):
        raise _End
    if command in ("\\?", "\\h", "\\help"):
        print(HELP, end="")
    elif command == "\\f":
        print("\n".join(f"{one.signature}  {one.about}" for one in FUNCTIONS))
    elif command == "\\d" and not words:
        print(schema.of_tables(session.tables.values(), width), end="")
    elif command == "\\d":
        table = session.tables.get(words[0])
        if table is None:
            raise UsageError(f"no table {words[0]}", f"tables: {', '.join(session.tables)}")
        print(schema.of_table(table, width), end="")
    else:
        raise UsageError(f"unknown command {command}", "\\? lists all commands")


def _statements(at_terminal: bool) -> Iterator[str]:
    """Yields the input as statements and commands."""
    text = ""
    while True:
        try:
            line = _line("laggard> " if not text else "    ...> ") if at_terminal else sys.stdin.readline()
        except KeyboardInterrupt:
            if not at_terminal:
                raise
            print(file=sys.stderr)
            text = ""
            continue
        except EOFError:
            print(file=sys.stderr)
            line = ""
        else:
            line = line if not at_terminal else line + "\n"
        if not line:
            if text.strip():
                yield text
            return
        if not text and line.lstrip().startswith("\\"):
            yield line.strip()
            continue
        if not text and at_terminal and line.strip().lower() in ("exit", "quit"):
            return
        text += line if text or line.strip() else ""
        if is_complete(text):
            yield text
            text = ""


def _line(prompt: str) -> str:
    # Standard output is for results. `input` supports line editing only if both ends are a terminal.
    if sys.stdout.isatty():
        return input(prompt)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def history_file() -> Path:
    """The file with the history of typed lines."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "laggard" / "query_history"


@contextlib.contextmanager
def _history(session: Session) -> Iterator[None]:
    try:
        import readline
    except ImportError:  # not available in every interpreter
        yield
        return
    path = history_file()
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_LONGEST_HISTORY)
    readline.set_completer_delims(" \t\n,;()=<>+-*/'\"")
    readline.set_completer(completer(session))
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)


def completer(session: Session) -> Callable[[str, int], Any]:
    """Completes names of tables, columns and functions; `kernels.d` completes columns of one table."""
    names = set(_WORDS.split()) | set(session.tables)
    names |= {column for table in session.tables.values() for column in table.columns}
    names |= {one.signature.split("(")[0] + "(" for one in FUNCTIONS}
    names |= {f"{table.name}.{column}" for table in session.tables.values() for column in table.columns}

    def complete(start: str, state: int) -> str | None:
        dotted = "." in start
        found = sorted(name for name in names if name.startswith(start.lower()) and ("." in name) == dotted)
        return found[state] if state < len(found) else None

    return complete
