"""Evidence: what a file holds, in memory, with its tables and what laggard says of it."""

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
    """Keyword arguments as flags of the command line: `top=5` is `--top=5`, `all=True` is `--all`."""
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
    """One number that supports a culprit."""

    what: str
    a: float | None
    b: float | None
    unit: str
    n: int | None
    #: Whether it follows from other numbers and was not measured itself.
    inferred: bool


@dataclass(frozen=True)
class Culprit:
    """A named cause of a lag."""

    #: One of a closed vocabulary: `scalar-loop`, `copy`, `unfused`, …
    kind: str
    #: The share of the lag that it explains, 0 to 1.
    explains: float
    gap_ns: float
    #: Where: a function and line, or an operation.
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
    """What a file holds. Tables are attributes; each speaks Arrow's PyCapsule interface."""

    def __init__(self, loaded: _laggard.Loaded):
        self._loaded = loaded

    @property
    def kind(self) -> str:
        """What it is: `trace`, `profile`, `calls`, `bench`, `counters`, `ffi` or `verdict`."""
        return self._loaded.kind

    @property
    def path(self) -> Path:
        """The file it is from; what was just measured has a name in brackets."""
        return self._loaded.path

    @property
    def losses(self) -> list[str]:
        """What of the file could not be read or had to be repaired, and what else should be known."""
        return self._loaded.losses

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name. Their columns are made when something asks for them."""
        return {name: self._loaded.table(name) for name in self._loaded.table_names}

    def table(self, name: str) -> Table:
        """One table by its name."""
        return self._loaded.table(name)

    def __getitem__(self, name: str) -> Table:
        try:
            return self._loaded.table(name)
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded.table_names)

    def report(self, format: str = "text", **flags: Any) -> str:
        """What `laggard report` says: as text, json, csv, markdown or html. Flags are those of the
        verb: `report(by="python", top=20)`, `report(phase="decode")`, `report(lib="openblas")`."""
        return self._loaded.report(format, words(flags))

    def to_dict(self, **flags: Any) -> dict[str, Any]:
        """The report as `laggard report --json` has it; its shape is versioned by `schema`."""
        return json.loads(self.report("json", **flags))  # type: ignore[no-any-return]

    def page(self) -> str:
        """One HTML page to look around in, as `laggard view` makes it. It asks nothing of the network."""
        return self._loaded.page()

    def compare(self, other: Evidence | str | os.PathLike[str]) -> Comparison:
        """How `other` differs from this, which is the reference."""
        return Comparison(self, other if isinstance(other, Evidence) else load(other))

    def _repr_html_(self) -> str:
        return _in_notebook(self.report("html"))

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return f"<laggard.{type(self).__name__} {str(self.path)!r}>"


class Trace(Evidence):
    """A trace of the PyTorch profiler."""

    @property
    def kernels(self) -> Table:
        """Device work: kernels, copies, fills, linked to their launches."""
        return self.table("kernels")

    @property
    def launches(self) -> Table:
        """Calls of the runtime and driver."""
        return self.table("launches")

    @property
    def ops(self) -> Table:
        """Operators of the framework, on the host."""
        return self.table("ops")

    @property
    def python(self) -> Table:
        """Python functions and `nn.Module` calls."""
        return self.table("python")

    @property
    def annotations(self) -> Table:
        """Ranges marked by the user or by libraries."""
        return self.table("annotations")

    @property
    def collectives(self) -> Table:
        """This rank's parts in collective operations."""
        return self.table("collectives")

    @property
    def steps(self) -> Table:
        """Steps of a training loop, or iterations of a serving loop."""
        return self.table("steps")

    @property
    def gaps(self) -> Table:
        """Stretches in which a device did nothing, and why."""
        return self.table("gaps")

    @property
    def devices(self) -> Table:
        """Devices: busy, idle, exposed."""
        return self.table("devices")

    @property
    def memory(self) -> Table:
        """Moments: marks, and memory taken or freed."""
        return self.table("memory")

    @property
    def run(self) -> Table:
        """The whole trace, in one row."""
        return self.table("run")


class Profile(Evidence):
    """Samples, of laggard or of another profiler."""

    @property
    def samples(self) -> Table:
        """The samples."""
        return self.table("samples")

    @property
    def functions(self) -> Table:
        """Functions: what each took itself, and with what it called."""
        return self.table("functions")

    @property
    def threads(self) -> Table:
        """Threads that were seen."""
        return self.table("threads")

    @property
    def modules(self) -> Table:
        """Programs and libraries."""
        return self.table("modules")

    @property
    def run(self) -> Table:
        """The whole recording, in one row."""
        return self.table("run")


class Calls(Evidence):
    """Traced calls."""

    @property
    def calls(self) -> Table:
        """Calls by function, place and thread."""
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
    """Sides timed against each other."""

    @property
    def batches(self) -> Table:
        """Every batch as it was measured."""
        return self.table("batches")

    @property
    def series(self) -> Table:
        """What is known of each side in each case."""
        return self.table("series")

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        """How every other side compares with the first, case by case: ratio, gap, verdict, n. Ratio and
        gap are none where too little was measured to tell."""
        cases = self.to_dict()["cases"]
        return [
            {"case": case["name"], "parameters": dict(case["parameters"]), **found}
            for case in cases
            for found in case["comparisons"]
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keeps it as JSON that `laggard report` and `laggard compare` read."""
        Path(path).write_text(self.report("json"), encoding="utf-8")


class Counters(Evidence):
    """Counters of `perf stat`."""

    @property
    def counters(self) -> Table:
        """The counters."""
        return self.table("counters")


class Ffi(Evidence):
    """A run of the FFI suite."""


class Verdict(Evidence):
    """Why one side lags behind another."""

    @property
    def _json(self) -> dict[str, Any]:
        return json.loads(self._loaded.report("json", []))  # type: ignore[no-any-return]

    @property
    def lags(self) -> bool:
        """Whether B lags behind A, beyond what noise explains."""
        return bool(self._json["lags"])

    @property
    def ratio(self) -> float:
        """Time of B over time of A."""
        return float(self._json["ratio"]["middle"])

    @property
    def culprits(self) -> list[Culprit]:
        """What makes B lag, largest first. Empty where nothing lags."""
        return [_culprit(found) for found in self._json["culprits"]]

    @property
    def not_explained(self) -> float:
        """The share of the lag that no culprit explains."""
        return float(self._json["not_explained"] or 0.0)

    @property
    def batches(self) -> Table:
        """Every batch as it was measured."""
        return self.table("batches")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keeps it as JSON, with all its evidence: `laggard why --from FILE` judges it again."""
        Path(path).write_text(self.report("json"), encoding="utf-8")


class Comparison:
    """How B differs from A, which is the reference."""

    def __init__(self, a: Evidence, b: Evidence):
        self.a = a
        self.b = b
        self.report("text")  # what cannot be compared is said now

    def report(self, format: str = "text", **flags: Any) -> str:
        """What `laggard compare` says: as text, json, csv, markdown or html. Flags are those of the
        verb: `report(by="kernel")`, `report(layers=True)`."""
        return self.a._loaded.compare(self.b._loaded, format, words(flags))[0]

    def to_dict(self, **flags: Any) -> dict[str, Any]:
        """The comparison as `laggard compare --json` has it."""
        return json.loads(self.report("json", **flags))  # type: ignore[no-any-return]

    def trips(self, fail_above: str | float, **flags: Any) -> bool:
        """Whether B is slower than A by more than this, `"5%"` or `0.05`, and noise does not explain it."""
        limit = fail_above if isinstance(fail_above, str) else f"{fail_above * 100}%"
        return self.a._loaded.compare(self.b._loaded, "text", words({"fail_above": limit, **flags}))[1]

    @property
    def culprits(self) -> list[Culprit]:
        """What makes B lag, largest first; traces alone are judged."""
        return [_culprit(found) for found in self.to_dict().get("culprits", [])]

    def page(self) -> str:
        """One HTML page of both, as `laggard view A B` makes it."""
        return self.a._loaded.page_against(self.b._loaded)

    def _repr_html_(self) -> str:
        return _in_notebook(self.report("html"))

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return f"<laggard.Comparison {str(self.b.path)!r} against {str(self.a.path)!r}>"


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
    """Evidence of the right type."""
    return _KINDS[loaded.kind](loaded)


def load(
    path: str | os.PathLike[str],
    *,
    index: bool = True,
    threads: int | None = None,
    rules: str | os.PathLike[str] | None = None,
) -> Any:
    """Loads a file of any kind: a trace, a profile, calls, a bench, counters, a verdict.

    What it is, its content says. Of a trace the first load writes an index that makes later ones
    instant, unless `index=False`; `rules` is a file that classifies kernels before the built-in rules.
    """
    return of(_laggard.load(os.fspath(path), index, threads, os.fspath(rules) if rules is not None else None))
