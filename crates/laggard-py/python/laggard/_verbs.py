"""Verbs of the command line that run in Python: `query` and `fleet`."""

from __future__ import annotations

import os
import sys
from typing import Any

from .errors import Error

#: Exit codes, as of all verbs.
FAILED = 2
INTERRUPTED = 130


def run(verb: str, flags: dict[str, Any]) -> int:
    """Runs a verb with the flags that the command line parsed; gives the exit code."""
    try:
        if verb == "query":
            from .query import cli as query

            return query.main(flags["args"], quiet=flags["quiet"])
        from .fleet import cli

        return cli.main(flags["args"], quiet=flags["quiet"], progress=flags["progress"])
    except BrokenPipeError:
        # Whoever read our output has gone, which is no failure; nor is what is left in the buffer.
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
    """What went wrong, without the number that the system has for it."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot use {error.filename}: {error.strerror}"
    return str(error)
