"""The index of a trace can be read with pyarrow and has every event."""

import json
import shutil
from collections import Counter

import pyarrow
import pyarrow.ipc
import pytest
from conftest import FIXTURES, text_of

TRACES = ["amd-native.json", "nvidia-compact.json", "decode.json", "one-member.json.gz", "ranks/rank1.json"]

GPU = ("kernel", "gpu_memcpy", "gpu_memset")
TABLES = {
    "runtime": lambda event: event.get("cat") == "cuda_runtime",
    "ops": lambda event: event.get("cat") == "cpu_op",
    "python": lambda event: event.get("cat") == "python_function",
    "annotations": lambda event: event.get("cat") in ("user_annotation", "gpu_user_annotation"),
    "flows": lambda event: event.get("ph") in ("s", "f"),
    "instants": lambda event: event.get("ph") == "i",
}


def streams(path):
    """The Arrow streams of a file, in order, by the name in their schema."""
    found = {}
    with pyarrow.memory_map(str(path)) as file:
        while file.tell() < file.size():
            reader = pyarrow.ipc.open_stream(file)
            name = reader.schema.metadata[b"laggard.stream"].decode()
            assert name not in found, f"duplicate stream {name}"
            found[name] = reader.read_all()
    return found


@pytest.fixture(params=TRACES)
def indexed(request, tmp_path, laggard):
    """An indexed trace: its path, the streams of the index, and the report."""
    trace = tmp_path / request.param.replace("/", "-")
    shutil.copy(FIXTURES / request.param, trace)
    report = json.loads(laggard("report", "--json", trace).stdout)
    (index,) = tmp_path.glob("*.lagi")
    return trace, streams(index), report


def test_index_has_a_row_for_every_event(indexed):
    trace, found, report = indexed
    events = json.loads(text_of(trace))["traceEvents"]
    kinds = Counter(event.get("cat") for event in events)
    assert found["gpu"].num_rows == sum(kinds[kind] for kind in GPU)
    assert report["totals"]["kernels"]["count"] == kinds["kernel"]
    for name, belongs in TABLES.items():
        assert found[name].num_rows == sum(map(belongs, events)), name


def test_report_from_the_index_equals_the_first_report(indexed, laggard):
    trace, _, report = indexed
    assert json.loads(laggard("report", "--json", trace).stdout) == report


def test_damaged_index_is_rebuilt(indexed, laggard):
    trace, _, report = indexed
    (index,) = trace.parent.glob("*.lagi")
    content = bytearray(index.read_bytes())
    content[len(content) // 2] ^= 0xFF
    index.write_bytes(content)
    assert json.loads(laggard("report", "--json", trace).stdout)["totals"] == report["totals"]
