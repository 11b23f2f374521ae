"""Comparison of two traces as a typical Python script: kernel time and launches by name.

usage: by_name.py A.json B.json [--gc-off]

Parses one side after the other with orjson, so that only one of them is in memory. Prints one JSON object: kernels
and microseconds of each side, and the difference and both counts of each kernel, largest difference first.
"""

import argparse
import gc
import json
from pathlib import Path

import orjson


def by_name(path):
    """Microseconds and launches of each kernel."""
    kernels = {}
    for event in orjson.loads(Path(path).read_bytes())["traceEvents"]:
        if event.get("cat") == "kernel":
            spent = kernels.setdefault(event["name"], [0.0, 0])
            spent[0] += event["dur"]
            spent[1] += 1
    return kernels


def total(kernels):
    return {
        "kernels": sum(count for _, count in kernels.values()),
        "kernel_us": sum(micros for micros, _ in kernels.values()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--gc-off", action="store_true", help="disable the garbage collector")
    options = parser.parse_args()
    if options.gc_off:
        gc.disable()
    a, b = by_name(options.a), by_name(options.b)
    gaps = []
    for name in a.keys() | b.keys():
        (of_a, count_a), (of_b, count_b) = a.get(name, (0.0, 0)), b.get(name, (0.0, 0))
        gaps.append({"name": name, "gap_us": of_b - of_a, "a": count_a, "b": count_b})
    gaps.sort(key=lambda gap: -abs(gap["gap_us"]))
    print(json.dumps({"a": total(a), "b": total(b), "gaps": gaps}))


if __name__ == "__main__":
    main()
