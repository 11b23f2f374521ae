"""Every command in the README, in the guide and in `--help` runs.

Commands are run page by page in a directory with sample files of the names that the documents use. A command is
skipped only if the document marks it: `<!-- not run: needs REASON -->` on the line before a block or in a table row, or
`# needs REASON` after the command. Commands on perf.data are skipped if perf is not installed. Time limits are added to `bench`, `why` and `ffi`, because only their success counts.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FIXTURES, ROOT
from test_compare import steps

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="sampling requires Linux"),
    pytest.mark.skipif(sys.version_info < (3, 11), reason="one version of Python is enough; this one takes long"),
]

FIRST_HOUR = ROOT / "docs" / "examples" / "first-hour.md"
PAGES = [ROOT / "README.md", FIRST_HOUR, *sorted((ROOT / "docs" / "guide").glob("*.md"))]
VERBS = "record report compare bench why calls doctor dump inspect view flame convert index ffi query fleet".split()
NOT_RUN = "<!-- not run: needs "
NEEDS = re.compile(r"\s#\s*needs ")
APP = """\
import numpy as np


def scores(a, b):
    return np.dot(a, b)


def best(n):
    a = np.random.default_rng(1).random((300, 300), dtype=np.float32)
    return sum(int(scores(a, a).argmax()) for _ in range(n))


print(best(100))
"""
DEMO = """\
void scale(float *a, long n, float by) { for (long i = 0; i < n; i++) a[i] *= by; }
double total(const double *a, long n) { double sum = 0; for (long i = 0; i < n; i++) sum += a[i]; return sum; }
"""


def commands_of_page(text):
    """Commands of a Markdown page: of `console` and `sh` blocks, and inline code that begins with `laggard VERB`."""
    block, skipped, found = None, False, []
    for line in text.splitlines():
        if line.startswith("```"):
            block = None if block is not None else line[3:]
            skipped = skipped and block is not None
        elif block is None:
            skipped = NOT_RUN in line or (skipped and not line.strip())
            if not skipped:
                found += re.findall(r"`(laggard (?:%s)\b[^`]*)`" % "|".join(VERBS), line)
        elif not skipped and block == "console" and line.startswith("$ "):
            found.append(line[2:])
        elif not skipped and block == "sh" and line.strip() and not line.startswith("#"):
            found.append(line)
    return [line for line in found if is_complete(line)]


def commands_of_help(text):
    """Commands of the examples at the end of a verb's help."""
    examples = text.partition("Examples:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in examples.splitlines() if not NEEDS.search(line)]


def is_complete(line):
    """Whether a command can be run: not if it only names a verb or an option, or has a placeholder, as in
    `laggard compare A B`."""
    words = line.split()
    if words[:2] in (["laggard", "record"], ["laggard", "calls"]) and not {"--", "--case", "--pid", "app.py"} & {*words}:
        return False
    if NEEDS.search(line) or any(word.isupper() and word.isalpha() for word in words):
        return False
    return len(words) > 2 or words[-1] in ("doctor", "index")


def quick(line):
    """The command with a time limit, so that the test stays short."""
    if "--time" in line or "--from" in line:
        return line
    line = re.sub(r"\blaggard (bench|why) ", r"laggard \1 --time 300ms ", line)
    return re.sub(r"\blaggard ffi (?=--)", "laggard ffi --launches 1 ", line)


def write_gzip(path, value):
    path.write_bytes(gzip.compress(json.dumps(value).encode()))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Environment of the commands: the package and its Python come first on PATH, and caches are private."""
    cache = tmp_path_factory.mktemp("cache")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(cache), "OPENBLAS_NUM_THREADS": "1", "BROWSER": "true"}


def run(line, place, environment):
    shell = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(
        shell, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, text=True, errors="replace"
    )


@pytest.fixture(scope="module")
def samples(tmp_path_factory, environment):
    """A directory with a file of each name that the documents use. Recordings are made here, by the documented commands."""
    place = tmp_path_factory.mktemp("samples")
    copies = {
        "perf-script.txt": "profiles/perf-script.txt",
        "a.csv": "profiles/perf-stat.csv",
        "b.csv": "profiles/perf-stat.csv",
        "a.pb.gz": "profiles/go-cpu.pb.gz",
        "b.pb.gz": "profiles/go-cpu.pb.gz",
        "callgrind.out": "profiles/inside.callgrind",
        "massif.out": "profiles/heap.massif",
        "before.json": "bench/hyperfine.json",
        "after.json": "bench/hyperfine.json",
        "why.json": "culprits/copy.json",
        "a.folded": "profiles/py-spy.raw",
        "b.folded": "profiles/py-spy.raw",
    }
    for name, fixture in copies.items():
        shutil.copy(FIXTURES / fixture, place / name)
    for name in ("ranks", "traces", "before", "after"):
        shutil.copytree(FIXTURES / "ranks", place / name, ignore=shutil.ignore_patterns("*.lagi"))
    write_gzip(place / "trace.json.gz", json.loads((FIXTURES / "decode.json").read_text()))
    write_gzip(place / "before.json.gz", steps(2_000))
    write_gzip(place / "after.json.gz", steps(3_000))
    (place / "app.py").write_text(APP)
    (place / "demo.c").write_text(DEMO)
    recordings = [
        "laggard record -o run.lag -- python app.py",
        "laggard record -o b.lag -- python app.py",
        "cp run.lag a.lag",
        "laggard calls -o calls.lag -- python app.py",
        "cp calls.lag a-calls.lag && cp calls.lag b-calls.lag",
        "cc -O2 -g -shared -fPIC -o libdemo.so demo.c",
    ]
    if shutil.which("perf"):
        recordings += [f"perf record -q -F 999 -g -o {name} -- python app.py" for name in ("perf.data", "a.data", "b.data")]
    for line in recordings:
        done = run(line, place, environment)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stderr}"
    return place


def run_all(lines, samples, place, environment):
    """Runs commands in order, in a copy of the samples. Returns a description of each failure."""
    shutil.copytree(samples, place, dirs_exist_ok=True)
    failures = []
    for line in lines:
        if ".data" in line and not shutil.which("perf"):
            continue
        done = run(quick(line), place, environment)
        if done.returncode != 0:
            failures.append(f"$ {line}\nexit status {done.returncode}\n{done.stderr[-600:]}")
    return failures


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_run(page, samples, tmp_path, environment):
    failures = run_all(commands_of_page(page.read_text()), samples, tmp_path, environment)
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("verb", VERBS)
def test_examples_of_help_run(verb, command, samples, tmp_path, environment):
    # The readline module, which pytest imports, sets COLUMNS to 80; examples must not be wrapped.
    wide = {**os.environ, "COLUMNS": "200"}
    lines = commands_of_help(command(verb, "--help", env=wide).stdout)
    assert lines or verb == "dump", "the help has no example that can be run"
    failures = run_all(lines, samples, tmp_path, environment)
    assert not failures, "\n\n".join(failures)


def test_marked_commands_are_skipped():
    page = "Run `laggard report run.lag`.\n\n<!-- not run: needs a GPU -->\n```console\n$ laggard report gpu.json\n```\n"
    page += "```console\n$ laggard doctor\nall fine\n$ laggard dump --pid 1   # needs a process\n```\n"
    assert commands_of_page(page) == ["laggard report run.lag", "laggard doctor"]
