"""`laggard ffi` with every binding: statistics match those computed in Python, builds have the reported flags, bindings
return correct results, and all output formats agree. No test depends on how fast a binding is."""

import csv
import importlib.util
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from itertools import groupby
from itertools import product as pairs
from pathlib import Path
from statistics import median

import jsonschema
import pytest
from conftest import ROOT
from test_page import CONTRASTS, MARKUP, painted, shots, take  # noqa: F401: `shots` is a fixture

SUBJECT = ROOT / "subjects" / "ffi"
SCHEMA = json.loads((ROOT / "docs" / "schemas" / "ffi-1.json").read_text())
BINDINGS = ["capi", "cython", "nanobind", "pyo3", "pybind11", "cffi-api", "cffi-abi", "ctypes-pydll", "ctypes"]
COMPILED = ["capi", "cython", "nanobind", "pyo3", "pybind11", "cffi-api"]
PACKAGES = {"cython": "Cython", "nanobind": "nanobind", "pybind11": "pybind11", "cffi-api": "cffi", "cffi-abi": "cffi"}
OPTIMISED = "-O3 -march=native -mtune=native -g1"
LINKABLE = "-fvisibility=hidden -fPIC -Wall -Wextra"
FLAGS = {
    "fast": f"{OPTIMISED} {LINKABLE}",
    "instrumented": f"{OPTIMISED} -fno-omit-frame-pointer {LINKABLE}",
}
RUST = "opt-level=3, debug=line-tables-only, codegen-units=1"
FRAME_POINTERS = "-C force-frame-pointers=yes"
# Few iterations, to keep the tests fast.
FEW = ["--quick", "--iterations", "2000", "--launches", "2", "--python", sys.executable]
# Half of the last decimal: the times of process launches are rounded to three decimals.
ROUNDED = 0.0005


def missing_requirement(binding):
    """The reason why a binding cannot be built here, or None."""
    package = PACKAGES.get(binding)
    if package and not importlib.util.find_spec(package):
        return f"{sys.executable} has no package {package}; `cargo xtask test` installs it"
    tool = {"pyo3": "cargo", "nanobind": "c++", "pybind11": "c++"}.get(binding, "cc")
    return None if shutil.which(tool) else f"{tool} not found"


AVAILABLE = [binding for binding in BINDINGS if not missing_requirement(binding)]


def need(*bindings):
    """Skips the test if one of these bindings cannot be built here."""
    for binding in bindings:
        if why := missing_requirement(binding):
            pytest.skip(f"{binding}: {why}")


MEASURED = {}


@pytest.fixture
def whole(laggard, tmp_path):
    """JSON of the whole suite with every binding that can be built here, measured once for all tests."""
    if not MEASURED:
        table = tmp_path / "whole.csv"
        MEASURED["json"] = json.loads(laggard("ffi", *FEW, "--json", "-o", table).stdout)
        MEASURED["csv"] = table.read_text(encoding="utf-8")
    return MEASURED["json"]


def by(rows, *fields):
    """Rows by the values of these fields, which must be unique."""
    found = {tuple(row[field] for field in fields): row for row in rows}
    assert len(found) == len(rows), fields
    return found


def place(cell):
    return cell["category"], cell["size"], cell["build"], cell["python"]


# JSON.


def test_json_matches_the_schema(whole):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(whole, SCHEMA)


@pytest.mark.parametrize(
    "flags",
    [
        ["--launches", "1", "--profile", "fast", "--categories", "noop", "--bindings", "ctypes"],
        ["--profile", "instrumented", "--categories", "buffers", "--bindings", "capi"],
        ["--fn", "math:hypot", "--args", "(3.0, 4.0)"],
    ],
    ids=["one launch", "one binding", "user function"],
)
def test_json_of_a_partial_run_matches_the_schema(laggard, flags):
    few = [flag for flag in FEW if "--launches" not in flags or flag not in ("--launches", "2")]
    found = json.loads(laggard("ffi", *few, *flags, "--json").stdout)
    jsonschema.validate(found, SCHEMA)
    assert found["cells"] and {cell["trouble"] for cell in found["cells"]} == {None}


def test_json_with_a_skipped_binding_matches_the_schema(laggard, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CARGO", str(tmp_path / "no-cargo"))
    found = json.loads(laggard("ffi", *FEW, "--bindings", "pyo3", "--categories", "noop", "--json").stdout)
    jsonschema.validate(found, SCHEMA)
    assert [(of["binding"], of["build"]) for of in found["skipped"]] == [("pyo3", None)]
    assert "cargo" in found["skipped"][0]["why"] and found["skipped"][0]["hint"]
    assert [of["name"] for of in found["bindings"]] == ["capi"]


@pytest.mark.parametrize("binding", BINDINGS)
def test_binding_has_both_builds(whole, binding):
    """Skipped with a reason for each binding that cannot be built here."""
    need(binding)
    assert [of["build"] for of in whole["builds"] if of["binding"] == binding] == list(FLAGS)


def test_every_binding_runs_every_category(whole):
    suite = (SUBJECT / "suite.toml").read_text()
    names = re.findall(r'^\[\[category\]\]\nname = "(\w+)"', suite, re.M)
    assert len(names) > 30
    assert [of["name"] for of in whole["categories"] if of["size"] is None] == names
    assert [of["name"] for of in whole["bindings"]] == AVAILABLE
    assert {of["binding"] for of in whole["skipped"]} == set(BINDINGS) - set(AVAILABLE), whole["skipped"]
    assert whole["floor"] == "capi"
    assert [cell for cell in whole["cells"] if cell["trouble"]] == []
    assert all(len(cell["launches"]) == 2 for cell in whole["cells"])
    for build in FLAGS:
        for binding in AVAILABLE:
            own = [cell for cell in whole["cells"] if (cell["who"], cell["build"]) == (binding, build)]
            missing = {"nogil"} if binding == "ctypes-pydll" else set()
            assert [cell["category"] for cell in own if cell["size"] is None] == [
                name for name in names if name not in missing
            ]
    assert len([warning for warning in whole["warnings"] if "nogil through ctypes-pydll" in warning]) == 1


# Statistics.


def launches(cell, what):
    """The median time per call in each process launch, including the loop."""
    return [median(launch[what]) / cell["calls"] for launch in cell["launches"]]


def around(cells, cell):
    """The cell of the empty loop, which both builds share; None for C and for the loop itself."""
    if cell["who"] in ("loop", "c"):
        return None
    loops = [of for of in cells if of["who"] == "loop"]
    return next(of for of in loops if all(of[name] == cell[name] for name in ("category", "size", "python")))


def nets(cells, cell, what="wall_ns"):
    """The time per call in each process launch, without the loop."""
    loop = around(cells, cell)
    times = launches(cell, what)
    return times if loop is None else [time - of for time, of in zip(times, launches(loop, what))]


def shortest(cell):
    """The time per call in the fastest batch."""
    return min(time for launch in cell["launches"] for time in launch["wall_ns"]) / cell["calls"]


def logs(first, second):
    return [math.log(b / a) for a, b in zip(first, second) if a > 0 and b > 0]


def within(first, second):
    """The maximum relative error of a ratio of two rounded times."""
    return 4 * ROUNDED * max(1 / abs(time) for time in [*first, *second])


def test_times_match_the_samples(whole):
    cells = whole["cells"]
    for cell in cells:
        loop, own = around(cells, cell), nets(cells, cell)
        assert cell["gross_ns"] == pytest.approx(median(launches(cell, "wall_ns")), abs=2 * ROUNDED), cell["who"]
        assert cell["net_ns"]["middle"] == pytest.approx(median(own), abs=2 * ROUNDED), cell["who"]
        assert cell["net_ns"]["low"] <= cell["net_ns"]["middle"] <= cell["net_ns"]["high"]
        assert cell["cpu_ns"] == pytest.approx(median(nets(cells, cell, "cpu_ns")), abs=2 * ROUNDED)
        assert cell["first_call_ns"] == median(launch["first_ns"] for launch in cell["launches"])
        if loop:
            # The median of two process launches is their mean, so the difference of medians is exact.
            assert cell["net_ns"]["middle"] == pytest.approx(cell["gross_ns"] - loop["gross_ns"], abs=1e-6)
        assert cell["best_ns"] == pytest.approx(shortest(cell) - (shortest(loop) if loop else 0), abs=2 * ROUNDED)


def test_ratios_are_relative_to_the_floor_of_the_same_build(whole):
    cells = whole["cells"]
    floors = {place(cell): nets(cells, cell) for cell in cells if cell["who"] == whole["floor"]}
    compared = 0
    for cell in cells:
        if cell["who"] in ("loop", "c"):
            assert cell["ratio"] is None
            continue
        # The null control exists in each build, but without sizes.
        floor, own = floors[place(cell)], nets(cells, cell)
        expected = logs(floor, own)
        assert (cell["ratio"] is None) == (expected == []), cell["who"]
        if expected:
            assert cell["ratio"]["middle"] == pytest.approx(math.exp(median(expected)), rel=within(floor, own))
            compared += 1
    assert compared > 60 * len(AVAILABLE)


def test_ranks_are_ordered_by_time(whole):
    bindings = [cell for cell in whole["cells"] if cell["who"] in BINDINGS]
    assert all(cell["rank"] is None for cell in whole["cells"] if cell["who"] not in BINDINGS)
    for where, group in groupby(sorted(bindings, key=lambda cell: str(place(cell))), place):
        group = list(group)
        times = [cell["net_ns"]["middle"] for cell in group]
        assert [cell["rank"] for cell in group] == [1 + sum(of < time for of in times) for time in times], where
        # Only bindings with equal times share a rank.
        assert len({cell["rank"] for cell in group}) == len(set(times)), where


def test_standings_are_geometric_means_of_ratios(whole):
    cells = by([cell for cell in whole["cells"] if cell["size"] is None], "category", "build", "who")
    for build in FLAGS:
        shared = [
            of["name"] for of in whole["categories"]
            if of["size"] is None and all(cells.get((of["name"], build, who), {}).get("ratio") for who in AVAILABLE)
        ]  # fmt: skip
        rows = [of for of in whole["standings"] if of["build"] == build]
        assert [of["rank"] for of in rows] == list(range(1, len(AVAILABLE) + 1))
        assert [of["ratio"] for of in rows] == sorted(of["ratio"] for of in rows)
        for of in rows:
            ratios = [cells[name, build, of["binding"]]["ratio"]["middle"] for name in shared]
            assert of["categories"] == len(ratios) >= 30
            assert of["ratio"] == pytest.approx(math.exp(sum(map(math.log, ratios)) / len(ratios)))


def test_build_differences_compare_the_same_binding(whole):
    cells = whole["cells"]
    callers = by([cell for cell in cells if cell["size"] is None], "category", "who", "build")
    rows = whole["differences"]
    # ctypes-pydll does not have one of the categories.
    assert len(rows) >= len(AVAILABLE) * 33 - 1
    bounds = {}
    for of in rows:
        pair = [nets(cells, callers[of["category"], of["who"], build]) for build in FLAGS]
        assert of["ratio"]["middle"] == pytest.approx(math.exp(median(logs(*pair))), rel=within(*pair))
        assert of["gap_ns"]["middle"] == pytest.approx(median(b - a for a, b in zip(*pair)), abs=4 * ROUNDED)
        if of["who"] == "null":
            # The interval has no bounds if all process launches except one were disturbed.
            low, high = (of["ratio"][end] or of["ratio"]["middle"] for end in ("low", "high"))
            bounds[of["category"]] = max(high - 1, 1 - low)
    for of in rows:
        assert of["bound"] == pytest.approx(bounds[of["category"]])
        if of["cost"] in ("slower", "faster"):
            assert of["who"] != "null" and of["adjusted_p"] < 0.05
            assert abs(of["ratio"]["middle"] - 1) > of["bound"]
            assert (of["ratio"]["middle"] > 1) == (of["cost"] == "slower")


def test_crossover_is_where_the_overhead_falls_below_ten_percent(whole):
    cells = whole["cells"]
    sized = by([cell for cell in cells if cell["size"] is not None], "size", "who")
    assert [of["binding"] for of in whole["crossovers"]] == AVAILABLE
    for of in whole["crossovers"]:
        sizes = [point["elements"] for point in of["points"]]
        assert sizes == sorted({size for size, _ in sized})
        for point in of["points"]:
            call, work = (sized[point["elements"], who] for who in (of["binding"], "c"))
            assert point["call_ns"] == pytest.approx(median(nets(cells, call)), abs=2 * ROUNDED)
            assert point["work_ns"] == pytest.approx(median(nets(cells, work)), abs=2 * ROUNDED)
        shares = [(point["call_ns"] - point["work_ns"]) / point["work_ns"] for point in of["points"]]
        large = [size for size, share in zip(sizes, shares) if share >= 0.1]
        if not large:
            assert (of["crossing"], of["elements"]) == ("before", sizes[0])
        elif large[-1] == sizes[-1]:
            assert (of["crossing"], of["elements"]) == ("after", sizes[-1])
        else:
            assert of["crossing"] == "at"
            assert large[-1] <= of["elements"] <= sizes[sizes.index(large[-1]) + 1]


# Builds.


def test_builds_use_the_flags_of_their_profile(whole):
    rust = {"fast": RUST, "instrumented": f'{RUST}, RUSTFLAGS="{FRAME_POINTERS}"'}
    reported = {of["name"]: (of["c_flags"], of["rust_flags"]) for of in whole["profiles"]}
    assert reported == {name: (FLAGS[name], rust[name]) for name in FLAGS}
    compiled = Counter()
    for build in whole["builds"]:
        flags = shlex.split(FLAGS[build["build"]])
        for command in build["commands"]:
            words = shlex.split(command)
            if words[0] == sys.executable or not any(word.endswith((".c", ".cpp")) for word in words):
                continue
            compiled[build["binding"], build["build"]] += 1
            assert " ".join(flags) in " ".join(words), command
            assert ("-fno-omit-frame-pointer" in words) == (build["build"] == "instrumented"), command
            # Later flags would override them.
            more = [word for word in words if word not in flags]
            assert not [word for word in more if word.startswith(("-O", "-march", "-mtune", "-fomit", "-g"))], command
    # nanobind has an additional source file to compile.
    expected = {name: 2 if name == "nanobind" else 1 for name in COMPILED if name in AVAILABLE and name != "pyo3"}
    assert compiled == {(name, build): count for name, count in expected.items() for build in FLAGS}
    for build in (of for of in whole["builds"] if of["binding"] == "pyo3"):
        words = shlex.split(build["commands"][0])
        expected = FRAME_POINTERS if build["build"] == "instrumented" else ""
        assert f"RUSTFLAGS={expected}" in words
        assert words[-2:] == ["--profile", "instrumented" if build["build"] == "instrumented" else "release"]


def count_frame_pointer_functions(library):
    """The number of functions that set up a frame pointer, according to objdump."""
    words = ["objdump", "--disassemble", "--no-show-raw-insn", str(library)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    functions = re.split(r"^[0-9a-f]+ <.*>:$", text, flags=re.M)[1:]
    return sum(re.search(r"\bmov +%rsp,%rbp\b", function) is not None for function in functions)


@pytest.mark.parametrize("binding", COMPILED)
def test_instrumented_builds_have_frame_pointers(whole, binding):
    need(binding)
    own = by([of for of in whole["builds"] if of["binding"] == binding], "build")
    counts = {}
    for (build,), of in own.items():
        assert [library["name"] for library in of["libraries"]][-1] == "libbenchlib.so"
        for library in of["libraries"]:
            assert library["debug_info"] != "none"
            assert library["callers_with_frame_pointer"] <= library["with_frame_pointer"] <= library["functions"]
        counts[build] = [library["with_frame_pointer"] for library in of["libraries"]]
    assert all(fast < instrumented for fast, instrumented in zip(counts["fast"], counts["instrumented"])), counts
    if not shutil.which("objdump"):
        pytest.skip("objdump not found; the other checks passed")
    for (build,), of in own.items():
        for library, ours in zip(of["libraries"], counts[build]):
            theirs = count_frame_pointer_functions(Path(of["directory"]) / library["name"])
            # objdump also counts functions without symbols, and prologues after an early branch.
            assert ours <= theirs <= ours + max(8, 0.15 * ours), (library["name"], build)


# Results of calls.

# Runs in a separate process, because a broken binding may crash it.
BY_HAND = '''
import importlib.util, json, sys
from array import array

name, path = sys.argv[1:]
spec = importlib.util.spec_from_file_location("by_hand." + name, path)
m = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = m
spec.loader.exec_module(m)

is_ctypes, is_cffi = "ctypes" in name, "cffi" in name


def items(data):
    """Arguments for a buffer of doubles: the buffer itself, or a pointer and the length."""
    if is_ctypes:
        return (m.c_double * len(data)).from_buffer(data), len(data)
    if is_cffi:
        return m.ffi.from_buffer("double[]", data), len(data)
    return (data,)


def text(words):
    return words.encode() if is_ctypes or is_cffi else words


def back(function):
    return m.callback(function) if is_ctypes or is_cffi else function


def refused(x):
    try:
        m.check(x)
    except ValueError as error:
        return str(error)


data = array("d", [1.5 * i for i in range(40)])
scaled = array("d", data)
m.scale(*items(scaled), 3.0)
left, right, product = (array("d", [(i * k) % 7 for i in range(16)]) for k in (2, 3, 0))
sides = [items(side)[0] for side in (left, right, product)]
m.matmul(*sides, 4)
point = m.point_new(3.0, 4.0) if is_cffi else m.point_make(3.0, 4.0)
m.point_move(point, 2.0, -1.0)
made = m.point_make(6.0, 8.0)
dot = (*[items(side)[0] for side in (left, right)], 16)[: 3 if is_ctypes or is_cffi else 2]
print(json.dumps({
    "noop": m.noop(),
    "returned": [m.return_int(), m.return_int64(), m.return_bool(), m.return_double()],
    "added": [m.add_int32(2**30, -7), m.add_int64(2**50, -7), m.add_double(0.1, 0.2)],
    "and": [m.and_bool(a, b) for a in (True, False) for b in (True, False)],
    "length": [m.bytes_length(b""), m.bytes_length(b"abc"), m.str_length(text("gr\\u00fc\\u00dfe"))],
    "concat": m.concat("gr\\u00fc\\u00df", "e"),
    "sum": [m.sum_double(*items(data)), m.sum_strided(*items(data), 4)],
    "scaled": list(scaled),
    "product": list(product),
    "dot": m.dot(*dot),
    "point": [point.x, point.y, m.point_norm(made), made.x, made.y],
    "called": [m.call(back(lambda x: 3 * x), 14), m.call_many(back(lambda x: x * x), 10)],
    "alloc": m.alloc(100),
    "args": [m.args5(1, -2, 3, -4, 5), m.args8(*map(float, range(8))), m.args_mixed(1, 2.5, 2**40, True, 4.0, -6)],
    "large": [m.large_values(m.large_make(2.5)), list(m.large_bytes(300))],
    "refused": [refused(-1), refused(0), refused(7)],
    "functions": [function() for function in m.functions],
}))
'''


def in_python():
    """The expected results of BY_HAND, computed in Python."""
    data = [1.5 * i for i in range(40)]
    left, right = ([float((i * k) % 7) for i in range(16)] for k in (2, 3))
    places = pairs(range(4), repeat=2)
    product = [sum(left[4 * row + k] * right[4 * k + column] for k in range(4)) for row, column in places]
    return {
        "noop": None,
        "returned": [42, 2**40 + 7, True, 2.5],
        "added": [2**30 - 7, 2**50 - 7, 0.1 + 0.2],
        "and": [True, False, False, False],
        "length": [0, 3, 5],
        "concat": "grüße",
        "sum": [sum(data), sum(data[::4])],
        "scaled": [3 * value for value in data],
        "product": product,
        "dot": sum(a * b for a, b in zip(left, right)),
        "point": [5.0, 3.0, 10.0, 6.0, 8.0],
        "called": [3 * 14 + 1, sum(x * x for x in range(10))],
        "alloc": 100,
        "args": [3, 28.0, 1 + 2.5 + 2**40 + 1 + 4 - 6],
        "large": [[2.5 + i for i in range(16)], [i % 256 for i in range(300)]],
        "refused": ["negative", None, None],
        "functions": list(range(100)),
    }


@pytest.mark.parametrize("build", FLAGS)
@pytest.mark.parametrize("binding", BINDINGS)
def test_binding_returns_the_same_results_as_python(whole, binding, build):
    need(binding)
    directory = Path(by(whole["builds"], "binding", "build")[binding, build]["directory"])
    name = f"bench_{binding.replace('-', '_')}"
    (module,) = [path for path in directory.iterdir() if re.fullmatch(rf"{name}(\..*)?\.(so|py)", path.name)]
    words = [sys.executable, "-c", BY_HAND, name, str(module)]
    done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == in_python()


# Other formats.


def test_csv_has_the_same_values_as_the_json(whole):
    rows = list(csv.DictReader(MEASURED["csv"].splitlines()))
    assert len(rows) == len(whole["cells"]) > 60 * len(AVAILABLE)
    groups = {of["name"]: of["group"] for of in whole["categories"]}

    def number(value):
        return None if value == "" else float(value)

    for row, cell in zip(rows, whole["cells"]):
        assert None not in row and None not in row.values(), "a row has missing or extra columns"
        assert (row["category"], row["build"], row["python"]) == (cell["category"], cell["build"], cell["python"])
        assert row["group"] == groups[cell["category"]]
        if cell["who"] in BINDINGS:
            assert row["binding"] == cell["who"]
        assert (number(row["size"]), number(row["rank"])) == (cell["size"], cell["rank"])
        for column, figure in (("net", cell["net_ns"]), ("ratio", cell["ratio"] or {})):
            unit = "_ns" if column == "net" else ""
            names = (column + unit, f"{column}_low{unit}", f"{column}_high{unit}")
            assert [number(row[name]) for name in names] == [figure.get(key) for key in ("middle", "low", "high")]
        for name in ("best_ns", "cpu_ns", "gross_ns", "first_call_ns"):
            assert number(row[name]) == cell[name]
        assert int(row["launches"]) == len(cell["launches"])
        assert int(row["batches"]) == sum(len(launch["wall_ns"]) for launch in cell["launches"])
        assert (row["note"], row["trouble"]) == (cell["note"], "")


def tables(markdown):
    """The first table below each heading, as rows of cell texts by column title."""
    found = {}
    for section in re.split(r"^## ", markdown, flags=re.M)[1:]:
        lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
        if lines:
            heads, _, *rows = [[cell.strip() for cell in line] for line in lines]
            found[section.splitlines()[0]] = [dict(zip(heads, row)) for row in rows]
    return found


def test_markdown_has_the_tables(laggard, tmp_path):
    need("cffi-abi")
    file = tmp_path / "some.md"
    some = ["--categories", "noop,sum_double,error", "--bindings", "cffi-abi,ctypes"]
    found = json.loads(laggard("ffi", *FEW, *some, "--json", "-o", file).stdout)
    text = file.read_text(encoding="utf-8")
    shown = tables(text)
    cells = by(found["cells"], "category", "size", "build", "who")
    (calls,) = [rows for name, rows in shown.items() if name.startswith("Time per call")]
    assert [row["category"] for row in calls] == ["noop", "sum_double", "error"]
    for row in calls:
        for who in ("capi", "cffi-abi", "ctypes-pydll", "ctypes"):
            (column,) = [name for name in row if name.split()[0] == who]
            net = cells[row["category"], None, "fast", who]["net_ns"]["middle"]
            assert float(row[column].replace(",", "")) == pytest.approx(net, rel=0.006, abs=0.0006)
    assert [row["binding"] for name, rows in shown.items() if name.startswith("Bindings by cost") for row in rows] == [
        of["binding"] for of in found["standings"] if of["build"] == "fast"
    ]
    for heading in ("noop: ", "error: ", "Controls", "Cost of instrumented builds", "Elements needed for"):
        assert [name for name in shown if name.startswith(heading)], heading
    for profile in found["profiles"]:
        assert profile["c_flags"] in text
    for build in found["builds"]:
        for command in build["commands"]:
            assert command in text


# The page.

SOME = ["--categories", "noop,str_length,sum_double"]
DRAWN = """() => [...document.querySelectorAll("svg.chart")].map((chart) => {
  const sizes = (name) => [...chart.querySelectorAll(name)].map((mark) => mark.getBoundingClientRect());
  return {
    bars: sizes("rect").map((box) => box.width * box.height),
    lines: sizes("polyline").map((box) => box.width),
    points: sizes("circle").length,
    texts: [...chart.querySelectorAll("text")].map((text) => [text.firstChild.data, getComputedStyle(text).fill]),
    ground: getComputedStyle(document.body).backgroundColor,
  };
})"""
PAGES = {}


@pytest.fixture
def page_of(laggard, tmp_path_factory):
    """The HTML page of part of the suite, and the JSON of the same run; measured once."""
    if not PAGES:
        file = tmp_path_factory.mktemp("ffi") / "ffi.html"
        PAGES["found"] = json.loads(laggard("ffi", *FEW, *SOME, "--json", "-o", file).stdout)
        PAGES["file"] = file
    return PAGES["file"], PAGES["found"]


def contrast(first, second):
    """The contrast ratio of two colours, as defined by WCAG."""

    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_draws_every_binding_and_size(open_page, page_of, shots, theme):  # noqa: F811
    file, found = page_of
    page = open_page(file, theme=theme)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    bars, lines = page.evaluate(DRAWN)
    fast = [cell for cell in found["cells"] if cell["build"] == "fast" and cell["size"] is None]
    drawn = [cell for cell in fast if cell["who"] in BINDINGS]
    assert len(drawn) == 3 * len(AVAILABLE)
    assert len(bars["bars"]) == len(drawn) and min(bars["bars"]) > 1
    assert len(lines["lines"]) == len(found["crossovers"]) == len(AVAILABLE) and min(lines["lines"]) > 300
    assert lines["points"] == sum(len(of["points"]) for of in found["crossovers"])
    for chart in (bars, lines):
        assert chart["texts"] and min(contrast(fill, chart["ground"]) for _, fill in chart["texts"]) >= 4.5
    assert {"noop", "str_length", "sum_double"} <= {words for words, _ in bars["texts"]}
    # Tooltips show the values of marks.
    titles = page.evaluate("[...document.querySelectorAll('svg.chart g > title')].map((title) => title.textContent)")
    assert sum(title.startswith("capi, noop: ") for title in titles) == 1
    legend = page.locator(".legend").first
    assert legend.locator(".key").all_inner_texts() == AVAILABLE
    painted(page)
    worst = page.evaluate(CONTRASTS)
    assert {name: ratio for name, ratio in worst.items() if ratio < 4.5} == {}
    take(page, shots / f"ffi-{theme}.png")


def test_page_fits_narrow_windows_and_works_without_scripts(open_page, page_of):
    file, _ = page_of
    page = open_page(file)
    for width in (390, 768):
        page.set_viewport_size({"width": width, "height": 800})
        painted(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    still = open_page(file, javascript=False)
    assert still.locator("svg.chart rect").count() == 3 * len(AVAILABLE)
    assert still.locator("table.rows tbody tr").count() > 3 * len(AVAILABLE)


def test_hostile_function_names_are_text_in_the_page(open_page, laggard, shots, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "strange.py").write_text(f"globals()[{MARKUP!r}] = lambda x: x\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "own.html"
    own = ["--fn", f"strange:{MARKUP}", "--setup", "x = '<b>bold</b>'", "--args", "('<b>bold</b>' + x,)"]
    found = json.loads(laggard("ffi", *FEW, *own, "--json", "-o", file).stdout)
    jsonschema.validate(found, SCHEMA)
    (name,) = [of["name"] for of in found["bindings"] if of["is_users"]]
    assert name == f"strange:{MARKUP}"
    page = open_page(file)
    text = page.locator("body").inner_text()
    assert MARKUP in text and "<b>bold</b>" in text
    assert page.locator("img, iframe, object").count() == 0
    assert page.locator("main b").get_by_text("bold", exact=True).count() == 0
    # One bar for the floor and one for the function. Only the fast build of the floor is drawn.
    assert page.locator("svg.chart rect").count() == 2
    assert page.evaluate("document.querySelectorAll('svg.chart g > title')[1].textContent").startswith(name)
    take(page, shots / "ffi-own.png")


# The Makefile.


@pytest.fixture
def makes(tmp_path):
    """Runs make in a directory that has only the Makefile."""
    if not shutil.which("make"):
        pytest.skip("make not found")
    if not os.environ.get("LAGGARD_BIN"):
        pytest.exit("LAGGARD_BIN is not set; run `cargo xtask test`", returncode=2)
    shutil.copy(SUBJECT / "Makefile", tmp_path)

    def make(*words, code=0):
        program = Path(os.environ["LAGGARD_BIN"]).resolve()
        words = ["make", f"LAGGARD={program}", f"PYTHON={sys.executable}", *words]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == code, done.stderr
        return done

    return make


# Runs a program like the command line does, and prints the benchmark libraries that it has loaded.
LOADED = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
for path in sorted({line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if "bench" in line}):
    print("loaded", path)
"""


def run_bench(directory, binding, *more):
    """Runs the program of a binding. Returns its output lines and the libraries that it has loaded."""
    script = f"{directory.name}/{binding}_impl/{binding}_bench.py"
    words = [sys.executable, "-c", LOADED, script, "--iterations", "1000", *more]
    done = subprocess.run(words, cwd=directory.parent, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return (
        [line for line in lines if not line.startswith("loaded ")],
        [Path(line.partition(" ")[2]) for line in lines if line.startswith("loaded ")],
    )


def test_make_builds_programs_to_profile(makes, tmp_path):
    need("pyo3")
    implementations, fast = tmp_path / "implementations", tmp_path / "fast_build"
    makes("PROFILE=fast", "build-all")
    names = [binding.replace("-", "_") for binding in AVAILABLE]
    assert sorted(path.name for path in implementations.iterdir()) == sorted(f"{name}_impl" for name in names)
    groups = len(set(re.findall(r'^group = "(.*)"$', (SUBJECT / "suite.toml").read_text(), re.M)))
    for name in names:
        lines, loaded = run_bench(implementations, name)
        # PyDLL cannot release the GIL, so it lacks that group.
        assert len(lines) == groups - (name == "ctypes_pydll"), name
        for line in lines:
            assert re.fullmatch(r"\w+ +[\d.]+ ns per call, including the loop", line), line
        assert loaded and {path.parent for path in loaded} == {implementations / f"{name}_impl"}
    info = makes("info").stdout
    assert re.search(r"^profile: +fast$", info, re.M) and re.search(r"^implementations/: +fast$", info, re.M)
    # A copy of the directory runs even after the original was rebuilt or deleted.
    subprocess.run(["cp", "-r", "implementations", "fast_build"], cwd=tmp_path, check=True)
    makes("PROFILE=instrumented", "build-all")
    assert re.search(r"^implementations/: +instrumented$", makes("info").stdout, re.M)
    libraries = {}
    for directory in (fast, implementations):
        for name in ("ctypes", "pyo3"):
            lines, loaded = run_bench(directory, name, "--categories", "noop")
            assert [line.split()[0] for line in lines] == ["noop"]
            assert loaded and {path.parent for path in loaded} == {directory / f"{name}_impl"}
            libraries[directory, name] = {path.name: path.read_bytes() for path in loaded}
    for name in ("ctypes", "pyo3"):
        assert libraries[fast, name] != libraries[implementations, name], "both profiles built the same library"
    makes("clean")
    assert not implementations.exists() and fast.exists()
    assert len(run_bench(fast, "ctypes")[0]) == groups


def test_make_info_prints_profiler_commands(makes):
    rust = {"fast": RUST, "instrumented": f'{RUST}, RUSTFLAGS="{FRAME_POINTERS}"'}
    program = f"{sys.executable} implementations/ctypes_impl/ctypes_bench.py --iterations 1000000"
    for profile, graphs in (("fast", ["lbr", "dwarf"]), ("instrumented", ["fp"])):
        lines = [line.strip() for line in makes(f"PROFILE={profile}", "info").stdout.splitlines()]
        assert FLAGS[profile] in [line.partition(":")[2].strip() for line in lines]
        assert rust[profile] in [line.partition(":")[2].strip() for line in lines]
        commands = [line.partition(" -- ")[0] for line in lines if line.endswith(f" -- {program}")]
        assert [words.split()[3] for words in commands if words.startswith("perf record")] == graphs
        assert [words for words in commands if words.startswith("laggard record")]
    failed = makes("PROFILE=quick", "build-all", code=2)
    assert 'unknown profile "quick": use PROFILE=fast or PROFILE=instrumented' in failed.stderr
    assert "build-all" in makes("help").stdout
