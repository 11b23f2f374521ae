"""Benchmarking sides, and explaining why one is slower."""

from __future__ import annotations

import gc
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

from . import _laggard, evidence
from .errors import DIFFER_HINT, ResultsDiffer, UsageError
from .evidence import Bench, Verdict, words

__all__ = ["bench", "why"]

Side = str | Callable[[], object]


def bench(
    *sides: Side,
    setup: str = "",
    time: float | str = 10.0,
    precision: float | str = 0.01,
    rounds: int | None = None,
    check: bool = True,
    tolerance: float | None = None,
    **flags: Any,
) -> Bench:
    """Times sides in random alternation. The first side is the reference.

    Each statement runs in its own process with this interpreter, or with the one given by `python=`,
    `a_python=` or `b_python=`. Other keyword arguments are options of `laggard bench`, such as
    `param="n=10,100"`. Callables take no arguments and run in this process with `gc` disabled.
    `time` is the maximum time per case, in seconds or as text such as `"500ms"`. Timing stops earlier
    when the confidence interval of the ratio is within ± `precision`, a fraction or text such as
    `"1%"`. Results are compared first, unless `check=False`.
    """
    if not sides:
        raise UsageError("give at least one side to time", "laggard.bench('sum(x)', 'max(x)', setup='x = [1, 2]')")
    time, precision = _seconds(time), _share(precision)
    if all(callable(side) for side in sides):
        _no_flags(setup, flags)
        _no_arguments(sides)
        return _here(sides, time, precision, rounds, check, tolerance)
    given = {"time": time, "precision": f"{100 * precision}%", "rounds": rounds, **flags}
    return evidence.of(_laggard.bench(_statements(sides, setup, check, tolerance, given)))  # type: ignore[no-any-return]


def why(
    a: Side,
    b: Side,
    *,
    setup: str = "",
    time: float | str = 20.0,
    check: bool = True,
    tolerance: float | None = None,
    **flags: Any,
) -> Verdict:
    """Explains why `b` is slower than `a`: times and samples both sides and inspects their code.

    Statements run in separate processes, and their library calls are traced too. Other keyword
    arguments are options of `laggard why`. Callables take no arguments and run in this process.
    `time` is the total time, in seconds or as text such as `"6s"`.
    """
    time = _seconds(time)
    if callable(a) and callable(b):
        _no_flags(setup, flags)
        _no_arguments((a, b))
        from .recording import why_here

        return why_here(a, b, time, lambda: _check([a, b], check, tolerance))
    return evidence.of(_laggard.why(_statements((a, b), setup, check, tolerance, {"time": time, **flags})))  # type: ignore[no-any-return]


def _statements(
    sides: tuple[Side, ...], setup: str, check: bool, tolerance: float | None, flags: dict[str, Any]
) -> list[str]:
    """Converts sides and flags to command-line arguments."""
    if not all(isinstance(side, str) for side in sides):
        raise UsageError("sides must be either all statements or all callables")
    flags = {"python": None if flags.get("commands") else sys.executable, **flags}
    flags |= {"setup": setup or None, "no_check": not check, "tolerance": tolerance}
    return [*words(flags), "--", *map(str, sides)]


def _no_flags(setup: str, flags: dict[str, Any]) -> None:
    if setup or flags:
        name = "setup" if setup else next(iter(flags))
        raise UsageError(f"{name} applies to statements, not to callables", "run it in this process before the call")


def _no_arguments(sides: tuple[Any, ...]) -> None:
    """Rejects callables that cannot be called without arguments."""
    for letter, side in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", sides):
        try:
            parameters = inspect.signature(side).parameters.values()
        except (TypeError, ValueError):  # many built-in functions have no signature
            continue
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        needed = [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]
        if needed:
            name = name_of(side).removesuffix("()")
            called = name.rpartition(".")[2]
            raise UsageError(
                f"side {letter}, {name}, needs arguments ({', '.join(needed)}), but callables are called without any",
                f"pass the arguments in a function: lambda: {called if called.isidentifier() else 'f'}(...)",
            )


def _seconds(time: float | str) -> float:
    try:
        seconds = _laggard.seconds(time) if isinstance(time, str) else float(time)
    except ValueError as error:
        raise UsageError(f"invalid time {time!r}: {error}") from None
    if not 0 <= seconds < math.inf:
        raise UsageError(f"invalid time {time!r}: expected a number of seconds, at least 0, or text such as '6s'")
    return seconds


def _share(precision: float | str) -> float:
    try:
        return _laggard.share(precision) if isinstance(precision, str) else float(precision)
    except ValueError as error:
        raise UsageError(f"invalid precision {precision!r}: {error}") from None


def _here(
    sides: tuple[Any, ...], time: float, precision: float, rounds: int | None, check: bool, tolerance: float | None
) -> Bench:
    _check(list(sides), check, tolerance)
    was_on = gc.isenabled()
    gc.disable()
    try:
        found = _laggard.bench_here([name_of(side) for side in sides], list(sides), time, rounds, precision)
    finally:
        if was_on:
            gc.enable()
    return evidence.of(found)  # type: ignore[no-any-return]


def name_of(call: Callable[[], object]) -> str:
    """The display name of a callable."""
    name = getattr(call, "__qualname__", None) or getattr(getattr(call, "func", None), "__qualname__", None)
    return f"{name}()" if name else repr(call)


def _check(sides: list[Any], check: bool, tolerance: float | None) -> None:
    """Calls each side once and compares the results with that of the first side."""
    first, *others = (side() for side in sides)
    for letter, other in zip("BCDEFGHIJKLMNOPQRSTUVWXYZ", others):
        if check and not _same(first, other, tolerance):
            raise ResultsDiffer(
                f"sides A and {letter} give different results: {_short(first)} and {_short(other)}",
                DIFFER_HINT,
            )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:199] + "…"


#: Maximum relative difference of floating-point results.
_TOLERANCE = 1e-6


def _same(a: Any, b: Any, tolerance: float | None) -> bool:
    if isinstance(a, (float, complex)) or isinstance(b, (float, complex)):
        return _close(a, b, tolerance)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key], tolerance) for key in a)
    numpy = sys.modules.get("numpy")
    if numpy is not None and any(hasattr(value, "__array__") for value in (a, b)):
        a, b = numpy.asarray(a), numpy.asarray(b)
        if a.shape != b.shape:
            return False
        if a.dtype.kind in "fc" or b.dtype.kind in "fc":
            short = any(value.dtype.itemsize < 8 for value in (a, b) if value.dtype.kind == "f")
            bound = tolerance if tolerance is not None else (1e-3 if short else _TOLERANCE)
            return bool(numpy.allclose(a, b, rtol=bound, atol=bound, equal_nan=True))
        return bool(numpy.array_equal(a, b))
    # Objects without `__eq__` cannot be compared.
    if any(getattr(type(value), "__eq__") is object.__eq__ for value in (a, b)):
        return True
    return bool(a == b)


def _close(a: Any, b: Any, tolerance: float | None) -> bool:
    bound = _TOLERANCE if tolerance is None else tolerance
    try:
        if a != a and b != b:
            return True
        return abs(a - b) <= bound * max(abs(a), abs(b), sys.float_info.min) or math.isinf(a) and a == b
    except TypeError:
        return False
