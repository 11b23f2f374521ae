"""Evidence: a loaded file with its tables and reports."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _laggard
from ._laggard import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Bench",
    "Calls",
    "Comparison",
    "Counters",
    "Culprit",
    "Evidence",
    "Fact",
    "Ffi",
    "Profile",
    "Trace",
    "Verdict",
    "load",
]


def words(flags: dict[str, Any]) -> list[str]:
    """Converts keyword arguments to command-line options: `top=5` to `--top=5`, `all=True` to `--all`."""
    given = []
    for name, value in flags.items():
        flag = "--" + name.strip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            given.append(flag)
        elif isinstance(value, (list, tuple)):
            given.extend(f"{flag}={item}" for item in value)
        else:
            given.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return given


@dataclass(frozen=True)
class Fact:
    """One measured or derived value that supports a culprit."""

    what: str
    a: float | None
    b: float | None
    unit: str
    n: int | None
    #: Whether the value was derived from others instead of measured.
    inferred: bool


@dataclass(frozen=True)
class Culprit:
    """A named cause of a lag."""

    #: One of a fixed set of names: `scalar-loop`, `copy`, `unfused`, …
    kind: str
    #: Share of the lag that it explains, from 0 to 1.
    explains: float
    gap_ns: float
    #: The location: a function and line, or an operation.
    at: str
    advice: str
    facts: tuple[Fact, ...]


def _culprit(found: dict[str, Any]) -> Culprit:
    def fact(one: dict[str, Any]) -> Fact:
        return Fact(
            one["what"], one.get("a"), one.get("b"), one.get("unit", ""), one.get("n"), one.get("inferred", False)
        )

    return Culprit(
        kind=found["kind"],
        explains=found["explains"],
        gap_ns=found["gap_ns"],
        at=found.get("at") or "",
        advice=found.get("advice") or "",
        facts=tuple(fact(one) for one in found.get("facts", [])),
    )


def _in_notebook(html: str) -> str:
    return f'<div class="laggard" style="max-height: 40em; overflow: auto">{html}</div>'


class Evidence:
    """A loaded file. Its tables are attributes and support Arrow's PyCapsule interface."""

    def __init__(self, loaded: _laggard.Loaded):
        self._loaded = loaded

    @property
    def kind(self) -> str:
        """The kind of evidence: `trace`, `profile`, `calls`, `bench`, `counters`, `ffi` or `verdict`."""
        return self._loaded.kind

    @property
    def path(self) -> Path:
        """The file; evidence that was just measured has a name in brackets."""
        return self._loaded.path

    @property
    def losses(self) -> list[str]:
        """Lost, skipped or repaired parts of the file, and other warnings."""
        return self._loaded.losses

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name. Columns are built on first use."""
        return {name: self._loaded.table(name) for name in self._loaded.table_names}

    def table(self, name: str) -> Table:
        """The table of this name. Raises `AttributeError` if it does not exist."""
        return self._loaded.table(name)

    def __getitem__(self, name: str) -> Table:
        try:
            return self._loaded.table(name)
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded.table_names)

    def report(self, format: str = "text", **flags: Any) -> str:
        """The output of `laggard report` as text, json, csv, markdown or html.

        Keyword arguments are the options of the verb: `report(by="python", top=20)`,
        `report(phase="decode")`, `report(lib="openblas")`."""
        return self._loaded.report(format, words(flags))

    def to_dict(self, **flags: Any) -> dict[str, Any]:
        """The output of `laggard report --json`. The key `schema` has the version of its format."""
        return json.loads(self.report("json", **flags))  # type: ignore[no-any-return]

    def page(self) -> str:
        """The interactive HTML page of `laggard view`. It makes no network requests."""
        return self._loaded.page()

    def compare(self, other: Evidence | str | os.PathLike[str]) -> Comparison:
        """Compares `other` with this evidence, which is the reference."""
        return Comparison(self, other if isinstance(other, Evidence) else load(other))

    def _repr_html_(self) -> str:
        return _in_notebook(self.report("html"))

    def __str__(self) -> str:
        return self.report()

    def _size(self) -> str:
        """How much evidence this is."""
        rows = {name: len(self.table(name)) for name in self._counted}
        return ", ".join(f"{n:,} {name if n != 1 else _SINGULAR.get(name, name)}" for name, n in rows.items())

    #: Tables whose rows describe the size.
    _counted: tuple[str, ...] = ()

    def __repr__(self) -> str:
        size = self._size()
        return f"<laggard.{type(self).__name__} {str(self.path)!r}{': ' if size else ''}{size}>"


#: Names of rows of tables.
_SINGULAR = {
    "kernels": "kernel",
    "ops": "op",
    "samples": "sample",
    "functions": "function",
    "threads": "thread",
    "calls": "call",
    "batches": "batch",
    "series": "series",
    "counters": "counter",
}


class Trace(Evidence):
    """A PyTorch profiler trace."""

    _counted = ("kernels", "ops")

    @property
    def kernels(self) -> Table:
        """Device operations (kernels, copies, fills), linked to their launches."""
        return self.table("kernels")

    @property
    def launches(self) -> Table:
        """Calls to the device runtime and driver."""
        return self.table("launches")

    @property
    def ops(self) -> Table:
        """Framework operators on the host."""
        return self.table("ops")

    @property
    def python(self) -> Table:
        """Calls of Python functions and `nn.Module`s."""
        return self.table("python")

    @property
    def annotations(self) -> Table:
        """Ranges annotated by the user or by libraries."""
        return self.table("annotations")

    @property
    def collectives(self) -> Table:
        """Collective operations on this rank."""
        return self.table("collectives")

    @property
    def steps(self) -> Table:
        """Training steps or serving iterations."""
        return self.table("steps")

    @property
    def gaps(self) -> Table:
        """Idle gaps of devices, with their causes."""
        return self.table("gaps")

    @property
    def devices(self) -> Table:
        """Devices, with their busy, idle and exposed time."""
        return self.table("devices")

    @property
    def memory(self) -> Table:
        """Instant events: allocations, frees and markers."""
        return self.table("memory")

    @property
    def run(self) -> Table:
        """The whole trace (one row)."""
        return self.table("run")


class Profile(Evidence):
    """Samples recorded by laggard or another profiler."""

    _counted = ("samples", "functions", "threads")

    @property
    def samples(self) -> Table:
        """The samples."""
        return self.table("samples")

    @property
    def functions(self) -> Table:
        """Functions, with their self and total weight."""
        return self.table("functions")

    @property
    def threads(self) -> Table:
        """Threads."""
        return self.table("threads")

    @property
    def modules(self) -> Table:
        """Executables and libraries."""
        return self.table("modules")

    @property
    def run(self) -> Table:
        """The whole recording (one row)."""
        return self.table("run")


class Calls(Evidence):
    """A call trace."""

    def _size(self) -> str:
        rows = len(self.calls)
        return f"{rows:,} row{'' if rows == 1 else 's'} of calls"

    @property
    def calls(self) -> Table:
        """Calls by function, call site and thread."""
        return self.table("calls")

    @property
    def arguments(self) -> Table:
        """Calls by their first arguments."""
        return self.table("arguments")

    @property
    def failures(self) -> Table:
        """Calls that failed."""
        return self.table("failures")


class Bench(Evidence):
    """Benchmark results: timings of sides."""

    _counted = ("series", "batches")

    @property
    def batches(self) -> Table:
        """All timed batches."""
        return self.table("batches")

    @property
    def series(self) -> Table:
        """Each side in each case, with its statistics."""
        return self.table("series")

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        """Each side compared with the first, by case: ratio, gap, verdict, n.

        Ratio and gap are `None` if there are too few measurements."""
        cases = self.to_dict()["cases"]
        return [
            {"case": case["name"], "parameters": dict(case["parameters"]), **found}
            for case in cases
            for found in case["comparisons"]
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the benchmark as JSON, for `laggard report` and `laggard compare`."""
        Path(path).write_text(self.report("json"), encoding="utf-8")


class Counters(Evidence):
    """`perf stat` counters."""

    _counted = ("counters",)

    @property
    def counters(self) -> Table:
        """The counters."""
        return self.table("counters")


class Ffi(Evidence):
    """A result of `laggard ffi`."""


class Verdict(Evidence):
    """The outcome of `laggard why`: the causes of the lag of B behind A."""

    @property
    def _json(self) -> dict[str, Any]:
        return json.loads(self._loaded.report("json", []))  # type: ignore[no-any-return]

    def _size(self) -> str:
        found = self._json
        if not found["lags"]:
            return "B does not lag"
        many = len(found["culprits"])
        ratio = found["ratio"]["middle"] if found["ratio"] else found.get("single_ratio")
        times = f"B is {ratio:.3g}x slower than A" if ratio else "B lags"
        return f"{times}, {many} culprit{'' if many == 1 else 's'}"

    @property
    def lags(self) -> bool:
        """Whether B is significantly slower than A."""
        return bool(self._json["lags"])

    @property
    def ratio(self) -> float:
        """Time of B divided by time of A."""
        return float(self._json["ratio"]["middle"])

    @property
    def culprits(self) -> list[Culprit]:
        """The causes of the lag, largest first. Empty if B does not lag."""
        return [_culprit(found) for found in self._json["culprits"]]

    @property
    def not_explained(self) -> float:
        """The share of the lag that no culprit explains."""
        return float(self._json["not_explained"] or 0.0)

    @property
    def batches(self) -> Table:
        """All timed batches."""
        return self.table("batches")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the verdict and its evidence as JSON. `laggard why --from FILE` evaluates it again."""
        Path(path).write_text(self.report("json"), encoding="utf-8")


class Comparison:
    """A comparison of B with A, the reference."""

    def __init__(self, a: Evidence, b: Evidence):
        self.a = a
        self.b = b
        self.report("text")  # raises now if the two cannot be compared

    def report(self, format: str = "text", **flags: Any) -> str:
        """The output of `laggard compare` as text, json, csv, markdown or html.

        Keyword arguments are the options of the verb: `report(by="kernel")`, `report(layers=True)`."""
        return self.a._loaded.compare(self.b._loaded, format, words(flags))[0]

    def to_dict(self, **flags: Any) -> dict[str, Any]:
        """The output of `laggard compare --json`."""
        return json.loads(self.report("json", **flags))  # type: ignore[no-any-return]

    def trips(self, fail_above: str | float, **flags: Any) -> bool:
        """Whether B is significantly slower than A, by more than `fail_above` (`"5%"` or `0.05`)."""
        limit = fail_above if isinstance(fail_above, str) else f"{fail_above * 100}%"
        return self.a._loaded.compare(self.b._loaded, "text", words({"fail_above": limit, **flags}))[1]

    @property
    def culprits(self) -> list[Culprit]:
        """The causes of the lag, largest first. Empty unless both sides are traces."""
        return [_culprit(found) for found in self.to_dict().get("culprits", [])]

    def page(self) -> str:
        """The HTML page of `laggard view A B`."""
        return self.a._loaded.page_against(self.b._loaded)

    def _repr_html_(self) -> str:
        return _in_notebook(self.report("html"))

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        kind = self.a.kind
        return f"<laggard.Comparison of {kind} {str(self.b.path)!r} with {str(self.a.path)!r}>"


_KINDS: dict[str, type[Evidence]] = {
    "trace": Trace,
    "profile": Profile,
    "calls": Calls,
    "bench": Bench,
    "counters": Counters,
    "ffi": Ffi,
    "verdict": Verdict,
}


def of(loaded: _laggard.Loaded) -> Any:
    """Wraps loaded evidence in the class of its kind."""
    return _KINDS[loaded.kind](loaded)


def load(
    path: str | os.PathLike[str],
    *,
    index: bool = True,
    threads: int | None = None,
    rules: str | os.PathLike[str] | None = None,
) -> Any:
    """Loads a trace, profile, call trace, benchmark, perf stat counters, FFI result or verdict.

    The kind is detected from the content. A trace that takes longer than 0.3 s to load gets an
    index for fast loading, unless `index=False`. `rules` is a file of kernel classification rules, which are tried
    before the built-in rules.
    """
    return of(_laggard.load(os.fspath(path), index, threads, os.fspath(rules) if rules is not None else None))
