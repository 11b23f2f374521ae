"""Loading files of every kind, their tables in Arrow libraries, and errors."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter

import laggard
import pytest
from conftest import FIXTURES, events, traces

KINDS = [
    ("amd-native.json", laggard.Trace),
    ("one-member.json.gz", laggard.Trace),
    ("zstandard.json.zst", laggard.Trace),
    ("bench/hyperfine.json", laggard.Bench),
    ("bench/pyperf.json", laggard.Bench),
    ("culprits/scalar-loop.json", laggard.Verdict),
    *((f"profiles/{path.name}", laggard.Profile) for path in (FIXTURES / "profiles").glob("*.folded")),
    *((f"runs/{path.name}", laggard.Evidence) for path in (FIXTURES / "runs").glob("*.lag")),
]


def load(name):
    return laggard.load(FIXTURES / name, index=False)


@pytest.fixture(params=[name for name, _ in KINDS])
def evidence(request):
    return load(request.param)


@pytest.mark.parametrize(("name", "kind"), KINDS, ids=[name for name, _ in KINDS])
def test_kind_is_detected_from_the_content(name, kind):
    found = load(name)
    assert isinstance(found, kind)
    assert found.path == FIXTURES / name
    assert found.kind in repr(found).lower()


@pytest.mark.parametrize("path", [path for path in traces() if path.parent == FIXTURES], ids=lambda path: path.name)
def test_rows_and_sums_of_a_trace_match_the_file(path):
    if path.suffix == ".zst":
        pytest.skip("the standard library cannot decompress Zstandard")
    found = laggard.load(path, index=False)
    all_events = [event for event in events(path) if isinstance(event, dict)]
    kinds = Counter(event.get("cat") for event in all_events if event.get("ph") == "X")
    kernels = found.kernels.head(10**6)
    assert len(kernels) == sum(kinds[kind] for kind in ("kernel", "gpu_memcpy", "gpu_memset"))
    assert Counter(row["activity"] for row in kernels)["kernel"] == kinds["kernel"]
    durations = [event["dur"] for event in all_events if event.get("cat") == "kernel"]
    assert sum(row["dur_ns"] for row in kernels if row["activity"] == "kernel") == pytest.approx(
        1000 * sum(map(float, durations)), abs=len(durations)
    )
    names = Counter(event["name"] for event in all_events if event.get("cat") == "cpu_op")
    assert Counter(row["name"] for row in found.ops.head(10**6)) == names
    assert len(found.python) == kinds["python_function"]


def test_kernels_are_linked_to_their_launches():
    rows = load("amd-native.json").kernels.head(10**6)
    linked = [row for row in rows if row["launch"] is not None]
    assert linked
    for row in linked:
        assert row["start_ns"] - row["ts_ns"] == rows[0]["start_ns"] - rows[0]["ts_ns"]
        assert row["correlation"] is not None and row["launch_ts_ns"] <= row["ts_ns"]


def test_every_table_can_be_read_by_arrow_libraries(evidence):
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    for name, table in evidence.tables.items():
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        assert arrow.num_rows == len(table) == table.num_rows, name
        assert arrow.column_names == table.column_names
        assert pyarrow.schema(table) == arrow.schema
        frame = polars.DataFrame(table)
        assert frame.height == len(table)
        first = table.head(3)
        assert arrow.slice(0, 3).to_pylist() == first
        assert [list(row) for row in frame.head(3).rows()] == [list(row.values()) for row in first]
        assert len(table.to_pandas()) == len(table)
        connection = duckdb.connect()
        connection.register("t", table)
        assert connection.execute("select count(*) from t").fetchone() == (len(table),)


def test_pandas_reads_tables_without_pyarrow():
    pandas = pytest.importorskip("pandas")
    for name, table in load("amd-native.json").tables.items():
        frame = pandas.DataFrame(table)
        assert len(frame) == len(table), name
        if len(table) > 0:
            assert list(frame.columns) == table.column_names, name
            first = frame.iloc[0].to_dict()
            assert {key: value for key, value in first.items() if not pandas.isna(value)} == {
                key: value for key, value in table.head(1)[0].items() if value is not None
            }


def test_rows_are_dictionaries():
    kernels = load("amd-native.json").kernels
    assert list(kernels) == kernels.head(len(kernels))
    assert list(iter(kernels.select(["name"])))[0].keys() == {"name"}


def test_columns_are_not_copied():
    pyarrow = pytest.importorskip("pyarrow")
    found = load("amd-native.json")
    address = {pyarrow.table(found.kernels)["dur_ns"].chunk(0).buffers()[1].address for _ in range(3)}
    assert len(address) == 1
    # All tables of a trace share one string buffer.
    strings = {
        pyarrow.table(table.select(["name"]))["name"].chunk(0).dictionary.buffers()[2].address
        for table in (found.kernels, found.ops, found.python)
    }
    assert len(strings) == 1


def test_tables_outlive_their_evidence():
    pyarrow = pytest.importorskip("pyarrow")
    kernels = load("nvidia-native.json").kernels
    arrow = pyarrow.table(kernels)
    before = arrow.to_pylist()
    del kernels
    assert arrow.to_pylist() == before


def test_columns_are_built_on_first_use():
    kernels = load("amd-native.json").kernels
    assert kernels.made == []
    kernels.select(["class", "dur_ns"]).head(1)
    assert set(kernels.made) == {"class", "dur_ns"}
    with pytest.raises(KeyError, match="no column duration"):
        kernels.select(["duration"])


def test_evidence_lists_its_tables():
    found = load("amd-native.json")
    assert "kernels" in list(found) and found["kernels"].name == "kernels"
    with pytest.raises(KeyError, match="kernels"):
        found["samples"]
    assert all(about for table in found.tables.values() for _, _, about in table.schema)


def test_report_matches_the_command_line(evidence, command):
    if evidence.kind == "verdict":
        stdout = command("why", "--from", evidence.path).stdout
    elif evidence.kind == "trace":
        stdout = command("report", "--no-index", evidence.path).stdout
    else:
        stdout = command("report", evidence.path).stdout
    assert evidence.report() == str(evidence) == stdout
    assert json.loads(evidence.report("json"))["schema"].startswith("laggard.")
    assert "<table" in evidence._repr_html_() or "<h2" in evidence._repr_html_()
    assert evidence.page().startswith("<!doctype html>")


def test_keyword_arguments_are_options_of_the_verb(command):
    found = load("decode.json")
    path = FIXTURES / "decode.json"
    assert found.report(by="kernel", top=2) == command("report", "--no-index", "--by", "kernel", "--top", "2", path).stdout
    assert found.to_dict(phase="decode") == json.loads(
        command("report", "--no-index", "--phase", "decode", "--json", path).stdout
    )
    with pytest.raises(laggard.UsageError, match="no-such-flag"):
        found.report(no_such_flag=True)
    with pytest.raises(laggard.Error, match="no device operations in phase") as raised:
        found.report(phase="optimizer")
    assert "phases of this trace" in raised.value.hint


def test_hostile_names_are_escaped_in_notebooks(tmp_path):
    hostile = "<script>alert('x')</script>\n\x1b[31m"
    event = {"ph": "X", "cat": "kernel", "name": hostile, "ts": 1, "dur": 2, "pid": 0, "tid": 0, "args": {}}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [event, dict(event, ts=9)]}))
    found = laggard.load(path)
    for html in (found._repr_html_(), found.kernels._repr_html_(), found.page()):
        assert "<script>alert" not in html
    assert found.kernels.head(1)[0]["name"] == hostile


def test_second_load_uses_the_index(tmp_path, monkeypatch):
    monkeypatch.setenv("LAGGARD_INDEX_AFTER", "0")
    path = tmp_path / "trace.json"
    shutil.copy(FIXTURES / "amd-native.json", path)
    first = laggard.load(path)
    assert (tmp_path / "trace.json.lagi").exists()
    second = laggard.load(path)
    assert second.report() == first.report()
    for name in first:
        assert first[name].head(10**6) == second[name].head(10**6), name
    shutil.copy(FIXTURES / "nvidia-native.json", tmp_path / "other.json")
    laggard.load(tmp_path / "other.json", index=False)
    assert not (tmp_path / "other.json.lagi").exists()


def test_truncated_trace_is_loaded_with_losses(tmp_path):
    text = (FIXTURES / "amd-native.json").read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes(text[: len(text) // 2])
    found = laggard.load(path, index=False)
    whole = load("amd-native.json")
    assert 0 < sum(map(len, found.tables.values())) < sum(map(len, whole.tables.values()))
    assert any("file is truncated" in loss for loss in found.losses)


def test_rules_classify_kernels(tmp_path):
    name = load("amd-native.json").kernels.head(1)[0]["name"]
    rules = tmp_path / "rules.toml"
    rules.write_text(f"[[rule]]\nclass = 'Mine'\ngroup = 'Mine'\nall = [{name[:20]!r}]\n")
    try:
        found = laggard.load(FIXTURES / "amd-native.json", index=False, rules=rules)
    except laggard.Error as error:
        pytest.fail(str(error))
    assert found.kernels.head(1)[0]["class"] == "Mine"


@pytest.mark.parametrize("name", sorted(path.name for path in (FIXTURES / "not-traces").glob("*.json")))
def test_unknown_files_raise_a_typed_error(name):
    try:
        laggard.load(FIXTURES / "not-traces" / name, index=False)
    except laggard.FormatError as error:
        assert str(error) and isinstance(error, ValueError)
    except laggard.Error as error:
        assert str(error)


def test_errors_have_the_expected_types(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        laggard.load(tmp_path / "gone.json")
    assert raised.value.filename == str(tmp_path / "gone.json")
    with pytest.raises(laggard.Error, match="is a directory"):
        laggard.load(tmp_path)
    (tmp_path / "text.json").write_text("Dear diary")
    with pytest.raises(laggard.FormatError) as raised:
        laggard.load(tmp_path / "text.json")
    assert "laggard reads" in raised.value.hint
    with pytest.raises(ValueError, match="text, json, csv, markdown or html"):
        load("decode.json").report("pdf")
    with pytest.raises(laggard.Error, match="executable or library"):
        laggard.load(sys.executable)


@pytest.mark.parametrize("path", sorted((FIXTURES / "traps").iterdir()), ids=lambda path: path.name)
def test_malformed_files_are_loaded_or_raise_an_error(path):
    try:
        found = laggard.load(path, index=False)
    except (laggard.Error, OSError):
        return
    for table in found.tables.values():
        table.head(5)
        table._repr_html_()
    found.report()


@pytest.fixture
def large(tmp_path):
    """A trace that takes some time to load."""
    path = tmp_path / "large.json"
    event = '{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":%d.5,"dur":1.25,"args":{"stream":7,"device":0}}'
    with open(path, "w") as file:
        file.write('{"traceEvents": [\n')
        file.write(",\n".join(event % (number % 100, number) for number in range(600_000)))
        file.write("\n]}")
    return path


def test_other_threads_run_during_a_load(large):
    ticks, loading = [], threading.Event()

    def tick():
        loading.wait()
        while loading.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    loading.set()
    began = time.monotonic()
    found = laggard.load(large, index=False, threads=1)
    ended = time.monotonic()
    loading.clear()
    thread.join()
    assert len(found.kernels) == 600_000
    assert sum(began < tick < ended for tick in ticks) >= 3


def test_ctrl_c_interrupts_a_load(large):
    code = f"""
        import laggard, os, signal, threading
        timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            for _ in range(1000):
                laggard.load({str(large)!r}, index=False, threads=1)
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\n", done.stderr
