"""Writes results to standard output or to files, without overwriting other files by accident."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import EngineMissing, Error, UsageError
from . import show
from .tables import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .session import Session
    from .statements import Statement

FORMS = ("table", "csv", "json", "parquet", "arrow")
_SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".txt": "table",
    ".text": "table",
}
_HEAD = 4096
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Place:
    """An output format and its file; None is standard output."""

    form: str
    path: str | None = None


def places(output: str | None, form: str | None, inputs: list[str], force: bool) -> list[Place]:
    """The outputs of a query. The suffix of a file selects its format, `--format` that of standard output. With a
    file, standard output is used only if `--format` is given too. Raises before any file is loaded if the output
    cannot be written."""
    if output is None or output == "-":
        return [Place(form or "table")]
    by_suffix = _SUFFIXES.get(os.path.splitext(output)[1].lower())
    if by_suffix is None and form is None:
        raise UsageError(f"cannot infer a format from the suffix of {output}: give --format")
    file = Place(by_suffix or form or "table", output)
    _ensure_replaceable(file.form, output, inputs, force)
    return [file, Place(form)] if by_suffix and form else [file]


def _ensure_replaceable(form: str, path: str, inputs: list[str], force: bool) -> None:
    if os.path.isdir(path):
        raise UsageError(f"cannot write {path}: it is a directory")
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise UsageError(f"cannot write {path}: no such directory: {directory}")
    if not os.path.isfile(path):
        return
    if any(os.path.exists(one) and os.path.samefile(path, one) for one in inputs):
        raise UsageError(f"cannot write {path}: the query reads this file")
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head and not force and not _looks_like(head, form):
        raise UsageError(f"{path} exists and is not a query result of this format: use --force to overwrite it")


def _looks_like(head: bytes, form: str) -> bool:
    """Whether the start of a file looks like a result of this format."""
    if form == "parquet":
        return head.startswith(b"PAR1")
    if form == "arrow":
        return head.startswith((b"\xff\xff\xff\xff", b"ARROW1"))
    try:
        text = head.decode("utf-8", "strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError:
        return False
    if form == "json":
        return text.startswith("[\n\t{") or text.split() in (["[]"], ["[", "]"])
    lines = text.split("\n")
    if form == "table":
        return len(lines) > 1 and bool(lines[1].strip()) and set(lines[1]) <= set("─ ")
    whole = lines[:-1] if len(head) == _HEAD or not lines[-1] else lines
    widths = {len(row) for row in csv.reader(whole)}
    return len(widths) == 1 and not text.lstrip().startswith(("{", "[", "<"))


def write(session: Session, sql: str, wanted: list[Place], top: int | None, note: Callable[[str], None]) -> None:
    """Runs a query and writes the result of its last statement to all outputs."""
    statements = session.statements(sql)
    if not statements:
        raise UsageError("the query is empty")
    for statement in statements[:-1]:
        session.answer(statement)
    for place in wanted:
        put(session, statements[-1], place, top)
        if place.path is not None:
            note(f"wrote {place.path}")


def put(session: Session, statement: Statement, place: Place, top: int | None) -> None:
    """Runs one statement and writes its result to one output."""
    if place.form == "table":
        answer = session.answer(statement)
        if place.path is not None:
            with replaced(place.path) as temporary, open(temporary, "w", encoding="utf-8") as file:
                file.write(answer.text(None))
        else:
            width = shutil.get_terminal_size((show.WIDTH, 24)).columns
            sys.stdout.write(answer.text(top, width))
            sys.stdout.flush()
        return
    if place.path is not None:
        with replaced(place.path) as temporary:
            _fill(session, statement, place.form, temporary)
        return
    if sys.stdout.isatty() and place.form in ("parquet", "arrow"):
        raise UsageError(
            f"cannot write {place.form} to a terminal", "give -o FILE, or redirect the output to a file or program"
        )
    with tempfile.TemporaryDirectory(prefix="laggard-") as directory:
        temporary = os.path.join(directory, "answer")
        _fill(session, statement, place.form, temporary)
        sys.stdout.flush()
        with open(temporary, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, _BUFFER)
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def replaced(path: str) -> Iterator[str]:
    """A temporary file that replaces `path` when the block ends. Devices and pipes are written in place."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with tempfile.TemporaryDirectory(prefix="laggard-") as directory:
            temporary = os.path.join(directory, "answer")
            yield temporary
            with open(temporary, "rb") as source, open(target, "wb") as device:
                shutil.copyfileobj(source, device, _BUFFER)
        return
    handle, temporary = tempfile.mkstemp(".tmp", ".laggard-", os.path.dirname(target))
    os.close(handle)
    try:
        yield temporary
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _fill(session: Session, statement: Statement, form: str, path: str) -> None:
    if form == "arrow":
        _fill_arrow(session, statement, path)
        return
    options = {
        "csv": "format csv, header",
        "json": "format json, array true",
        "parquet": "format parquet, compression zstd",
    }[form]
    columns = "*"
    if form == "json":
        # JSON cannot represent infinity and NaN.
        doubles = [name for name, type_ in session.types(statement) if type_ in ("DOUBLE", "FLOAT")]
        finite = [f"if(isfinite({quoted(name)}), {quoted(name)}, null) as {quoted(name)}" for name in doubles]
        columns = f"* replace ({', '.join(finite)})" if finite else "*"
    session.copy(statement, path, options, columns)


def _fill_arrow(session: Session, statement: Statement, path: str) -> None:
    """Writes an Arrow IPC stream with pyarrow or polars: DuckDB would have to download an extension."""
    for writer in (_by_pyarrow, _by_polars):
        with contextlib.suppress(ImportError):
            writer(session, statement, path)
            return
    raise EngineMissing("writing Arrow files needs pyarrow or polars", "pip install pyarrow, or write .parquet")


def _by_pyarrow(session: Session, statement: Statement, path: str) -> None:
    import pyarrow  # type: ignore[import-untyped,unused-ignore]

    with pyarrow.RecordBatchReader.from_stream(session.answer(statement)) as reader:
        with pyarrow.ipc.new_stream(path, reader.schema) as sink:
            for batch in reader:
                sink.write_batch(batch)


def _by_polars(session: Session, statement: Statement, path: str) -> None:
    import polars

    polars.DataFrame(session.answer(statement)).write_ipc_stream(path)


def rows_as(form: str, names: list[str], rows: list[tuple[Any, ...]]) -> str:
    """Formats rows as CSV or JSON without DuckDB."""
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
        return out.getvalue()
    if form == "json":
        import json

        objects = ",\n\t".join(json.dumps(dict(zip(names, row)), ensure_ascii=False) for row in rows)
        return f"[\n\t{objects}\n]\n"
    raise Error(f"cannot write the schema as {form}: use table, csv or json")
