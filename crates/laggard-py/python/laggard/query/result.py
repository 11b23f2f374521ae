"""The result of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import EngineMissing
from . import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .session import Session


class Result:
    """Rows with named columns, stored in DuckDB. Supports Arrow's PyCapsule interface."""

    def __init__(self, session: Session, relation: Any):
        self._session = session
        self._relation = relation

    @property
    def columns(self) -> list[str]:
        """Column names; empty if the statement returns no rows."""
        return [] if self._relation is None else list(self._relation.columns)

    @property
    def types(self) -> list[str]:
        """DuckDB types of the columns."""
        return [] if self._relation is None else [str(type_).strip('"') for type_ in self._relation.types]

    def __len__(self) -> int:
        return 0 if self._relation is None else int(self._relation.aggregate("count(*)").fetchall()[0][0])

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return [] if self._relation is None else list(self._relation.fetchall())

    def head(self, limit: int) -> list[tuple[Any, ...]]:
        """The first rows."""
        return [] if self._relation is None else list(self._relation.limit(limit).fetchall())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def to_arrow(self) -> Any:
        """Converts to a `pyarrow.Table`."""
        return _package("pyarrow").table(self)

    def to_polars(self) -> Any:
        """Converts to a `polars.DataFrame`."""
        return _package("polars").DataFrame(self)

    def to_pandas(self) -> Any:
        """Converts to a `pandas.DataFrame`."""
        _package("pandas")
        return self._answer().df()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._answer().__arrow_c_stream__(requested_schema)

    def _answer(self) -> Any:
        if self._relation is None:
            raise ValueError("the statement returns no rows")
        return self._relation

    def text(self, top: int | None = 40, width: int | None = None) -> str:
        """Formats the first `top` rows as a table of at most `width` characters."""
        if self._relation is None:
            return ""
        if self.columns == ["explain_key", "explain_value"]:
            return "\n".join(plan for _, plan in self.fetchall())
        rows = self.fetchall() if top is None else self.head(top + 1)
        more = 0
        if top is not None and len(rows) > top:
            rows = rows[:top]
            more = len(self) - top
        return show.table(self.columns, rows, more, width)

    def __str__(self) -> str:
        return self.text(width=show.WIDTH)

    def __repr__(self) -> str:
        return f"<laggard.query.Result: {len(self)} rows, columns {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        return show.html(self.columns, self.head(show.HTML_ROWS), len(self))


def _package(name: str) -> Any:
    """Imports an optional package."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise EngineMissing(f"{name} is not installed", f"pip install {name}") from error
