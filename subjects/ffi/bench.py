"""Call functions through one binding, @BINDING@, for use under a profiler.

Written by `laggard ffi build`; the calls are defined in subjects/ffi/suite.toml.
"""

import argparse
import importlib.util
import itertools
import os
import sys
import textwrap
import time

MODULE = "@MODULE@"
CASES = ["@CASES@"]

# Values and set-up code become local variables of the function, to minimize loop overhead.
LOOP = """
def timed(m, clock, cpu, times):
{setup}
    start = clock(), cpu()
    for _ in times:
{call}
    return clock() - start[0], cpu() - start[1]
"""


def load():
    """Load the binding from the directory of this file."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), MODULE)
    spec = importlib.util.spec_from_file_location("bench." + MODULE.split(".")[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def timed(case, m, iterations):
    """Wall and CPU nanoseconds per call, including loop overhead."""
    statements = max(1, iterations // case["calls"])
    source = LOOP.format(
        setup=textwrap.indent(case["setup"], " " * 4),
        call=textwrap.indent(case["call"].strip(), " " * 8),
    )
    names = {}
    exec(compile(source, case["name"], "exec"), names)
    times = itertools.repeat(None, statements)
    spent = names["timed"](m, time.perf_counter_ns, time.process_time_ns, times)
    return [ns / (statements * case["calls"]) for ns in spent]


def chosen(wanted):
    """The cases with these names; by default the first of each group."""
    if not wanted:
        groups = {}
        for case in CASES:
            groups.setdefault(case["group"], case)
        return list(groups.values())
    known = {case["name"]: case for case in CASES}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit("error: unknown category %s\nhint: categories are %s" % (unknown[0], ", ".join(known)))
    return [known[name] for name in wanted]


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be greater than 0")
    return number


def main():
    parser = argparse.ArgumentParser(description="Call functions through @BINDING@.")
    parser.add_argument("--iterations", type=positive, default=1000000, help="calls per function")
    parser.add_argument("--categories", default="", metavar="A,B", help="categories to call [default: first of each group]")
    parser.add_argument("--result", metavar="FILE", help="append wall and CPU nanoseconds to FILE, one line per category")
    parser.add_argument("--list", action="store_true", help="list categories")
    args = parser.parse_args()
    if args.list:
        for case in CASES:
            print(case["name"])
        return
    cases = chosen([name for name in args.categories.split(",") if name])
    m = load()
    for case in cases:
        wall, cpu = timed(case, m, args.iterations)
        if args.result:
            with open(args.result, "a") as file:
                file.write("%s %r %r\n" % (case["name"], wall, cpu))
        else:
            print("%-14s %10.1f ns per call, including the loop" % (case["name"], wall), flush=True)


if __name__ == "__main__":
    main()
