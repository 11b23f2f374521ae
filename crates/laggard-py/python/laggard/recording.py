"""Sampling a block of this very process."""

from __future__ import annotations

import os
import sys
import tempfile
import time as clock
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _laggard, evidence
from .errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .evidence import Profile, Verdict

__all__ = ["record"]


class record:
    """Samples the block below into a file: native and Python frames in one stack, all threads.

    >>> with laggard.record("run.lag") as recording:
    ...     work()
    >>> recording.profile.functions

    The suffix says the form, as of `laggard record`; only a `.lag` can be loaded again. `clock` is
    `"cpu"`, or `"wall"`, which sees threads that wait; `gil=True` keeps samples whose thread held the
    GIL. What cannot be had safely raises `RecordError` with the reason, before the block runs. The
    samples are taken by a process beside this one; a process has one recording at a time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rate: float = 999.0,
        clock: str = "cpu",
        gil: bool = False,
        force: bool = False,
    ):
        self.path = Path(path)
        self._wanted = (os.fspath(self.path), float(rate), clock, gil, force)
        self._recording: _laggard.Recording | None = None
        #: Samples that were taken, and those whose stack is whole; known after the block.
        self.samples = 0
        self.complete = 0

    def __enter__(self) -> record:
        if self._recording is not None:
            raise RecordError("this recording is running already")
        self._recording = _laggard.record([sys.executable, "-m", "laggard"], *self._wanted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recording, self._recording = self._recording, None
        if recording is None:
            return
        ended = recording.stop()
        if ended is None:  # in a process that was forked off
            return
        self.samples, self.complete, said = ended
        for warning in said:
            warnings.warn(f"laggard.record: {warning}", stacklevel=2)

    @property
    def profile(self) -> Profile:
        """What was recorded."""
        return evidence.load(self.path)  # type: ignore[no-any-return]


#: Samples a second where few seconds have to tell much.
_RATE = 1999.0
#: Of all time: for timing, and for sampling each side.
_TIMING, _SAMPLING = 0.5, 0.25


def why_here(a: Callable[[], object], b: Callable[[], object], time: float, check: Callable[[], None]) -> Verdict:
    """Says why `b` takes longer than `a`, both in this process: timed, then sampled one after the other."""
    from .measure import bench

    check()
    timed: Any = bench(a, b, time=time * _TIMING, check=False)
    with tempfile.TemporaryDirectory(prefix="laggard-") as directory:
        sampled = []
        for name, side in (("a", a), ("b", b)):
            path = os.path.join(directory, f"{name}.lag")
            with record(path, rate=_RATE):
                calls = _repeat(side, time * _SAMPLING)
            sampled.append((path, calls))
        return evidence.of(_laggard.why_here(timed._loaded, sampled))  # type: ignore[no-any-return]


def _repeat(call: Callable[[], object], seconds: float) -> int:
    """Calls for so long; says how often."""
    end = clock.perf_counter() + seconds
    calls = 0
    while calls == 0 or clock.perf_counter() < end:
        call()
        calls += 1
    return calls
