"""The command line of the package: all verbs, including those implemented in Python."""

from __future__ import annotations

import json
import signal
import sys

from . import _laggard


def main() -> int:
    """Runs the command line with the arguments of this process."""
    # With Python's handler, Ctrl-C would only set a flag while the extension runs.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)

    def package(verb: str, flags: str) -> int:
        signal.signal(signal.SIGINT, before)
        from . import _verbs

        return _verbs.run(verb, json.loads(flags))

    try:
        return _laggard.main(["laggard", *sys.argv[1:]], package)
    finally:
        signal.signal(signal.SIGINT, before)
