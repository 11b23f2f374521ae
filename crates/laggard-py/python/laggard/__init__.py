"""Explains why one implementation is slower than another.

>>> import laggard
>>> trace = laggard.load("trace.json.gz")            # any file that the command line reads
>>> polars.DataFrame(trace.kernels)                  # tables export Arrow without copying
>>> laggard.bench("sum(x)", "max(x)", setup="x = list(range(1000))")
>>> laggard.why(fast, slow).culprits
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
