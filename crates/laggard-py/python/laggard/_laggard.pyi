"""The extension: evidence and its tables, and the command line."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, final

__all__ = [
    "Loaded",
    "Recording",
    "Table",
    "__version__",
    "bench",
    "bench_here",
    "load",
    "main",
    "record",
    "schemas",
    "why",
    "why_here",
]

__version__: str

@final
class Table:
    """A table of evidence: named columns that are made when they are asked for."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str:
        """What a row is."""
    @property
    def column_names(self) -> list[str]: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def schema(self) -> list[tuple[str, str, str]]:
        """Name, type and meaning of every column."""
    @property
    def made(self) -> list[str]:
        """Names of columns that somebody has asked for."""
    def select(self, names: list[str]) -> Table:
        """The same table with these columns alone."""
    def head(self, limit: int = 10) -> list[dict[str, Any]]:
        """The first rows, as dictionaries."""
    def write_parquet(self, path: str | PathLike[str], metadata: dict[str, str] | None = None) -> int:
        """Writes the rows as a Parquet file, which is whole or not there at all; gives its size."""
    def to_arrow(self) -> Any:
        """A `pyarrow.Table`, without a copy."""
    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; texts are categorical."""
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Loaded:
    """Evidence in memory."""

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
    """Samples of this process, until they are stopped."""

    def stop(self) -> tuple[int, int, list[str]] | None:
        """Ends the samples: how many there are, how many have whole stacks, and what else is to be said."""

def main(words: list[str], package: Callable[[str, str], int]) -> int:
    """Runs the command line; gives its exit code."""

def load(path: str, index: bool = True, threads: int | None = None, rules: str | None = None) -> Loaded:
    """Loads a file of any kind."""

def schemas() -> list[tuple[str, Table]]:
    """The tables that files of each kind have, without rows."""

def bench(words: list[str]) -> Loaded:
    """Times statements or commands against each other, as `laggard bench` does with these words."""

def bench_here(
    names: list[str], calls: list[Callable[[], object]], time: float, rounds: int | None, precision: float
) -> Loaded:
    """Times callables against each other, in this process."""

def why_here(timed: Loaded, sampled: list[tuple[str, int]]) -> Loaded:
    """Says why the second of two callables lags, from how they were timed and a recording of calls of each."""

def record(laggard: list[str], path: str, rate: float, clock: str, gil: bool, force: bool) -> Recording:
    """Samples this process from now on into a file; `laggard` are the words that start laggard, which takes the
    samples in a process beside this one."""

def why(words: list[str]) -> Loaded:
    """Says why the second of two sides lags, as `laggard why` does with these words."""
