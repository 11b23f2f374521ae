"""Recording a block of code in this process."""

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
    """Samples all threads during a block and writes a recording with native and Python frames.

    >>> with laggard.record("run.lag") as recording:
    ...     work()
    >>> recording.profile.functions

    The suffix of the file selects the format, as for `laggard record`; only `.lag` files can be
    loaded again. `clock` is `"cpu"` or `"wall"`, which also samples waiting threads. `gil=True`
    keeps only samples of threads that held the GIL. If the block cannot be sampled safely,
    `RecordError` is raised before it runs. A separate process reads the samples. A process can have
    only one recording at a time.
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
        #: Number of samples, and of samples with a complete stack; set when the block ends.
        self.samples = 0
        self.complete = 0

    def __enter__(self) -> record:
        if self._recording is not None:
            raise RecordError("this recording is already running")
        self._recording = _laggard.record([sys.executable, "-m", "laggard"], *self._wanted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recording, self._recording = self._recording, None
        if recording is None:
            return
        ended = recording.stop()
        if ended is None:  # in a forked child
            return
        self.samples, self.complete, messages = ended
        for warning in messages:
            warnings.warn(f"laggard.record: {warning}", stacklevel=2)

    def __repr__(self) -> str:
        state = "running" if self._recording is not None else f"{self.samples:,} samples"
        return f"<laggard.record {str(self.path)!r}: {state}>"

    @property
    def profile(self) -> Profile:
        """The recorded profile, loaded from the file."""
        return evidence.load(self.path)  # type: ignore[no-any-return]


#: Sampling rate, high because each side is sampled for a few seconds only.
_RATE = 1999.0
#: Shares of the total time for timing both sides and for sampling each side.
_TIMING, _SAMPLING = 0.5, 0.25


def why_here(a: Callable[[], object], b: Callable[[], object], time: float, check: Callable[[], None]) -> Verdict:
    """Explains why `b` is slower than `a`. Both run in this process: they are timed, then sampled in turn."""
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
    """Calls repeatedly for `seconds` and returns the number of calls."""
    end = clock.perf_counter() + seconds
    calls = 0
    while calls == 0 or clock.perf_counter() < end:
        call()
        calls += 1
    return calls
