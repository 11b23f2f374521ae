"""Benchmarks `laggard fleet` and prints a Markdown table: ingest relative to loading only, size of the Parquet files, a
report on 64 ranks, and two Spark workers relative to one.

    python fleet.py --laggard-python PYTHON --base TRACE --ranks DIR --out DIR [--only size,ingest,report,spark]

Inputs are generated from a real trace (`--base`) and real ranks (`--ranks`) by repeating their events. PYTHON needs
laggard, duckdb and, for `spark`, pyspark. Measurements that are compared are interleaved. Ratios are medians of
pairs, with minimum and maximum.
"""

import argparse
import gzip
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROUNDS = 7
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
IDS = ("correlation", "External id", "External Id", "Ev Idx", "Record function id", "Python id", "Python parent id")


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--laggard-python", required=True)
    flags.add_argument("--base", required=True, nargs="+", help="real traces; only ingest uses more than one")
    flags.add_argument("--ranks", required=True, help="directory of real ranks: rank0.json.gz, …")
    flags.add_argument("--out", required=True, help="directory for generated inputs, which may be large")
    flags.add_argument("--only", default="size,ingest,report,spark")
    flags.add_argument("--large-mb", type=float, default=500)
    flags.add_argument("--trace-mb", type=float, default=150, help="size of each trace for ingest and spark")
    flags.add_argument("--traces", type=int, default=8, help="number of traces that Spark ingests")
    flags.add_argument("--rounds", type=int, default=ROUNDS)
    args = flags.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    print(f"load {os.getloadavg()[0]:.1f} at the start, {os.cpu_count()} CPUs", file=sys.stderr)
    print("| what | value | n | how |\n|---|---|---|---|")
    for name in args.only.split(","):
        {"size": sizes, "ingest": ingest, "report": report, "spark": spark}[name](args, out)
    print(f"load {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)


def row(what, value, n, how):
    print(f"| {what} | {value} | {n} | {how} |", flush=True)


# Inputs


def real_ranks(args):
    return sorted(path for path in Path(args.ranks).iterdir() if path.name.endswith((".json", ".json.gz")))


def read(path):
    raw = Path(path).read_bytes()
    return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


def repeated(base, target, megabytes, rank=None, world=None):
    """Writes a trace of this size that repeats the events of `base` with later times and new ids. Device operations
    are shortened by up to 10 % at random, because identical copies would compress too well."""
    if target.exists():
        return target
    trace = base if isinstance(base, dict) else read(base)
    rng = random.Random(rank or 0)
    events = trace["traceEvents"]
    timed = [event for event in events if event.get("ph") == "X"]
    first = min(event["ts"] for event in timed)
    step_us = int(max(event["ts"] + event.get("dur", 0) for event in timed) - first) + 1000
    top = {key: value for key, value in trace.items() if key != "traceEvents"}
    if rank is not None:
        top["distributedInfo"] = {**top.get("distributedInfo", {}), "rank": rank, "world_size": world}
    ids = [event.get("args", {}).get(key) for event in events for key in IDS]
    step_id = 1 + max((value for value in ids if isinstance(value, int) and value < 1 << 40), default=0)
    meta = [json.dumps(event) for event in events if event.get("ph") == "M"]
    on_host = [event for event in events if event.get("ph") != "M" and event.get("cat") not in DEVICE]
    on_device = [event for event in events if event.get("cat") in DEVICE]
    # Kineto writes each event on several lines.
    host, tail = holes(",\n".join(json.dumps(event, indent=2) for event in on_host), step_us, step_id)
    device = []
    for event in on_device:
        bare = json.dumps({**event, "ts": "TS", "dur": "DUR"}, indent=2)
        device.append((*holes(bare, step_us, step_id), event["ts"], event["dur"]))

    def copy_of(number):
        yield "".join([f"{before}{value + number * step}" for before, value, step in host]) + tail
        for parts, end, ts, dur in device:
            text = "".join([f"{before}{value + number * step}" for before, value, step in parts]) + end
            took = dur * rng.uniform(0.9, 1)
            at = ts + number * step_us + (dur - took) * rng.random()
            yield text.replace('"TS"', f"{at:.3f}").replace('"DUR"', f"{took:.3f}")

    temporary = target.with_suffix(".tmp")
    with open(temporary, "w") as file:
        file.write(json.dumps(top)[:-1] + ', "traceEvents": [\n' + ",\n".join(meta))
        written, number = file.tell(), 0
        while written < megabytes * 1e6:
            comma = ",\n" if meta or number else ""
            written += file.write(comma + ",\n".join(copy_of(number)))
            number += 1
        file.write("\n]}\n")
    temporary.rename(target)
    return target


def holes(text, step_us, step_id):
    """Splits a text at the numbers that increase from copy to copy. Returns the text before each number, the number and
    its increment, and the text after the last number."""
    parts, at = [], 0
    for found in re.finditer(r'"(ts|id|%s)": (\d+)' % "|".join(IDS), text):
        number = int(found[2])
        if found[1] != "ts" and not 0 < number < 1 << 40:
            continue
        parts.append((text[at : found.start(2)], number, step_us if found[1] == "ts" else step_id))
        at = found.end(2)
    return parts, text[at:]


# Processes


def run(python, code, *words, env=None):
    """Runs Python code. Returns its wall and CPU seconds, including children, and its output."""
    began = time.monotonic()
    process = subprocess.Popen(
        [python, "-c", code, *map(str, words)], stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    )
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{code!r} failed with exit status {process.returncode}")
    return time.monotonic() - began, used.ru_utime + used.ru_stime, printed


LOAD = "import sys, laggard, laggard.fleet.ingest; laggard.load(sys.argv[1], index=False, threads=1)"
INGEST = """
import sys
from laggard.fleet.ingest import Task, ingest_one
done = ingest_one(Task(sys.argv[1], "job", sys.argv[2], sys.argv[3], force=True))
assert done.state == "new", done
print(done.parquet_bytes, done.text_bytes)
"""
NOTHING = "import laggard, laggard.fleet.ingest"


def sizes(args, out):
    python = args.laggard_python
    total = [0, 0, 0]
    shutil.rmtree(out / "sizes", ignore_errors=True)
    real = real_ranks(args)
    for path in real:
        packed, text = map(int, run(python, INGEST, path, out / "sizes", path.name)[2].split())
        total = [total[0] + packed, total[1] + text, total[2] + path.stat().st_size]
    how = f"{total[0] / 1e3:.0f} kB of {total[1] / 1e6:.1f} MB; {100 * total[0] / total[2]:.0f} % of the input files"
    row("Parquet size relative to JSON, real ranks", f"{100 * total[0] / total[1]:.2f} %", len(real), how)
    large = repeated(args.base[0], out / "large_rank0.json", args.large_mb)
    packed, text = map(int, run(python, INGEST, large, out / "sizes", "large")[2].split())
    how = f"{packed / 1e6:.1f} MB of {text / 1e6:.0f} MB"
    row(f"Parquet size relative to JSON, generated {text / 1e6:.0f} MB", f"{100 * packed / text:.2f} %", 1, how)


def ingest(args, out):
    for base in args.base:
        ingest_like(args, out, Path(base))


def ingest_like(args, out, base):
    """Measures ingest of a trace generated from this one, plain and compressed."""
    python = args.laggard_python
    name = base.name.split(".")[0]
    plain = repeated(base, out / f"{name}_rank0.json", args.trace_mb)
    packed = plain.with_name(plain.name + ".gz")
    if not packed.exists():
        with open(plain, "rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target)
    for path, kind in ((plain, f"{name}, plain JSON"), (packed, f"{name}, .json.gz")):
        ratios, rates = [], []
        for i in range(args.rounds + 1):
            _, start, _ = run(python, NOTHING)
            _, load, _ = run(python, LOAD, path)
            _, both, printed = run(python, INGEST, path, out / "ingest", f"{path.name}{i}")
            if i == 0:
                continue  # warm-up of the page cache
            ratios.append((load - start) / (both - start))
            rates.append(int(printed.split()[1]) / 1e6 / (both - start))
        value = f"{median(ratios):.2f}x ({min(ratios):.2f}–{max(ratios):.2f})"
        how = "CPU seconds without interpreter start-up, interleaved; median (min–max) of pairs"
        row(f"ingest rate relative to loading only, {kind}", value, len(ratios), how)
        value = f"{median(rates):.0f} MB/s ({min(rates):.0f}–{max(rates):.0f})"
        how = f"{plain.stat().st_size / 1e6:.0f} MB of JSON; per CPU second"
        row(f"ingest rate per core, {kind}", value, len(rates), how)


INGEST_ALL = """
import sys
from laggard._cli import main
sys.argv = ["laggard", "fleet", "ingest", sys.argv[1], "--to", sys.argv[2]]
sys.exit(main())
"""
REPORT = """
import sys
from laggard._cli import main
sys.argv = ["laggard", "fleet", "report", sys.argv[1]]
sys.exit(main())
"""


def report(args, out):
    """Measures a report on 64 ranks: the real ones, and generated ones with 20,000 kernels each."""
    traces, to = out / "job64", out / "fleet64"
    traces.mkdir(exist_ok=True)
    real = real_ranks(args)
    for path in real:
        shutil.copy(path, traces / path.name)
    bases = [read(path) for path in real]
    for rank in range(len(real), 64):
        # A real rank has about 300 kernels in 0.9 MB, so 60 MB have about 20,000.
        repeated(bases[rank % len(bases)], traces / f"rank{rank}.json", 60, rank, 64)
    run(args.laggard_python, INGEST_ALL, traces, to)
    walls, cpus = [], []
    for i in range(args.rounds + 1):
        wall, cpu, _ = run(args.laggard_python, REPORT, to)
        if i:
            walls.append(wall)
            cpus.append(cpu)
    value = f"{median(walls):.2f} s ({min(walls):.2f}–{max(walls):.2f})"
    how = f"wall time, with interpreter start-up; {median(cpus):.2f} CPU seconds; load {os.getloadavg()[0]:.1f}"
    row("fleet report on 64 ranks", value, len(walls), how)


# Spark


SPARK = """
import sys, time, uuid, json, shutil
from pathlib import Path
from laggard import fleet
traces, to, master, rounds = sys.argv[1:]
with fleet.choose("spark", master) as engine:
    for i in range(int(rounds) + 1):
        shutil.rmtree(to, ignore_errors=True)
        sys.stdin.readline()
        began = time.monotonic()
        done = fleet.ingest(traces, to=to, engine=engine, force=True)
        assert not done.of("bad", "duplicate"), done.outcomes
        size, busy = (sum(getattr(one, name) for one in done.outcomes) for name in ("text_bytes", "seconds"))
        print(json.dumps([time.monotonic() - began, size, busy]), flush=True)
"""


class Cluster:
    """A standalone master and workers with one core each, on the loopback interface."""

    def __init__(self, python, place, workers):
        self.processes = []
        code = "import pyspark, os; print(os.path.dirname(pyspark.__file__))"
        self.home = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        self.start("master", ["master.Master", "--port", str(port)], "elected leader")
        for i in range(workers):
            words = ["worker.Worker", "--cores", "1", "--memory", "2g", "-d", str(place / f"w{i}"), self.url]
            self.start(f"worker{i}", words, "Successfully registered")

    def start(self, name, words, ready):
        log = self.place / f"{name}.log"
        env = {**os.environ, "SPARK_HOME": self.home, "SPARK_LOCAL_IP": "127.0.0.1"}
        program = [f"{self.home}/bin/spark-class", f"org.apache.spark.deploy.{words[0]}"]
        program += ["--host", "127.0.0.1", "--webui-port", "0", *words[1:]]
        with open(log, "wb") as out:
            self.processes.append(
                subprocess.Popen(program, stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True)
            )
        while ready not in log.read_text(errors="replace"):
            if self.processes[-1].poll() is not None:
                sys.exit(log.read_text(errors="replace"))
            time.sleep(0.2)

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def spark(args, out):
    """Measures clusters of one and of two workers, interleaved, after a warm-up of both."""
    traces = out / "spark"
    traces.mkdir(exist_ok=True)
    base = read(args.base[0])
    for rank in range(args.traces):
        repeated(base, traces / f"rank{rank}.json", args.trace_mb, rank, args.traces)
    clusters, sessions = [], []
    try:
        for workers in (1, 2):
            clusters.append(Cluster(args.laggard_python, out / f"cluster{workers}", workers))
            words = [args.laggard_python, "-c", SPARK, traces, out / f"spark-fleet{workers}", clusters[-1].url]
            sessions.append(
                subprocess.Popen(
                    [*map(str, words), str(args.rounds)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
        rates, busy = [[], []], [[], []]
        for i in range(args.rounds + 1):
            for workers, session in enumerate(sessions, 1):
                session.stdin.write("go\n")
                session.stdin.flush()
                line = session.stdout.readline()
                if not line:
                    sys.exit("a Spark session failed")
                seconds, size, in_tasks = json.loads(line)
                if i:
                    rates[workers - 1].append(size / 1e6 / seconds)
                    busy[workers - 1].append(100 * in_tasks / seconds / workers)
        ratios = [two / one for one, two in zip(*rates)]
        for workers, mine in zip((1, 2), rates):
            value = f"{median(mine):.0f} MB/s ({min(mine):.0f}–{max(mine):.0f})"
            how = f"{args.traces} traces of {args.trace_mb:.0f} MB of plain JSON, one core per worker, after warm-up"
            how += f"; workers ran tasks for {median(busy[workers - 1]):.0f} % of the time"
            row(f"Spark ingest, {workers} worker{'s' * (workers > 1)}", value, len(mine), how)
        value = f"{median(ratios):.2f}x ({min(ratios):.2f}–{max(ratios):.2f})"
        how = f"interleaved; load {os.getloadavg()[0]:.1f}"
        row("Spark ingest, two workers relative to one", value, len(ratios), how)
    finally:
        for session in sessions:
            session.kill()
            session.wait()
        for cluster in clusters:
            cluster.close()


if __name__ == "__main__":
    main()
