"""The schema and the examples in the documentation of `laggard query` match the program.

`LAGGARD_UPDATE=1 pytest test_query_guide.py` updates both.
"""

import gzip
import json
import os
import re
import shlex
import shutil

import pytest
from conftest import FIXTURES, ROOT

pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install 'laggard[sql]'")

GUIDE = ROOT / "docs" / "guide" / "query.md"
TABLES = ROOT / "docs" / "reference" / "query-tables.md"
UPDATE = bool(os.environ.get("LAGGARD_UPDATE"))
#: Headings of the kinds of files.
KINDS = {
    "trace": "Traces",
    "profile": "Profiles",
    "calls": "Call traces",
    "bench": "Benchmarks",
    "counters": "Counters",
}


def check(page, expected, found, replace):
    if UPDATE:
        page.write_text(replace(page.read_text()))
    else:
        assert found == expected, f"{page.name} is out of date; LAGGARD_UPDATE=1 updates it"


def schema_as_markdown(rows):
    """The output of `laggard query --schema --format json` as Markdown, with a section for each kind of file."""
    head = "| column | type | meaning |\n|---|---|---|"

    def line(row):
        return f"| `{row['column']}` | {row['type']} | {row['about']} |"

    added = [row for row in rows if row["table"] == rows[0]["table"] and row["column"] in ("file", "rank")]
    parts = [f"## All tables\n\nEvery table has these columns:\n\n{head}", *map(line, added)]
    kind = None
    for row in rows:
        if row["type"] == "table":
            if row["kind"] != kind:
                kind = row["kind"]
                parts.append(f"\n## {KINDS[kind]}")
            parts.append(f"\n### `{row['table']}`\n\nA row is {row['about']}.\n\n{head}")
        elif row["kind"] and row["column"] not in ("file", "rank"):
            parts.append(line(row))
    return "\n".join(parts) + "\n"


def test_the_reference_lists_all_tables_and_columns(command):
    found = schema_as_markdown(json.loads(command("query", "--schema", "--format", "json").stdout))
    block = re.compile(r"(<!-- schema: [^\n]* -->\n)(.*?)(<!-- end -->)", re.DOTALL)
    expected = block.search(TABLES.read_text())[2]
    check(TABLES, expected, found, lambda text: block.sub(lambda m: m[1] + found + m[3], text))


def test_the_examples_of_the_guide_show_the_actual_output(command, tmp_path):
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress((FIXTURES / "decode.json").read_bytes()))
    shutil.copy(FIXTURES / "profiles" / "perf-script.txt", tmp_path)
    shutil.copy(FIXTURES / "bench" / "hyperfine.json", tmp_path / "before.json")
    shutil.copytree(FIXTURES / "ranks", tmp_path / "ranks", ignore=shutil.ignore_patterns("*.lagi"))
    block = re.compile(r"```console\n(.*?)```", re.DOTALL)

    def run(text):
        lines = []
        for line in text.splitlines():
            if line.startswith("$ laggard "):
                words = shlex.split(line.removeprefix("$ laggard "))
                done = command(*words, cwd=tmp_path, env={**os.environ, "COLUMNS": "100", "LAGGARD_INDEX_AFTER": "1000"})
                lines += [line, *done.stdout.splitlines(), *done.stderr.splitlines(), ""]
        return "\n".join(lines).rstrip("\n") + "\n"

    shown = block.findall(GUIDE.read_text())
    assert len(shown) >= 5
    found = [run(text) for text in shown]
    blocks = iter(found)
    check(GUIDE, shown, found, lambda text: block.sub(lambda m: f"```console\n{next(blocks)}```", text))
    assert (tmp_path / "kernels.parquet").exists()
