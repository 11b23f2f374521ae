"""Laggard finds out why one implementation lags behind another.

>>> import laggard
>>> trace = laggard.load("trace.json.gz")            # any file that the command line reads
>>> polars.DataFrame(trace.kernels)                  # tables speak Arrow, without a copy
>>> laggard.bench("sum(x)", "max(x)", setup="x = list(range(1000))")
>>> laggard.why(slow_way, fast_way).culprits
>>> with laggard.record("run.lag"): work()
"""

from ._laggard import Table, __version__
from .errors import EngineMissing, Error, FormatError, MeasureError, RecordError, ResultsDiffer, UsageError
from .evidence import Bench, Calls, Comparison, Counters, Culprit, Evidence, Fact, Ffi, Profile, Trace, Verdict, load
from .measure import bench, why
from .query import query
from .recording import record

__all__ = [
    "Bench",
    "Calls",
    "Comparison",
    "Counters",
    "Culprit",
    "EngineMissing",
    "Error",
    "Evidence",
    "Fact",
    "Ffi",
    "FormatError",
    "MeasureError",
    "Profile",
    "RecordError",
    "ResultsDiffer",
    "Table",
    "Trace",
    "UsageError",
    "Verdict",
    "__version__",
    "bench",
    "load",
    "query",
    "record",
    "why",
]
