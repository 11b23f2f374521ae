"""Run both sides of each pair once and compare their results. Requires Python 3.11.

Sides run in separate processes, because they may have different environments.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent
# Variables that set the number of threads of numeric libraries.
THREADS = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]


def main():
    bench = read("laggard-bench.toml")
    planted = read("planted.toml")
    names = [case["name"] for case in bench["case"]]
    bad = set(names) ^ set(planted)
    for name in sorted(bad):
        print(f"{name}: not in both files")
    for case in bench["case"]:
        needs = planted.get(case["name"], {}).get("needs", [])
        if "avx2" in needs and not has_avx2():
            print(f"{case['name']}: skipped, the CPU has no AVX2")
            continue
        try:
            a, b = (value_of(bench.get("setup", ""), case, case[side]) for side in "ab")
        except subprocess.CalledProcessError as error:
            print(f"{case['name']}: {error.stderr.strip().splitlines()[-1]}")
            bad.add(case["name"])
            continue
        same = a is not None and (not case.get("check", True) or agree(a, b, case.get("tolerance", 0)))
        print(f"{case['name']}: {'equal' if same else 'different: ' + str(a)[:60] + ' and ' + str(b)[:60]}")
        if not same:
            bad.add(case["name"])
    return 1 if bad else 0


def read(name):
    with open(PLACE / name, "rb") as file:
        return tomllib.load(file)


def has_avx2():
    import culprits

    return culprits.c.has_avx2()


def value_of(setup, case, side):
    """Value of a side's statement, as lists and numbers."""
    side = {"run": side} if isinstance(side, str) else side
    environment = os.environ | {"PYTHONPATH": str(PLACE)} | side.get("env", {})
    if "threads" in side:
        environment |= dict.fromkeys(THREADS, str(side["threads"]))
    *first, last = side["run"].split("; ")
    program = [setup, case.get("setup", ""), side.get("setup", ""), *first]
    program += [f"_value = {last}", "import json", "print(json.dumps(np.asarray(_value).tolist(), default=list))"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(program)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def agree(a, b, tolerance):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(agree(x, y, tolerance) for x, y in zip(a, b))
    return a == b or (tolerance > 0 and abs(a - b) <= tolerance * max(abs(a), abs(b)))


sys.exit(main())
