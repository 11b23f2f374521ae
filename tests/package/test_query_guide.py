"""The guide of `laggard query` shows what the program says. `LAGGARD_UPDATE=1 pytest test_query_guide.py` writes the
schema and the examples anew."""

import json
import os
import re
import shlex
import shutil

import pytest
from conftest import FIXTURES, ROOT

pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install 'laggard[sql]'")

GUIDE = ROOT / "docs" / "guide" / "query.md"
UPDATE = bool(os.environ.get("LAGGARD_UPDATE"))
FILES = {
    "trace.json": FIXTURES / "decode.json",
    "profile.txt": FIXTURES / "profiles" / "perf-script.txt",
    "bench.json": FIXTURES / "bench" / "hyperfine.json",
}


def checked(expected, found, replace):
    if UPDATE:
        GUIDE.write_text(replace(GUIDE.read_text()))
    else:
        assert found == expected, "LAGGARD_UPDATE=1 writes it anew"


def test_the_schema_in_the_guide_is_that_of_the_program(command):
    rows = json.loads(command("query", "--schema", "--format", "json").stdout)
    parts = []
    for row in rows:
        if row["type"] == "table":
            parts.append(f"\n### `{row['table']}` of a {row['kind']}\n\nA row is {row['about']}.\n")
            parts.append("| column | type | meaning |\n|---|---|---|")
        elif row["kind"] and row["column"] not in ("file", "rank"):
            parts.append(f"| `{row['column']}` | {row['type']} | {row['about']} |")
    added = [row for row in rows if row["table"] == rows[0]["table"] and row["column"] in ("file", "rank")]
    lines = "\n".join(f"| `{row['column']}` | {row['type']} | {row['about']} |" for row in added)
    head = f"Every table has\n\n| column | type | meaning |\n|---|---|---|\n{lines}"
    found = "\n".join([head, *parts]) + "\n"
    block = re.compile(r"(<!-- schema: [^\n]* -->\n)(.*?)(<!-- end -->)", re.DOTALL)
    checked(block.search(GUIDE.read_text())[2], found, lambda text: block.sub(lambda m: m[1] + found + m[3], text))


def test_the_examples_of_the_guide_show_what_is_said(command, tmp_path):
    for name, path in FILES.items():
        shutil.copy(path, tmp_path / name)
    shutil.copytree(FIXTURES / "ranks", tmp_path / "ranks", ignore=shutil.ignore_patterns("*.lag"))
    block = re.compile(r"```console\n(.*?)```", re.DOTALL)

    def run(text):
        said = []
        for line in text.splitlines():
            if line.startswith("$ laggard "):
                words = shlex.split(line.removeprefix("$ laggard "))
                done = command(*words, cwd=tmp_path, env={**os.environ, "COLUMNS": "100"})
                said += [line, *done.stdout.splitlines(), *done.stderr.splitlines(), ""]
        return "\n".join(said).rstrip("\n") + "\n"

    shown = block.findall(GUIDE.read_text())
    assert len(shown) >= 5
    found = [run(text) for text in shown]
    blocks = iter(found)
    checked(shown, found, lambda text: block.sub(lambda m: f"```console\n{next(blocks)}```", text))
    assert (tmp_path / "kernels.parquet").exists()
