"""`laggard query` and `laggard.query`: results match those computed in Python, only needed columns are built, and all
output formats have the same rows."""

import csv
import io
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import FIXTURES, events, traces

import laggard
from laggard import _laggard
from laggard.query import query

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install 'laggard[sql]'")

DECODE = FIXTURES / "decode.json"
RANKS = FIXTURES / "ranks"
PROFILE = FIXTURES / "profiles" / "py-spy.raw"


def ask(sql, *files):
    return query(sql, *files, index=False)


@pytest.fixture
def trace():
    return laggard.load(DECODE, index=False)


# Results.


@pytest.mark.parametrize("path", [path for path in traces() if path.parent == FIXTURES], ids=lambda path: path.name)
def test_sums_match_the_file(path):
    if path.suffix == ".zst":
        pytest.skip("the standard library cannot decompress Zstandard; the same trace is tested as gzip")
    expected = {}
    for event in events(path):
        if event.get("ph") == "X" and event.get("cat") in ("kernel", "Kernel"):
            count, total = expected.get(event["name"], (0, 0))
            expected[event["name"]] = (count + 1, total + round(float(event["dur"]) * 1000))
    found = ask("select name, count(*), sum(dur_ns) from kernels where activity = 'kernel' group by name", path)
    assert {name: (count, total) for name, count, total in found} == expected


def test_several_files_form_one_table_with_file_and_rank():
    found = ask("select file, rank, count(*) from kernels group by all order by rank", RANKS)
    assert found.fetchall() == [
        (str(RANKS / f"rank{rank}.json"), rank, len(laggard.load(RANKS / f"rank{rank}.json", index=False).kernels))
        for rank in range(3)
    ]
    one = ask("select distinct file, rank from kernels where rank = 1", RANKS)
    assert one.fetchall() == [(str(RANKS / "rank1.json"), 1)]


def test_query_can_use_files_of_several_kinds():
    found = ask("select file, rank, tool is null, events from run order by file", DECODE, PROFILE)
    assert [(file, rank) for file, rank, *_ in found] == [(str(DECODE), None), (str(PROFILE), None)]
    joined = ask("select (select count(*) from kernels), (select count(*) from samples)", DECODE, PROFILE)
    assert joined.fetchall() == [(37, 21)]


def test_file_column_is_the_input_and_not_the_source_file():
    found = ask("select distinct file from samples", FIXTURES / "profiles" / "perf-script-lines.txt")
    assert found.fetchall() == [(str(FIXTURES / "profiles" / "perf-script-lines.txt"),)]
    own = laggard.load(FIXTURES / "profiles" / "perf-script-lines.txt").samples.head(100)
    sources = ask("select source_file from samples", FIXTURES / "profiles" / "perf-script-lines.txt")
    assert [row for (row,) in sources] == [row["source_file"] for row in own]


def test_every_table_of_every_kind_can_be_queried(trace):
    files = [DECODE, PROFILE, FIXTURES / "profiles" / "all.dtruss", FIXTURES / "bench" / "pyperf.json"]
    files.append(FIXTURES / "profiles" / "perf-stat.csv")
    for file in files:
        evidence = laggard.load(file, index=False)
        for name, table in evidence.tables.items():
            found = query(f'from "{name}"', evidence)
            assert set(found.columns) == {*table.column_names, "file", "rank"}
            assert len(found) == len(table)
            head = table.head(5)
            names = [column for column in table.column_names if column != "rank"]
            chosen = ", ".join(f'"{column}"' for column in names)
            rows = query(f'select {chosen} from "{name}" limit 5', evidence).fetchall()
            assert rows == [tuple(row[column] for column in names) for row in head], name


def test_query_returns_the_result_of_the_last_statement():
    found = ask("create macro twice(x) as 2 * x; create view v as from kernels; select twice(count(*)) from v", DECODE)
    assert found.fetchall() == [(74,)]
    assert ask("create table mine as select 7 as x", DECODE).fetchall() in ([], [(1,)])


def test_results_convert_to_arrow_polars_and_pandas():
    found = ask("select name, dur_ns from kernels order by dur_ns desc", DECODE)
    rows = found.fetchall()
    assert found.fetchall() == rows, "a result can be fetched only once"
    assert found.columns == ["name", "dur_ns"] and found.types == ["VARCHAR", "BIGINT"]
    if pyarrow := _package("pyarrow"):
        assert found.to_arrow().to_pydict()["dur_ns"] == [row[1] for row in rows]
        assert pyarrow.table(found).num_rows == len(found)
    if _package("polars"):
        assert found.to_polars().rows() == rows
    if _package("pandas"):
        assert list(found.to_pandas()["dur_ns"]) == [row[1] for row in rows]


def _package(name):
    try:
        return __import__(name)
    except ImportError:
        return None


def test_queries_do_not_need_pyarrow():
    code = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyarrow", "polars", "pandas", "numpy"):
            raise ImportError(name)
sys.meta_path.insert(0, Hidden())
from laggard.query import query
def main():
    sql = "select a.class, count(*) from kernels a join kernels b using (name) group by 1"
    found = query(sql, sys.argv[1], index=False)
    print(sum(count for _, count in found), len(found.columns))
main()
"""
    done = subprocess.run([sys.executable, "-c", code, DECODE], capture_output=True, text=True)
    expected = ask("select count(*) from kernels a join kernels b using (name)", DECODE).fetchall()[0][0]
    assert (done.stdout, done.returncode) == (f"{expected} 2\n", 0), done.stderr


# Columns.

NEEDED = [
    ("select class, sum(dur_ns) from kernels group by class", {"kernels": {"class", "dur_ns"}}),
    ("select sum(dur_ns) from kernels where device = 0 and stream > 1", {"kernels": {"dur_ns", "device", "stream"}}),
    ("select count(*) from kernels", {"kernels": {"dur_ns"}}),
    ("select file from kernels", {"kernels": {"dur_ns"}}),
    ("with k as (select * from kernels) select max(dur_ns) from k", {"kernels": {"dur_ns"}}),
    ("with k as materialized (select * from kernels) select max(a.dur_ns) from k a, k b", {"kernels": {"dur_ns"}}),
    ("select x.name from (select name, class, op from kernels) x", {"kernels": {"name"}}),
    ("from kernels select name order by dur_ns limit 3", {"kernels": {"name", "dur_ns"}}),
    (
        "select k.class, o.dur_ns from kernels k join ops o on k.op = o.name",
        {"kernels": {"class", "op"}, "ops": {"dur_ns", "name"}},
    ),
    ("select a.name from kernels a join kernels b on a.stream = b.device", {"kernels": {"name", "stream", "device"}}),
    (
        "select k.name, l.most from kernels k, lateral (select max(dur_ns) as most from ops where name = k.op) l",
        {"kernels": {"name", "op"}, "ops": {"dur_ns", "name"}},
    ),
    (
        "select name from kernels where exists (from launches l where l.correlation = kernels.correlation)",
        {"kernels": {"name", "correlation"}, "launches": {"correlation"}},
    ),
    ("select name, row_number() over (order by ts_ns) from kernels", {"kernels": {"name", "ts_ns"}}),
    ("select columns('launch.*') from kernels", {"kernels": {"launch", "launch_ts_ns"}}),
    ("create macro width(x) as max(x) - min(x); select width(dur_ns) from kernels", {"kernels": {"dur_ns"}}),
    ("create view v as from kernels; select class from v", {"kernels": {"class"}}),
    ("create table mine as select bytes from kernels; select count(*) from mine", {"kernels": {"bytes"}}),
    ("select busy_ns(start_ns, dur_ns) from kernels", {"kernels": {"start_ns", "dur_ns"}}),
    ("select distinct on (class) class, name from kernels", {"kernels": {"class", "name"}}),
    ("select name from kernels union all select name from ops", {"kernels": {"name"}, "ops": {"name"}}),
    ("select 42", {}),
    ("describe kernels", {}),
]


@pytest.mark.parametrize("sql, needed", NEEDED, ids=[sql for sql, _ in NEEDED])
def test_only_needed_columns_are_built(trace, sql, needed):
    query(sql, trace)
    assert {name: set(table.made) for name, table in trace.tables.items() if table.made} == needed


@pytest.mark.parametrize("sql", ["select * from kernels", "summarize kernels", "select kernels from kernels"])
def test_all_columns_are_built_if_all_are_selected(trace, sql):
    query(sql, trace)
    assert trace.kernels.made == trace.kernels.column_names


def test_rank_is_built_only_if_selected(trace):
    query("select name from kernels", trace)
    assert trace.run.made == []
    query("select rank from kernels", trace)
    assert trace.run.made == ["rank"]


@pytest.mark.parametrize(
    "sql",
    [
        "pivot kernels on class using sum(dur_ns) group by device",  # the columns of a pivot depend on the data
        "select sum(x) from (pivot kernels on activity in ('kernel' as x) using count(*) group by name)",
        "select class, sum(dur_ns) from kernels group by class order by class",
    ],
)
def test_result_is_correct_if_the_plan_is_missing_or_wrong(trace, sql, monkeypatch):
    from laggard.query.session import Session

    expected = query(sql, trace).fetchall()
    assert expected and expected[0][0] is not None
    with monkeypatch.context() as patch:
        patch.setattr(Session, "needed", lambda self, statement: None)
        assert query(sql, trace).fetchall() == expected
    with monkeypatch.context() as patch:
        patch.setattr(Session, "needed", lambda self, statement: {"kernels": {"dur_ns"}})
        assert query(sql, trace).fetchall() == expected, "the query was not repeated with the missing columns"
    with monkeypatch.context() as patch:
        patch.setattr(Session, "needed", lambda self, statement: {})
        assert query(sql, trace).fetchall() == expected, "the query was not repeated with the missing table"
        assert query("select count(*) from kernels", trace).fetchall() == [(37,)]


def test_prepared_statement_reads_the_evidence(trace):
    sums = query("prepare p as select count(*), sum(dur_ns) from kernels where device = $1; execute p(0)", trace)
    assert sums.fetchall() == query("select count(*), sum(dur_ns) from kernels where device = 0", trace).fetchall()
    assert sums.fetchall()[0][0] == 37


def test_files_excluded_by_the_query_are_not_read():
    ranks = [laggard.load(RANKS / f"rank{rank}.json", index=False) for rank in range(3)]
    query(f"select sum(dur_ns) from kernels where file = '{ranks[1].path}'", *ranks)
    assert [rank.kernels.made for rank in ranks] == [[], ["dur_ns"], []]


# Functions.


def covered(intervals):
    """The number of time units covered by at least one interval."""
    return len({moment for start, length in intervals for moment in range(start, start + max(length, 0))})


def test_interval_functions_are_correct_for_random_intervals():
    dice = random.Random(7)
    groups = {}
    for group in range(300):
        wide = dice.choice([5, 40, 400])
        lengths = dice.choice([3, 30, 300])
        groups[group] = [(dice.randrange(wide), dice.randrange(-2, lengths)) for _ in range(dice.randrange(1, 12))]
    values = ", ".join(f"({group}, {s}, {d})" for group, rows in groups.items() for s, d in rows)
    found = ask(
        "select g, busy_ns(s, d), idle_ns(s, d), span_ns(s, d), typeof(busy_ns(s, d))"
        f" from (values {values}, (0, null, 5), (0, 5, null)) t(g, s, d) group by g"
    )
    assert len(found) == len(groups)
    for group, busy, idle, span, type_ in found:
        rows = groups[group]
        whole = max(s + max(d, 0) for s, d in rows) - min(s for s, _ in rows)
        assert (busy, idle, span, type_) == (covered(rows), whole - covered(rows), whole, "BIGINT"), rows
    nothing = ask("select busy_ns(s, d), span_ns(s, d) from (values (null::bigint, 1)) t(s, d)")
    assert nothing.fetchall() == [(None, None)]
    base = 1_755_190_613_566_574_302
    exact = f"select busy_ns(s, d) from (values ({base}, 1), ({base} + 1, 2), ({base} + 1, 1)) t(s, d)"
    assert ask(exact).fetchall() == [(3,)], "times since the epoch lost precision"


def test_overlap_is_correct_for_random_pairs():
    dice = random.Random(11)
    pairs = [tuple(dice.randrange(-2, 12) for _ in range(4)) for _ in range(300)]
    rows = ", ".join(map(str, pairs))
    found = ask(f"select a, b, c, d, overlap_ns(a, b, c, d) from (values {rows}) t(a, b, c, d)")
    for a, b, c, d, overlap in found:
        assert overlap == len(set(range(a, a + max(b, 0))) & set(range(c, c + max(d, 0))))


@pytest.mark.parametrize("path", [DECODE, RANKS / "rank1.json", FIXTURES / "traps" / "several-gpus.json"])
def test_busy_time_matches_the_devices_table(path):
    found = ask("select device, busy_ns(start_ns, dur_ns), idle_ns(start_ns, dur_ns) from kernels group by 1", path)
    devices = ask("select device, busy_ns, idle_ns from devices", path)
    assert sorted(found.fetchall()) == sorted(devices.fetchall())


# Errors.


def test_error_hints_list_tables_and_columns():
    with pytest.raises(laggard.UsageError, match="kernel does not exist") as error:
        ask("select 1 from kernel", DECODE)
    assert "kernels" in error.value.hint and "launches" in error.value.hint
    with pytest.raises(laggard.UsageError, match="duration") as error:
        ask("select duration from kernels", DECODE)
    assert "dur_ns" in error.value.hint and "launch_ts_ns" in error.value.hint
    with pytest.raises(laggard.UsageError, match="syntax error") as error:
        ask("select end from flows", DECODE)
    assert '"end"' in error.value.hint
    with pytest.raises(laggard.UsageError) as error:
        ask("select 1 from kernels")
    assert "files" in error.value.hint
    with pytest.raises(laggard.UsageError):
        ask("  ", DECODE)
    with pytest.raises(laggard.UsageError, match="convert|cast"):
        ask("select name::bigint from kernels", DECODE)
    with pytest.raises(FileNotFoundError):
        ask("select 1", "nowhere.json")
    with pytest.raises(laggard.FormatError):
        ask("select 1", FIXTURES / "not-traces" / "text.json")


def test_old_duckdb_is_rejected(monkeypatch):
    monkeypatch.setattr(duckdb, "__version__", "1.4.4")
    with pytest.raises(laggard.EngineMissing, match="too old") as error:
        ask("select 1", DECODE)
    assert "duckdb>=1.5" in error.value.hint


def test_only_traces_of_a_directory_are_loaded(tmp_path, command):
    shutil.copy(DECODE, tmp_path / "a.json")
    shutil.copy(FIXTURES / "not-traces" / "text.json", tmp_path / "b.json")
    shutil.copy(FIXTURES / "bench" / "pyperf.json", tmp_path / "c.json")
    (tmp_path / "notes.txt").write_text("hello")
    assert ask("select distinct file from kernels", tmp_path).fetchall() == [(str(tmp_path / "a.json"),)]
    stderr = command("query", "--no-index", "select count(*) from kernels", tmp_path).stderr
    assert stderr.count("warning: skipped") == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(laggard.FormatError, match="no trace"):
        ask("select 1", empty)


# The command line.

SQL = "select name, dur_ns, bytes, dur_ns / 7 as part, phase from kernels order by ts_ns"


def test_all_formats_have_the_same_rows(command, tmp_path):
    rows = ask(SQL, DECODE).fetchall()
    text = command("query", "--no-index", SQL, DECODE, "--format", "json").stdout
    assert [tuple(row.values()) for row in json.loads(text)] == rows
    text = command("query", "--no-index", SQL, DECODE, "--format", "csv").stdout
    read = list(csv.reader(io.StringIO(text)))
    assert read[0] == ["name", "dur_ns", "bytes", "part", "phase"]
    assert [(row[0], int(row[1]), row[2]) for row in read[1:]] == [
        (row[0], row[1], "" if row[2] is None else str(row[2])) for row in rows
    ]
    command("query", "--no-index", SQL, DECODE, "-o", tmp_path / "a.parquet")
    assert duckdb.sql(f"from '{tmp_path / 'a.parquet'}'").fetchall() == rows
    pyarrow = pytest.importorskip("pyarrow")
    command("query", "--no-index", SQL, DECODE, "-o", tmp_path / "a.arrow")
    with pyarrow.ipc.open_stream(tmp_path / "a.arrow") as stream:
        assert [tuple(row.values()) for row in stream.read_all().to_pylist()] == rows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.arrow", "a.parquet"], "temporary files left"


def test_json_is_valid_for_all_numbers(command):
    sql = "select 'nan'::double as a, 'inf'::double as b, 2::hugeint ** 100 as c, 9007199254740993 as d, [1] as e"
    (row,) = json.loads(command("query", sql, "--format", "json").stdout)
    assert row["a"] is None and row["b"] is None and row["d"] == 9007199254740993 and row["e"] == [1]


def test_table_fits_the_width_and_lists_omitted_rows_and_columns(command):
    done = command("query", "--no-index", "from kernels", DECODE, "--top", "5", env={**os.environ, "COLUMNS": "90"})
    lines = done.stdout.splitlines()
    assert all(len(line) <= 90 for line in lines[:-1])
    assert len(lines) == 2 + 5 + 1
    assert lines[-1].startswith("(32 more rows; not shown: ") and lines[-1].endswith("shared_memory)")
    whole = command("query", "--no-index", "select dur_ns from kernels", DECODE, "--all").stdout
    assert len(whole.splitlines()) == 2 + 37


def test_control_characters_in_names_are_escaped(command):
    done = command("query", "--no-index", "select name from kernels", FIXTURES / "traps" / "control-characters.json")
    assert not any(ord(char) < 32 and char != "\n" for char in done.stdout)
    assert "\\x1b" in done.stdout
    assert "control characters" in done.stderr
    html = ask("select '<script>alert(1)</script>' as x")._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_files_are_not_overwritten_by_accident(command, tmp_path):
    trace = tmp_path / "trace.json"
    shutil.copy(DECODE, trace)
    before = trace.read_bytes()
    command("query", "--no-index", "select 1 as a", trace, "-o", trace, "--force", code=2)
    other = tmp_path / "other.json"
    shutil.copy(DECODE, other)
    done = command("query", "--no-index", "select 1 as a", trace, "-o", other, code=2)
    assert "--force" in done.stderr and other.read_bytes() == before and trace.read_bytes() == before
    command("query", "--no-index", "select 1 as a", trace, "-o", other, "--force")
    command("query", "--no-index", "select 2 as a", trace, "-o", other)
    assert json.loads(other.read_text()) == [{"a": 2}]
    for suffix in ("csv", "txt", "parquet"):
        for columns in ("1 as a, 'x,y' as b", "2 as c"):
            command("query", f"select {columns}", "-o", tmp_path / f"again.{suffix}")
    command("query", "select 1", "-o", tmp_path / "x.unknown", code=2)
    command("query", "select error('no')", "-o", tmp_path / "failed.csv", code=2)
    assert not list(tmp_path.glob("failed*")) and not list(tmp_path.glob(".laggard*"))


def test_sql_is_read_from_a_file_or_standard_input(command, tmp_path):
    script = tmp_path / "q.sql"
    script.write_text("-- how many\nselect count(*) as n\nfrom kernels; -- all")
    expected = command("query", "--no-index", "select count(*) as n from kernels", DECODE).stdout
    assert command("query", "--no-index", "-f", script, DECODE).stdout == expected
    assert command("query", "--no-index", DECODE, "-f", script).stdout == expected
    with open(script) as file:
        assert command("query", "--no-index", "-f", "-", DECODE, stdin=file).stdout == expected


def test_exit_statuses_and_messages(command):
    assert command("query", "select foo from kernels", "--no-index", DECODE, code=2).stderr.startswith("error: ")
    stderr = command("query", "nowhere.json", code=2).stderr
    assert "nowhere.json" in stderr and "No such file" in stderr
    assert command("query", "--format", "parquet", "--schema", code=2).stdout == ""


def test_closed_pipe_is_not_an_error(command, tmp_path):
    line = [sys.executable, "-m", "laggard", "query", "select repeat('x', 999) from range(100000)", "--format", "csv"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


ENDLESS = "select count(*) from range(1000000) a, range(10000000) b where a.range * b.range % 7 = 3"


def test_ctrl_c_interrupts_a_query():
    line = [sys.executable, "-m", "laggard", "query", ENDLESS]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode in (130, -2) and out == "" and "Traceback" not in err


def test_schema_describes_every_column(command):
    rows = json.loads(command("query", "--schema", "--format", "json").stdout)
    found = {(row["kind"], row["table"], row["column"]) for row in rows}
    for kind, table in _laggard.schemas():
        for name, _, _ in table.schema:
            assert (kind, table.name, name) in found
    assert all(row["about"] and row["type"] for row in rows)
    text = command("query", "--schema").stdout
    assert all(row["column"] in text and row["table"] in text for row in rows)
    assert "busy_ns(start_ns, dur_ns)" in text
    of_file = command("query", "--schema", "--no-index", PROFILE).stdout
    assert "samples (profile)" in of_file and "kernels" not in of_file


# The prompt.


def test_prompt_reads_statements_from_a_pipe(command, tmp_path):
    script = tmp_path / "in"
    commands = "select 1 as one;\n\\d\n\\d kernels\n"
    script.write_text(f"{commands}select ';' as semi,\n  count(*) as n\nfrom kernels;\nselect 3 as last")
    with open(script) as file:
        out = command("query", "--no-index", DECODE, stdin=file).stdout
    assert out.index("one") < out.index("launches") < out.index("shared_memory") < out.index("semi") < out.index("last")
    script.write_text("select foo;\nselect 'not reached' as x;")
    with open(script) as file:
        done = command("query", "--no-index", DECODE, stdin=file, code=2)
    assert "not reached" not in done.stdout


@pytest.mark.parametrize(
    "text, ended",
    [
        ("select 1;", True),
        ("select 1", False),
        ("select ';", False),
        ("select ';';", True),
        ("select 1 -- ;", False),
        ("select 1; -- done", True),
        ("select /* ; */ 1", False),
        ("select /* ;", False),
        ('select "a;";', True),
        ("select $$;", False),
        ("select $x$;$x$;", True),
        ("select 'it''s';", True),
    ],
)
def test_semicolons_in_strings_and_comments_do_not_end_a_statement(text, ended):
    from laggard.query.statements import is_complete

    assert is_complete(text) is ended


def test_text_is_split_into_statements():
    from laggard.query.statements import split

    text = "-- first;\nselect ';' as a -- one;\n; ; /* ; */ select \"b;\" from t /* x */;\nselect $$;$$, 'it''s;'"
    assert split(text) == ["select ';' as a", 'select "b;" from t', "select $$;$$, 'it''s;'"]
    assert split(" ;; -- nothing") == []


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="pseudo-terminals are not available")
def test_prompt_saves_history_and_continues_after_errors_and_interrupts(tmp_path):
    import pty

    master, slave = pty.openpty()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TERM": "dumb", "COLUMNS": "100"}
    line = [sys.executable, "-m", "laggard", "query", "--no-index", str(DECODE)]
    process = subprocess.Popen(
        line, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True, close_fds=True,
        preexec_fn=_own_terminal,
    )
    os.close(slave)
    screen = ""

    def until(text, seconds=60):
        nonlocal screen
        end = time.monotonic() + seconds
        while text not in screen:
            assert time.monotonic() < end and process.poll() is None, f"{text!r} was not printed: {screen}"
            if select.select([master], [], [], 0.2)[0]:
                screen += os.read(master, 4096).decode(errors="replace")
        screen = screen[screen.index(text) + len(text) :]

    def type_in(text):
        os.write(master, text.encode())

    try:
        until("laggard> ")
        type_in("select nothing from kernels;\n")
        until("hint: kernels has the columns")
        until("laggard> ")
        type_in("select count(*) as counted\n")
        until("...> ")
        type_in("from kernels;\n")
        until("37")
        until("laggard> ")
        type_in(f"{ENDLESS};\n")
        time.sleep(1.5)
        type_in("\x03")
        until("interrupted")
        until("laggard> ")
        type_in("select 40 + 2;\n")
        until("42")
        until("laggard> ")
        type_in("\\q\n")
        assert process.wait(30) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(master)
    assert "select 40 + 2;" in (tmp_path / "laggard" / "query_history").read_text()


def _own_terminal():
    """Makes the terminal the controlling terminal, so that Ctrl-C reaches the process."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_tab_completes_tables_columns_and_functions(trace):
    from laggard.query.prompt import completer
    from laggard.query.session import Session
    from laggard.query.sources import Source

    session = Session([Source("x", trace)])
    complete = completer(session)
    assert complete("kern", 0) == "kernels"
    assert complete("launch_t", 0) == "launch_ts_ns" and complete("launch_t", 1) is None
    assert complete("busy_ns(", 0) == "busy_ns("
    assert complete("kernels.du", 0) == "kernels.dur_ns"
    session.close()
