"""Exceptions of laggard. Missing or unreadable files raise the usual `OSError`."""

from __future__ import annotations

__all__ = ["EngineMissing", "Error", "FormatError", "MeasureError", "RecordError", "ResultsDiffer", "UsageError"]


class Error(Exception):
    """Base class of all errors raised by laggard."""

    #: A suggestion that helps, if one is known.
    hint: str | None

    def __init__(self, message: str, hint: str | None = None):
        super().__init__(message)
        self.hint = hint
        if hint and hasattr(self, "add_note"):  # Python 3.11 and later
            self.add_note(f"hint: {hint}")


class FormatError(Error, ValueError):
    """A file has an unknown format or is too damaged to read."""


class UsageError(Error, ValueError):
    """An argument is unknown, invalid, or does not apply to this kind of evidence."""


class MeasureError(Error, RuntimeError):
    """A side could not be measured."""


class ResultsDiffer(MeasureError):
    """The sides return different results, so their times cannot be compared."""


class RecordError(Error, RuntimeError):
    """A block could not be recorded."""


class EngineMissing(Error, ImportError):
    """A required package is not installed."""


#: The hint of `ResultsDiffer`, with Python arguments instead of command-line options.
DIFFER_HINT = "if this is expected, use tolerance=1e-3 or check=False"

_KINDS = {"usage": UsageError, "format": FormatError, "measure": MeasureError, "differ": ResultsDiffer, "record": RecordError}


def of(kind: str, message: str, causes: list[str], hint: str | None) -> Error:
    """Creates the exception for an error of the extension."""
    if kind == "usage":
        # The command-line parser prints the error in the first line and usage in the others.
        message = message.removeprefix("error: ").split("\n")[0]
    if kind == "differ":
        hint = DIFFER_HINT
    return _KINDS.get(kind, Error)(": ".join([message, *causes]), hint)
