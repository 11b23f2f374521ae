"""The command line: the program's own, and the verbs whose engines are Python packages."""

from __future__ import annotations

import json
import signal
import sys

from . import _laggard


def main() -> int:
    """Runs the command line with the words of this process."""
    # The program answers Ctrl-C itself, and ends by it where Python would only take a note of it.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)

    def package(verb: str, flags: str) -> int:
        signal.signal(signal.SIGINT, before)
        from . import _verbs

        return _verbs.run(verb, json.loads(flags))

    try:
        return _laggard.main(["laggard", *sys.argv[1:]], package)
    finally:
        signal.signal(signal.SIGINT, before)
