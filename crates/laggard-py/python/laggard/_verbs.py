"""Runs the command-line verbs implemented in Python: `query` and `fleet`."""

from __future__ import annotations

import os
import sys
from typing import Any

from .errors import Error

#: Exit statuses, the same as for all other verbs.
FAILED = 2
INTERRUPTED = 130


def run(verb: str, flags: dict[str, Any]) -> int:
    """Runs a verb with parsed command-line flags and returns its exit status."""
    try:
        if verb == "query":
            from .query import cli as query

            return query.main(flags["args"], quiet=flags["quiet"])
        from .fleet import cli

        return cli.main(flags["args"], quiet=flags["quiet"], progress=flags["progress"])
    except BrokenPipeError:
        # The reader closed the pipe, which is not a failure. Redirecting stdout avoids a second
        # error when Python flushes its buffer at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (Error, OSError) as error:
        print(f"error: {words(error)}", file=sys.stderr)
        hint = getattr(error, "hint", None)
        if hint:
            print(f"\nhint: {hint}", file=sys.stderr)
        return FAILED


def words(error: Error | OSError) -> str:
    """The error message without the errno."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot access {error.filename}: {error.strerror}"
    return str(error)
