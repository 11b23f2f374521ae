"""What can go wrong, by type. Files that are not there, or may not be read, are the usual `OSError`."""

from __future__ import annotations

__all__ = ["EngineMissing", "Error", "FormatError", "MeasureError", "RecordError", "ResultsDiffer", "UsageError"]


class Error(Exception):
    """Something that laggard could not do, and why."""

    #: What helps, where that is known.
    hint: str | None

    def __init__(self, message: str, hint: str | None = None):
        super().__init__(message)
        self.hint = hint
        if hint and hasattr(self, "add_note"):  # from 3.11 on
            self.add_note(f"hint: {hint}")


class FormatError(Error, ValueError):
    """A file that is of no kind that laggard knows, or is too damaged to be of use."""


class UsageError(Error, ValueError):
    """A flag that is not known, or of another kind of evidence."""


class MeasureError(Error, RuntimeError):
    """A side that could not be measured."""


class ResultsDiffer(MeasureError):
    """Sides that do not compute the same: comparing their times would mean nothing."""


class RecordError(Error, RuntimeError):
    """A block that could not be recorded."""


class EngineMissing(Error, ImportError):
    """A package that is needed and not installed."""


#: What helps where results differ, in words of Python.
DIFFER_HINT = "if that is as it should be: tolerance=1e-3, or check=False"

_KINDS = {"usage": UsageError, "format": FormatError, "measure": MeasureError, "differ": ResultsDiffer, "record": RecordError}


def of(kind: str, message: str, causes: list[str], hint: str | None) -> Error:
    """The exception for an error of the extension."""
    if kind == "usage":
        # The parser's words for a terminal: the first line says what, the rest how to call a program.
        message = message.removeprefix("error: ").split("\n")[0]
    if kind == "differ":
        hint = DIFFER_HINT
    return _KINDS.get(kind, Error)(": ".join([message, *causes]), hint)
