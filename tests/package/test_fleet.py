"""`laggard fleet` on one machine: detection of stragglers and slow hosts, ingest, totals, escaping of names, and the
command line."""

import gzip
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import FIXTURES, REAL_TRACES, ROOT

from laggard import fleet
from laggard.fleet import judge, sources, store
from laggard.fleet.show import visible

pytest.importorskip("duckdb")

DLRM = REAL_TRACES / "dlrm_8_ranks"
has_real_traces = pytest.mark.skipif(not DLRM.is_dir(), reason="no real traces available")

KERNELS = [
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
    "void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)",
    "void at::native::elementwise_kernel<128, 4>(int, at::native::gpu_kernel_impl)",
    "fmha_cutlassF_bf16_aligned_64x128_rf_sm80",
]
BASE_US = 1_000_000_000


def rank_events(kernels_us, starts, ends, rank, ranks, offset_us, names):
    """The events of one rank: each step has kernels, then a collective that ends at the same time on all ranks."""
    events, correlation = [], 0

    def launched(name, ts, dur, stream, extra=None):
        nonlocal correlation
        correlation += 1
        ids = {"correlation": correlation, "External id": correlation}
        host = {"ph": "X", "pid": 100, "tid": 100}
        events.append({**host, "cat": "cpu_op", "name": "aten::work", "ts": ts - 20, "dur": 8, "args": ids})
        events.append(
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts - 18, "dur": 3, "args": ids}
        )
        args = {**ids, "device": rank % 8, "stream": stream, **(extra or {})}
        events.append(
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur, "args": args}
        )

    for step, (kernels, start, end) in enumerate(zip(kernels_us, starts, ends)):
        at = round(start + offset_us, 3)
        mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100, "tid": 100}
        before = ends[step - 1] if step else start
        events.append({**mark, "ts": round(before + offset_us - 30, 3), "dur": round(end - before - 5, 3)})
        for name, dur in zip(names, kernels):
            launched(name, at, dur, 7)
            at = round(at + dur, 3)
        group = {
            "Collective name": "allreduce" if step % 2 else "_allgather_base",
            "In msg nelems": 1 << 20,
            "Out msg nelems": 1 << 20,
            "Group size": ranks,
            "dtype": "BFloat16",
            "Process Group Name": "0",
            "Process Group Ranks": str(list(range(ranks))),
        }
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        launched(name, at, round(end + offset_us - at, 3), 20, group)
    return events


def make_job(
    place,
    ranks=8,
    steps=60,
    seed=1,
    late_us=None,
    slow=None,
    gpus=None,
    offsets_us=None,
    names=KERNELS,
    named="rank{rank}.json",
    bursts=False,
):
    """Writes synthetic traces of a job in which ranks wait for each other. By rank, `late_us` is the delay before
    its work, `slow` the factor of its kernel times, and `gpus` its GPU model. With `bursts`, one random rank is late
    for a few steps, then another."""
    rng = random.Random(seed)
    place.mkdir(parents=True, exist_ok=True)
    kernels = {rank: [] for rank in range(ranks)}
    starts = {rank: [] for rank in range(ranks)}
    ends = []
    now, unlucky = float(BASE_US), 0
    for step in range(steps):
        if step % 5 == 0:
            unlucky = rng.randrange(ranks)
        arrivals = []
        for rank in range(ranks):
            factor = (slow or {}).get(rank, 1.0)
            durations = [round(factor * us * rng.gauss(1, 0.01), 3) for us in (400, 60, 30, 250)]
            late = (late_us or {}).get(rank, 0) + rng.uniform(0, 40) + (300 if bursts and rank == unlucky else 0)
            starts[rank].append(now + 50 + late)
            kernels[rank].append(durations)
            arrivals.append(starts[rank][-1] + sum(durations))
        now = max(arrivals) + 80
        ends.append(now)
    for rank in range(ranks):
        offset = (offsets_us or {}).get(rank, 0)
        model = (gpus or {}).get(rank, "NVIDIA A100-SXM4-80GB")
        trace = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": device, "name": model, "numSms": 108} for device in range(4)],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
            "traceEvents": rank_events(kernels[rank], starts[rank], ends, rank, ranks, offset, names),
        }
        (place / named.format(rank=rank)).write_text(json.dumps(trace))
    return place


def run_fleet(*words, code=0, **env):
    """Runs `laggard fleet …` as a command."""
    done = subprocess.run(
        [sys.executable, "-m", "laggard", "fleet", *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        env={**os.environ, **env},
    )
    assert done.returncode == code, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def report_on(tmp_path, traces, **flags):
    """Ingests a directory of traces and returns the report."""
    fleet.ingest(traces, to=tmp_path / "fleet", **flags)
    return fleet.report(tmp_path / "fleet").data


def files_of(to):
    return {path: path.stat().st_mtime_ns for path in to.rglob("*") if path.is_file()}


# Detection


def test_only_the_planted_straggler_is_reported(tmp_path):
    data = report_on(tmp_path, make_job(tmp_path / "job", late_us={5: 120}))
    assert data["stragglers"]["stand_out"] == [5]
    found = data["stragglers"]["rows"][0]
    assert found["rank"] == 5 and found["share"] > 0.9 and found["matched"] == 60
    assert found["held_ns"] == pytest.approx(60 * 100e3, rel=0.3)
    # It starts late, but its kernels are as fast as those of other ranks.
    assert data["paces"]["stand_out"] == data["hosts"]["stand_out"] == data["gpus"]["stand_out"] == []


def test_two_stragglers_are_both_reported(tmp_path):
    data = report_on(tmp_path, make_job(tmp_path / "job", ranks=16, late_us={3: 100, 12: 110}))
    assert sorted(data["stragglers"]["stand_out"]) == [3, 12]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bursts", [False, True])
def test_equal_ranks_have_no_outliers(tmp_path, seed, bursts):
    data = report_on(tmp_path, make_job(tmp_path / "job", ranks=12, steps=100, seed=seed, bursts=bursts))
    for table in ("stragglers", "paces", "hosts", "gpus"):
        assert data[table]["stand_out"] == [], table
    assert "no straggler" in fleet.report(tmp_path / "fleet").text()


def test_slow_host_is_reported(tmp_path):
    # 16 ranks on hosts with four GPUs each. The second host is 8 % slower.
    data = report_on(tmp_path, make_job(tmp_path / "job", ranks=16, slow={rank: 1.08 for rank in range(4, 8)}))
    assert data["hosts"]["stand_out"] == ["node1"]
    assert data["hosts"]["rows"][0]["ratio"] == pytest.approx(1.08, abs=0.01)
    assert data["gpus"]["stand_out"] == []


def test_slow_gpu_model_is_reported(tmp_path):
    models = {rank: "NVIDIA A100-PCIE-40GB" for rank in (1, 6, 8, 11)}
    data = report_on(tmp_path, make_job(tmp_path / "job", ranks=12, gpus=models, slow={rank: 1.1 for rank in models}))
    assert data["gpus"]["stand_out"] == ["NVIDIA A100-PCIE-40GB"]
    assert data["hosts"]["stand_out"] == []


def test_single_slow_gpu_is_reported(tmp_path):
    data = report_on(tmp_path, make_job(tmp_path / "job", ranks=12, slow={7: 1.06}))
    assert data["paces"]["stand_out"] == [7] and data["stragglers"]["stand_out"] == [7]
    assert data["hosts"]["stand_out"] == []


def test_hosts_are_read_from_pytorch_file_names(tmp_path):
    named = "gpu-box-7_{rank}41.1700000000{rank}.pt.trace.json"
    data = report_on(tmp_path, make_job(tmp_path / "job", ranks=3, steps=5, named=named))
    assert [row["host"] for row in data["ranks"]] == ["gpu-box-7"] * 3


def test_unsynchronized_clocks_do_not_change_the_result(tmp_path):
    flags = {"ranks": 6, "late_us": {2: 90}}
    plain = report_on(tmp_path / "a", make_job(tmp_path / "a" / "job", **flags))
    offsets = {rank: (rank - 3) * 1_000_000 for rank in range(6)}
    shifted = report_on(tmp_path / "b", make_job(tmp_path / "b" / "job", **flags, offsets_us=offsets))
    assert plain["stragglers"]["stand_out"] == [2]
    for one, other in zip(plain["stragglers"]["rows"], shifted["stragglers"]["rows"]):
        for name in ("rank", "last_in", "stands_out"):
            assert one[name] == other[name]
        assert one["waited_ns"] == pytest.approx(other["waited_ns"], rel=1e-2, abs=5e4)
    assert shifted["collectives"][0]["skew_median_ns"] > 1e9 > plain["collectives"][0]["skew_median_ns"]


# Totals


@has_real_traces
def test_totals_match_the_json_files(tmp_path):
    data = report_on(tmp_path, DLRM)
    count, total, by_rank, parts = 0, 0, {}, 0
    for rank in range(8):
        events = json.loads(gzip.decompress((DLRM / f"rank{rank}.json.gz").read_bytes()))["traceEvents"]
        work = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        count += len(work)
        total += sum(round(event["dur"] * 1000) for event in work)
        by_rank[rank] = sum(event["cat"] == "kernel" for event in work)
        parts += sum("nccl" in event["name"] for event in work)
    assert sum(row["n"] for row in data["classes"]) == count
    assert sum(row["sum_ns"] for row in data["classes"]) == total
    assert {row["rank"]: row["kernels"] for row in data["ranks"]} == by_rank
    assert sum(row["matched"] for row in data["ranks"]) == parts


@pytest.mark.parametrize("which", ["fixtures", "real"])
def test_numbers_match_laggard_report(tmp_path, which):
    traces = FIXTURES / "ranks" if which == "fixtures" else DLRM
    if not traces.is_dir():
        pytest.skip("no real traces available")
    data = report_on(tmp_path, traces)
    words = [sys.executable, "-m", "laggard", "report", "--no-index", "--json", str(traces)]
    other = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    same = ["rank", "kernels", "span_ns", "busy_ns", "compute_ns", "exposed_communication_ns", "idle_ns"]
    same += ["host_bound_ns", "last_in", "matched"]
    assert [[row[name] for name in same] for row in data["ranks"]] == [
        [row[name] for name in same] for row in other["ranks"]
    ]
    of_operation = {row["operation"]: row for row in other["collectives"]}
    for row in data["collectives"]:
        theirs = of_operation[row["operation"]]
        assert (row["n"], row["last_rank"], row["last_in"]) == (
            theirs["count"],
            theirs["last_rank"],
            theirs["last_in"],
        )
        if row["n"] % 2:  # for an even count, `report` uses the upper middle value as the median
            assert row["wait_median_ns"] == theirs["wait_ns"]["median"]
            assert row["skew_median_ns"] == theirs["start_skew_ns"]["median"]


def test_additional_tables_are_kept_on_request(tmp_path):
    traces = make_job(tmp_path / "job", ranks=2, steps=3)
    to = tmp_path / "fleet"
    fleet.ingest(traces, to=to)
    assert not (to / "ops").exists()
    done = fleet.ingest(traces, to=to, tables=["ops", "launches"])
    assert len(done.of("new")) == 2
    import duckdb

    count = duckdb.sql(f"select rank, count(*) from read_parquet('{to}/ops/**/*.parquet') group by rank order by rank")
    assert count.fetchall() == [(0, 15), (1, 15)]
    assert len(fleet.ingest(traces, to=to, tables=["ops"]).of("there")) == 2


# Ingest


def test_each_file_is_ingested_once(tmp_path):
    traces, to = make_job(tmp_path / "job", ranks=3, steps=4), tmp_path / "fleet"
    assert len(fleet.ingest(traces, to=to).of("new")) == 3
    before = files_of(to)
    assert all(not path.name.startswith(".") for path in before)
    assert len(fleet.ingest(traces, to=to).of("there")) == 3
    assert files_of(to) == before
    assert len(fleet.ingest(traces, to=to, force=True).of("new")) == 3
    # Moved files are recognized.
    moved = traces.rename(tmp_path / "elsewhere")
    assert len(fleet.ingest(moved, to=to, job="job").of("there")) == 3


def test_changed_trace_is_ingested_again(tmp_path):
    traces, to = make_job(tmp_path / "job", ranks=3, steps=4), tmp_path / "fleet"
    fleet.ingest(traces, to=to)
    make_job(tmp_path / "other", ranks=3, steps=9)
    (tmp_path / "other" / "rank1.json").rename(traces / "rank1.json")
    done = fleet.ingest(traces, to=to)
    assert [(one.rank, one.state) for one in done.outcomes] == [(0, "there"), (1, "new"), (2, "there")]
    assert [row["steps"] for row in fleet.report(to).data["ranks"]] == [4, 9, 4]


def test_killed_ingest_can_be_resumed(tmp_path):
    traces, to = make_job(tmp_path / "job", ranks=24, steps=150), tmp_path / "fleet"
    words = [sys.executable, "-m", "laggard", "fleet", "ingest", str(traces), "--to", str(to), "--jobs", "2"]
    process = subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not list(to.glob("ranks/*/*/part.json")) and process.poll() is None:
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    complete = len(store.ranks(to, "job"))
    assert 0 < complete < 24
    # Ingested ranks are complete; others are missing.
    data = fleet.report(to).data
    assert len(data["ranks"]) == complete and {row["steps"] for row in data["ranks"]} == {150}
    assert data["totals"]["missing"]
    done = fleet.ingest(traces, to=to)
    assert len(done.of("there")) == complete and len(done.of("new")) == 24 - complete
    data = fleet.report(to).data
    assert [row["rank"] for row in data["ranks"]] == list(range(24))
    assert {row["kernels"] for row in data["ranks"]} == {150 * 5}


def test_second_file_of_a_rank_is_skipped(tmp_path):
    traces, to = make_job(tmp_path / "job", ranks=2, steps=100), tmp_path / "fleet"
    (traces / "rank1-copy.json").write_bytes((traces / "rank1.json").read_bytes())
    # In this trace the rank follows the events, so it is known only after the whole trace was read.
    late = json.loads((traces / "rank0.json").read_text())
    late["distributedInfo"] = late.pop("distributedInfo")
    (traces / "zz.json").write_text(json.dumps(late))
    assert sources.peek(traces / "zz.json") is None
    first = fleet.ingest(traces, to=to)
    assert first.ranks == 2
    skipped = {Path(one.path).name for one in first.of("duplicate")}
    assert "rank1.json" in skipped and len(skipped & {"rank0.json", "zz.json"}) == 1
    again = fleet.ingest(traces, to=to)
    assert again.ranks == 2 and len(again.of("there")) == 2
    assert {Path(one.path).name for one in again.of("duplicate")} == skipped
    assert fleet.report(to).data["totals"]["ranks"] == 2
    assert not [path for path in to.rglob(".*")]


def test_bad_traces_are_skipped_with_a_warning(tmp_path):
    traces = make_job(tmp_path / "job", ranks=3, steps=4)
    (traces / "rank7.json").write_text("this is no trace")
    (traces / "rank8.json.gz").write_bytes(b"\x1f\x8b\x08\x00")
    (traces / "rank9.json").write_text('{"schemaVersion": 1, "traceEvents": [')
    unnamed = json.loads((traces / "rank0.json").read_text())
    del unnamed["distributedInfo"]
    (traces / "trace.json").write_text(json.dumps(unnamed))
    done = run_fleet("ingest", traces, "--to", tmp_path / "fleet")
    for name in ("rank7.json", "rank8.json.gz", "rank9.json", "trace.json"):
        assert f"{name} is skipped" in done.stderr
    assert "neither the trace nor the file name has a rank" in done.stderr
    assert "3 ranks, 3 of them new" in done.stdout and "4 files skipped" in done.stdout
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "rank0.json").write_text("{}")
    done = run_fleet("ingest", tmp_path / "bad", "--to", tmp_path / "fleet", code=2)
    assert "error: no rank traces in 1 file" in done.stderr


def test_truncated_trace_is_ingested_with_a_warning(tmp_path):
    traces = make_job(tmp_path / "job", ranks=3, steps=40)
    whole = (traces / "rank1.json").read_text()
    (traces / "rank1.json").write_text(whole[: len(whole) // 2])
    data = report_on(tmp_path, traces)
    assert 0 < data["ranks"][1]["kernels"] < data["ranks"][0]["kernels"]
    assert any("1 of 3 traces" in warning for warning in data["warnings"])


# Hostile names


HOSTILE = [
    "it's; drop table ranks; --",
    '"quoted" <script>alert(1)</script>',
    "line\nbreak\ttab %41 100%",
    "a/b=c:d*?[x]{y}\\z",
    "2024-01-01",
    "Größe 测试",
    "..",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_job_names_may_contain_any_characters(tmp_path, name):
    traces = make_job(tmp_path / "job", ranks=2, steps=4)
    to = tmp_path / "a 'place' [with] marks"
    fleet.ingest(traces, to=to, job=name)
    fleet.ingest(traces, to=to, job="other")
    assert sorted(store.jobs(to)) == sorted([name, "other"])
    data = fleet.report(to, name).data
    assert data["job"] == name and data["totals"]["ranks"] == 2
    assert fleet.compare(to, a=name, b="other").data["ratio"]["median"] == 1.0
    assert {path.name for path in to.iterdir()} == {"kernels", "collectives", "steps", "gaps", "devices", "ranks"}
    assert not [path for path in tmp_path.iterdir() if path.name not in ("job", to.name)]


def test_kernel_names_are_escaped_in_all_formats(tmp_path):
    names = ["a\x1b[31mred", "<script>alert(1)</script>|`x`", "'; drop table kernels; --", "x\ny\u202eright to left"]
    traces = make_job(tmp_path / "job", ranks=3, steps=5, names=names)
    for trace in traces.iterdir():
        trace.write_text(trace.read_text().replace('"allreduce"', '"<b>all|reduce\\u001b[2J"'))
    fleet.ingest(traces, to=tmp_path / "fleet")
    found = fleet.report(tmp_path / "fleet")
    text, markdown = found.text(None), found.markdown(None)
    assert not any(ord(char) < 32 and char != "\n" for char in text + markdown)
    assert "\u202e" not in text + markdown
    assert "<script>" not in markdown and "<b>" not in markdown
    assert "\\x1b[31mred" in text
    assert "<script>" not in found._repr_html_()
    assert json.loads(found.json())["gaps"]["longest"]


def test_visible_escapes_and_shortens_names():
    assert visible("plain name") == "plain name"
    assert visible("a\x00\x1b\n\u200bb\\") == "a\\x00\\x1b\\n\\u{200b}b\\\\"
    assert visible("a" * 25 + "z" * 25, 11) == "aaaaa…zzzzz"


# Comparisons


def test_slower_job_is_reported_with_its_straggler_and_classes(tmp_path):
    to = tmp_path / "fleet"
    fleet.ingest(make_job(tmp_path / "before", ranks=8, seed=1), to=to)
    after = make_job(tmp_path / "after", ranks=9, seed=2, slow={rank: 1.2 for rank in range(9)}, late_us={3: 200})
    fleet.ingest(after, to=to)
    data = fleet.compare(to, a="before", b="after").data
    assert data["verdict"] == "slower" and data["measure"] == "step"
    assert 1.2 < data["ratio"]["low"] <= data["ratio"]["median"] <= data["ratio"]["high"] < 1.6
    assert data["ratio"]["n"] == 8 and data["ratio"]["level"] > 0.95
    assert data["stragglers"] == {"a": [], "b": [3], "new": [3], "gone": []}
    assert data["only_a"] == [] and data["only_b"] == [8]
    gaps = {row["class"]: row["gap"]["median"] for row in data["classes"]}
    assert gaps["Dense GEMM"] == pytest.approx(80_000, rel=0.1)
    back = fleet.compare(to, a="after", b="before").data
    assert back["verdict"] == "faster" and back["stragglers"]["gone"] == [3]


def test_equal_jobs_have_the_verdict_alike(tmp_path):
    to = tmp_path / "fleet"
    for seed in (1, 2):
        fleet.ingest(make_job(tmp_path / f"job{seed}", seed=seed, steps=100), to=to)
    found = fleet.compare(to, a="job1", b="job2")
    assert found.data["verdict"] == "alike"
    assert "B is as fast as A" in found.text()


def test_jobs_in_two_directories_are_compared(tmp_path):
    for name in ("a", "b"):
        fleet.ingest(make_job(tmp_path / name / "job", ranks=2, steps=4), to=tmp_path / name / "fleet")
    done = run_fleet("compare", tmp_path / "a" / "fleet", tmp_path / "b" / "fleet", "--json")
    data = json.loads(done.stdout)
    assert data["a"]["job"] == data["b"]["job"] == "job"
    assert any("2 ranks" in warning for warning in data["warnings"])


# The command line


def test_json_matches_the_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "schemas" / "fleet-1.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    to = tmp_path / "fleet"
    fleet.ingest(make_job(tmp_path / "job", ranks=3, steps=4, late_us={1: 90}), FIXTURES / "ranks", to=to)
    no_device = tmp_path / "nothing"
    no_device.mkdir()
    event = {"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 2}
    (no_device / "rank0.json").write_text(json.dumps({"traceEvents": [event]}))
    fleet.ingest(no_device, to=to)
    for job in ("job", "ranks", "nothing"):
        jsonschema.validate(json.loads(run_fleet("report", to, "--job", job, "--json").stdout), schema)
    for a, b in (("job", "ranks"), ("job", "nothing")):
        jsonschema.validate(json.loads(run_fleet("compare", to, "--a", a, "--b", b, "--json").stdout), schema)


def test_formats_and_output_files(tmp_path):
    to = tmp_path / "fleet"
    run_fleet("ingest", make_job(tmp_path / "job", ranks=12, steps=4), "--to", to)
    text = run_fleet("report", to).stdout
    assert text.startswith("Fleet\n") and "2 more of 12 rows: --all" in text
    assert "more of 12 rows" not in run_fleet("report", to, "--all").stdout
    assert run_fleet("report", to, "--format", "md").stdout.startswith("## Fleet\n")
    for name, start in (("out.md", "## Fleet"), ("out.txt", "Fleet"), ("out.json", "{")):
        for _ in range(2):  # an earlier report may be overwritten
            assert run_fleet("report", to, "-o", tmp_path / name).stdout == ""
        assert (tmp_path / name).read_text().startswith(start)
    (tmp_path / "mine.txt").write_text("do not lose this")
    assert "--force" in run_fleet("report", to, "-o", tmp_path / "mine.txt", code=2).stderr
    assert (tmp_path / "mine.txt").read_text() == "do not lose this"
    run_fleet("report", to, "-o", tmp_path / "mine.txt", "--force")
    assert "--format" in run_fleet("report", to, "-o", tmp_path / "out.xyz", code=2).stderr


def test_errors_have_hints(tmp_path):
    to = tmp_path / "fleet"
    assert "no ranks in" in run_fleet("report", to, code=2).stderr
    assert "No such file" in run_fleet("ingest", tmp_path / "none", "--to", to, code=2).stderr
    (tmp_path / "empty").mkdir()
    assert "no trace (" in run_fleet("ingest", tmp_path / "empty", "--to", to, code=2).stderr
    assert "not supported" in run_fleet("ingest", "s3://bucket/traces", "--to", to, code=2).stderr
    assert "not supported" in run_fleet("report", "s3://bucket/fleet", code=2).stderr
    assert "--engine spark" in run_fleet("report", to, "--master", "spark://x:1", code=2).stderr
    assert "--master" in run_fleet("--engine", "spark", "report", to, code=2).stderr
    one, other = (make_job(tmp_path / name, ranks=2, steps=3) for name in ("one", "other"))
    run_fleet("ingest", one, other, "--to", to)
    assert "select one with --job" in run_fleet("report", to, code=2).stderr
    assert "no job 'x'" in run_fleet("report", to, "--job", "x", code=2).stderr
    assert "select one with --a" in run_fleet("compare", to, "--b", "one", code=2).stderr
    assert "unknown table 'x'" in run_fleet("ingest", one, "--to", to, "--tables", "x", code=2).stderr


def test_missing_engine_prints_the_install_command(tmp_path):
    traces = make_job(tmp_path / "job", ranks=2, steps=3)
    hidden = tmp_path / "hidden"
    for name in ("duckdb", "pyspark"):
        (hidden / name).mkdir(parents=True)
        (hidden / name / "__init__.py").write_text("raise ImportError('hidden')")
    path = os.pathsep.join(filter(None, [str(hidden), os.environ.get("PYTHONPATH")]))
    # Ingest runs on the workers of a cluster, so it must not need an engine.
    assert "2 of them new" in run_fleet("ingest", traces, "--to", tmp_path / "fleet", PYTHONPATH=path).stdout
    done = run_fleet("report", tmp_path / "fleet", code=2, PYTHONPATH=path)
    assert "pip install 'laggard[sql]'" in done.stderr
    words = ("--engine", "spark", "--master", "local[1]", "report", tmp_path / "fleet")
    assert "pip install 'laggard[spark]'" in run_fleet(*words, code=2, PYTHONPATH=path).stderr


def test_damaged_table_is_an_error_with_a_hint(tmp_path):
    to = tmp_path / "fleet"
    fleet.ingest(make_job(tmp_path / "job", ranks=2, steps=3), to=to)
    damaged = store.part(to, "kernels", "job", 1)
    damaged.write_bytes(damaged.read_bytes()[:100])
    done = run_fleet("report", to, code=2)
    assert "error: cannot read" in done.stderr and "--force" in done.stderr and "Traceback" not in done.stderr


# Helper functions


@pytest.mark.parametrize(
    "name, rank",
    [
        ("rank3.json", 3),
        ("trace_rank_12.json.gz", 12),
        ("Rank-007.json", 7),
        ("worker_5.json", 5),
        ("4.json", 4),
        ("host_4711.1700000000123.pt.trace.json", None),
        ("host-rank2_4711.1700000000123.pt.trace.json.gz", 2),
        ("trace.json", None),
    ],
)
def test_rank_is_read_from_the_file_name(name, rank):
    assert sources.rank_of(name) == rank


def test_quoted_job_names_can_be_unquoted():
    for name in HOSTILE:
        assert store.unquoted(store.quoted(name)) == name
        assert "/" not in store.quoted(name)


def test_statistics_match_textbook_values():
    assert judge.chance_of_at_least(5, 8, 0.125) == pytest.approx(
        sum(math.comb(8, k) * 0.125**k * 0.875 ** (8 - k) for k in range(5, 9))
    )
    assert judge.chance_of_at_least(0, 8, 0.1) == 1.0
    assert judge.chance_of_at_least(8, 8, 0.5) == pytest.approx(2**-8)
    assert judge.scores([1.0, 1.0, 1.0, 1.0, 9.0])[-1] > 3.5
    assert judge.scores([2.0, 2.0]) == [0.0, 0.0]
    # For ten values, the interval of the sign test is from the second to the ninth value, at a level of 97.9 %.
    found = judge.interval([float(n) for n in range(1, 11)])
    assert (found["median"], found["low"], found["high"], found["n"]) == (5.5, 2.0, 9.0, 10)
    assert found["level"] == pytest.approx(0.9785, abs=1e-4)
    assert judge.interval([1.0, 2.0, 3.0])["level"] == pytest.approx(0.75)
    assert judge.interval([])["median"] is None
    wide = judge.interval([float(n) for n in range(4096)])
    assert wide["low"] == pytest.approx(2048 - 63, abs=3)


def test_reports_of_raw_traces_name_the_command_to_use(command, tmp_path):
    (tmp_path / "rank0.json").write_text('{"traceEvents": []}')
    stderr = command("fleet", "report", str(tmp_path), code=2).stderr
    assert "contains traces, not a fleet" in stderr and "laggard report" in stderr, stderr
    assert "laggard fleet ingest" in stderr, stderr
