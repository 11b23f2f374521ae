"""Loads the inputs of a query: files, directories of traces, and loaded evidence."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import Error, FormatError
from ..evidence import Evidence, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Suffixes of traces in a directory.
SUFFIXES = (".json", ".json.gz", ".json.zst")


@dataclass(frozen=True)
class Source:
    """Evidence, with the value of the column `file` in its rows."""

    file: str
    evidence: Evidence


@dataclass(frozen=True)
class _Path:
    path: str
    #: Whether the user named the file. It must then be readable; other files of a directory are skipped.
    by_name: bool


def _quietly(text: str) -> None:
    """Ignores warnings, for use as a library."""


def gathered(
    given: Iterable[str | os.PathLike[str] | Evidence],
    *,
    rules: str | os.PathLike[str] | None = None,
    index: bool = True,
    threads: int | None = None,
    warn: Callable[[str], None] = _quietly,
    progress: Callable[[int, int], None] | None = None,
) -> list[Source]:
    """Loads files in parallel and returns all sources in the given order."""
    wanted: list[_Path | Source] = []
    for named in given:
        if isinstance(named, Evidence):
            wanted.append(Source(str(named.path), named))
        else:
            wanted.extend(_paths(os.fspath(named)))
    paths = [one for one in wanted if isinstance(one, _Path)]
    cores = threads or os.cpu_count() or 1
    workers = max(1, min(len(paths), cores))

    def one_of(path: _Path) -> Evidence | Error:
        try:
            # A single file uses all cores; several files share them.
            found: Evidence = load(path.path, index=index, threads=max(1, cores // workers), rules=rules)
            return found
        except FormatError as error:
            if path.by_name:
                raise
            return error

    found: list[Evidence | Error] = []
    if len(paths) == 1:
        found = [one_of(paths[0])]  # on this thread, where Ctrl-C works
    elif paths:
        pool = ThreadPoolExecutor(workers)
        try:
            for loaded in pool.map(one_of, paths):
                found.append(loaded)
                if progress:
                    progress(len(found), len(paths))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    loaded_paths = iter(found)
    sources = []
    for one in wanted:
        if isinstance(one, Source):
            sources.append(one)
            continue
        evidence = next(loaded_paths)
        if isinstance(evidence, Error):
            warn(f"skipped: {evidence}")
        elif not one.by_name and evidence.kind != "trace":
            warn(f"skipped: {one.path} is not a trace ({evidence.kind}); give the file by name to include it")
        else:
            sources.append(Source(one.path, evidence))
    return sources


def _paths(path: str) -> list[_Path]:
    """The file itself, or the traces in a directory."""
    if not os.path.isdir(path):
        return [_Path(path, by_name=True)]
    inside = sorted(name for name in os.listdir(path) if name.endswith(SUFFIXES))
    files = [one for one in (os.path.join(path, name) for name in inside) if os.path.isfile(one)]
    if not files:
        raise FormatError(f"no trace (*.json, *.json.gz, *.json.zst) in {path}")
    return [_Path(one, by_name=False) for one in files]
