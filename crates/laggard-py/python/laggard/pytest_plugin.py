"""The pytest plugin: `def test_speed(versus): versus(a, b).assert_not_slower(by=0.05)`."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .evidence import Bench
    from .measure import Side

#: Test names and outcomes, for the summary at the end of the run.
_outcomes: pytest.StashKey[list[tuple[str, Outcome]]] = pytest.StashKey()


class Outcome:
    """The result of comparing B, the second side, with A, the reference."""

    def __init__(self, bench: Bench):
        self.bench = bench
        (self._found,) = bench.comparisons

    @property
    def ratio(self) -> float:
        """Time of B divided by time of A; NaN if there are too few measurements."""
        return float(self._found["ratio"]["middle"]) if self._found["ratio"] else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the ratio."""
        ratio = self._found["ratio"] or {"low": math.nan, "high": math.nan}
        return float(ratio["low"]), float(ratio["high"])

    @property
    def verdict(self) -> str:
        """`slower`, `faster`, `same` (no detectable difference) or `unknown` (too few rounds)."""
        return str(self._found["verdict"])

    def assert_not_slower(self, by: float = 0.05) -> None:
        """Fails if B is significantly slower than A, by more than the share `by`."""
        __tracebackhide__ = True
        if self.ratio > 1 + by and self.interval[0] > 1:
            pytest.fail(f"{self}\nlimit: slower by at most {by:.1%}\n\n{self.bench.report()}", pytrace=False)

    def assert_faster(self, by: float = 0.0) -> None:
        """Fails unless B is significantly faster than A, by at least the share `by`."""
        __tracebackhide__ = True
        if not (self.ratio <= 1 - by and self.interval[1] < 1):
            pytest.fail(f"{self}\nrequired: faster by at least {by:.1%}\n\n{self.bench.report()}", pytrace=False)

    def __str__(self) -> str:
        low, high = self.interval
        return f"B takes {self.ratio:.3f}x the time of A (95 % CI {low:.3f} to {high:.3f}, n = {self._found['n']})"


class Versus:
    """Compares the times of two sides: statements, or callables without arguments."""

    def __init__(self, request: pytest.FixtureRequest):
        self._request = request
        self._count = 0

    def __call__(self, a: Side, b: Side, **options: Any) -> Outcome:
        """Compares B with A, the reference. Keyword arguments are passed to `laggard.bench`."""
        from .measure import bench

        config = self._request.config
        seconds = config.getoption("versus_time")
        if seconds is not None:
            options["time"] = seconds
        outcome = Outcome(bench(a, b, **{"time": 2.0, **options}))
        name = self._request.node.nodeid
        config.stash.setdefault(_outcomes, []).append((name, outcome))
        directory = config.getoption("versus_save")
        if directory:
            self._count += 1
            place = Path(directory)
            place.mkdir(parents=True, exist_ok=True)
            file = re.sub(r"[^\w.-]+", "-", name).strip("-")
            outcome.bench.save(place / f"{file}-{self._count}.json")
        return outcome


@pytest.fixture
def versus(request: pytest.FixtureRequest) -> Versus:
    """Compares the times of two sides: `versus(a, b).assert_not_slower(by=0.05)`."""
    return Versus(request)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("laggard", "laggard comparisons")
    group.addoption(
        "--versus-time",
        type=float,
        default=float(os.environ["VERSUS_TIME"]) if os.environ.get("VERSUS_TIME") else None,
        metavar="SECONDS",
        help="time limit of each comparison, overriding the tests (environment variable: VERSUS_TIME)",
    )
    group.addoption("--versus-save", metavar="DIR", help="save each comparison as JSON, for laggard compare")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints all comparisons."""
    outcomes = config.stash.get(_outcomes, [])
    if outcomes:
        terminalreporter.section("versus")
        for name, outcome in outcomes:
            terminalreporter.write_line(f"{name}: {outcome}")
