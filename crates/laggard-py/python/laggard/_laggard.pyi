"""The extension module: evidence, its tables, and the command line."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, final

__all__ = [
    "Loaded",
    "Recording",
    "Rows",
    "Table",
    "__version__",
    "bench",
    "bench_here",
    "load",
    "main",
    "record",
    "schemas",
    "seconds",
    "share",
    "why",
    "why_here",
]

__version__: str

@final
class Table:
    """A table of evidence. Its columns are built on first use."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str:
        """Description of a row."""
    @property
    def column_names(self) -> list[str]: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def schema(self) -> list[tuple[str, str, str]]:
        """Name, type and description of each column."""
    @property
    def made(self) -> list[str]:
        """Names of the columns that have been built."""
    def select(self, names: list[str]) -> Table:
        """The table restricted to these columns."""
    def head(self, limit: int = 10) -> list[dict[str, Any]]:
        """The first rows as dictionaries."""
    def write_parquet(self, path: str | PathLike[str], metadata: dict[str, str] | None = None) -> int:
        """Writes a Parquet file atomically and returns its size in bytes."""
    def to_arrow(self) -> Any:
        """Converts to a `pyarrow.Table` without copying."""
    def to_polars(self) -> Any:
        """Converts to a `polars.DataFrame`."""
    def to_pandas(self) -> Any:
        """Converts to a `pandas.DataFrame` with strings as categoricals."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Rows:
        """The rows as dictionaries. `pandas.DataFrame` reads tables this way."""
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Rows:
    """Iterates over the rows of a table as dictionaries."""

    def __iter__(self) -> Rows: ...
    def __next__(self) -> dict[str, Any]: ...

@final
class Loaded:
    """Loaded evidence."""

    @property
    def kind(self) -> str: ...
    @property
    def path(self) -> Path: ...
    @property
    def losses(self) -> list[str]: ...
    @property
    def table_names(self) -> list[str]: ...
    def table(self, name: str) -> Table: ...
    def report(self, format: str, flags: list[str]) -> str: ...
    def compare(self, other: Loaded, format: str, flags: list[str]) -> tuple[str, bool]: ...
    def page(self) -> str: ...
    def page_against(self, other: Loaded) -> str: ...

@final
class Recording:
    """A running recording of this process."""

    def stop(self) -> tuple[int, int, list[str]] | None:
        """Stops sampling and writes the file. Returns the number of samples, the number with complete stacks, and
        warnings; None in a forked child."""

def main(words: list[str], package: Callable[[str, str], int]) -> int:
    """Runs the command line and returns its exit status."""

def load(path: str, index: bool = True, threads: int | None = None, rules: str | None = None) -> Loaded:
    """Loads a file of any kind."""

def schemas() -> list[tuple[str, Table]]:
    """Empty tables of all kinds of evidence."""

def bench(words: list[str]) -> Loaded:
    """Runs `laggard bench` with these arguments."""

def bench_here(
    names: list[str], calls: list[Callable[[], object]], time: float, rounds: int | None, precision: float
) -> Loaded:
    """Benchmarks callables in this process."""

def why_here(timed: Loaded, sampled: list[tuple[str, int]]) -> Loaded:
    """Explains why the second callable is slower, from timings and a recording of calls of each side."""

def record(laggard: list[str], path: str, rate: float, clock: str, gil: bool, force: bool) -> Recording:
    """Starts a recording of this process. `laggard` is the command line that starts laggard, which reads the samples
    in a separate process."""

def seconds(text: str) -> float:
    """Parses a time such as `500ms`, in seconds."""

def share(text: str) -> float:
    """Parses a percentage such as `5%`, as a fraction."""

def why(words: list[str]) -> Loaded:
    """Runs `laggard why` with these arguments."""
