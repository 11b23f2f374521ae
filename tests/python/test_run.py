"""Recordings, complete or not, can be read with pyarrow and agree with the report."""

import csv
import gzip
import io
import json
from collections import defaultdict

import pyarrow
import pyarrow.ipc
import pytest
from conftest import FIXTURES

RUNS = FIXTURES / "runs"
NONE = 2**32 - 1


def parts(path):
    """The manifest, and the tables of every part of a run file, by the name in their schema."""
    found = []
    with pyarrow.memory_map(str(path)) as file:
        while file.tell() < file.size():
            reader = pyarrow.ipc.open_stream(file)
            name = reader.schema.metadata[b"laggard.stream"].decode()
            table = reader.read_all()
            if name == "manifest":
                manifest = json.loads(table["json"][0].as_py())
            elif name == "part":
                found.append({"header": json.loads(table["json"][0].as_py())})
            else:
                found[-1][name] = table
    return manifest, found


def rows(found, name):
    """The rows of a table in all parts, as dictionaries."""
    tables = [part[name] for part in found if name in part]
    return pyarrow.concat_tables(tables).to_pylist() if tables else []


@pytest.mark.parametrize("name, count", [("matrix-product.lag", 1), ("killed.lag", 4)])
def test_run_file_is_a_sequence_of_valid_arrow_streams(name, count):
    manifest, found = parts(RUNS / name)
    assert (manifest["schema"], manifest["kind"]) == ("laggard.run/1", "profile")
    assert [part["header"]["laggard.part"] for part in found] == list(range(count))
    assert [part["header"]["whole"] for part in found] == [count == 1] * count
    samples, stacks, frames = (rows(found, table) for table in ("samples", "stacks", "frames"))
    assert len(samples) == 83
    assert all(sample["stack"] == NONE or sample["stack"] < len(stacks) for sample in samples)
    for number, node in enumerate(stacks):
        assert node["frame"] < len(frames)
        assert node["parent"] == NONE or node["parent"] < number


def test_report_self_samples_match_the_file(laggard):
    _, found = parts(RUNS / "matrix-product.lag")
    texts = [row["text"] for row in rows(found, "texts")]
    frames, stacks = rows(found, "frames"), rows(found, "stacks")
    own = defaultdict(int)
    for sample in rows(found, "samples"):
        if sample["stack"] != NONE:
            own[texts[frames[stacks[sample["stack"]]["frame"]]["function"]]] += 1
    report = json.loads(laggard("report", "--json", "--all", RUNS / "matrix-product.lag").stdout)
    assert report["schema"] == "laggard.profile/1"
    shown = {row["name"]: row["self_samples"] for row in report["tables"]["function"]["rows"]}
    assert all(shown[name] == count for name, count in own.items())
    assert sum(shown.values()) == report["whole"]["samples"] == 83


def test_unfinished_recording_has_the_same_tables_and_a_warning(laggard):
    whole = json.loads(laggard("report", "--json", RUNS / "matrix-product.lag").stdout)
    killed = json.loads(laggard("report", "--json", RUNS / "killed.lag").stdout)
    assert killed["tables"] == whole["tables"]
    assert whole["losses"] == [] and "not finished" in killed["losses"][0]


def test_converted_files_have_the_same_samples(laggard, tmp_path):
    run = RUNS / "matrix-product.lag"
    for name in ["out.folded", "out.csv", "out.speedscope.json", "out.profile.json.gz", "again.lag"]:
        laggard("convert", run, tmp_path / name)
    folded = {}
    for line in (tmp_path / "out.folded").read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        folded[stack] = int(count)
    by_sample = defaultdict(int)
    for row in csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())):
        by_sample[row["stack"] or "[no stack]"] += 1
    assert folded == by_sample
    speedscope = json.loads((tmp_path / "out.speedscope.json").read_text())
    assert sum(len(profile["samples"]) for profile in speedscope["profiles"]) == 83
    firefox = json.loads(gzip.decompress((tmp_path / "out.profile.json.gz").read_bytes()))
    assert sum(thread["samples"]["length"] for thread in firefox["threads"]) == 83
    report = json.loads(laggard("report", "--json", tmp_path / "again.lag").stdout)
    assert report["tables"] == json.loads(laggard("report", "--json", run).stdout)["tables"]
