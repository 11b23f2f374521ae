"""`laggard fleet` on a Spark cluster of one master and two workers on this machine. Tables and reports are the same as
with DuckDB, also if a worker is killed."""

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.resources import files
from pathlib import Path

import pytest
from conftest import FIXTURES
from test_fleet import make_job

from laggard import fleet
from laggard.fleet import store

pytestmark = pytest.mark.spark

pyspark = pytest.importorskip("pyspark")
duckdb = pytest.importorskip("duckdb")
if shutil.which("java") is None:
    pytest.skip("Java not found", allow_module_level=True)

#: Time limit in seconds for starting a process of the cluster on a busy machine.
PATIENCE_S = 180
TABLES = ("kernels", "collectives", "steps", "gaps", "devices")
HOSTILE = "it's <b>a\njob</b>; drop table 100% [x]"


class Cluster:
    """A master and workers with one core each, in separate process groups."""

    def __init__(self, place):
        self.place = place
        self.workers = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.master_url = f"spark://127.0.0.1:{port}"
        self.processes = []
        words = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        self._start("master", words, "I have been elected leader")

    def add_worker(self):
        name = f"worker{len(self.workers)}"
        words = ["worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "2g", "--webui-port", "0"]
        words += ["-d", str(self.place / name), self.master_url]
        self.workers.append(self._start(name, words, "Successfully registered with master"))
        return self.workers[-1]

    def _start(self, name, words, ready):
        log = self.place / f"{name}.log"
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(self.place / f"{name}-local")}
        env["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [str(program), f"org.apache.spark.deploy.{words[0]}", *words[1:]],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=env,
                start_new_session=True,
            )
        self.processes.append(process)
        give_up = time.monotonic() + PATIENCE_S
        while ready not in log.read_text(errors="replace"):
            assert process.poll() is None and time.monotonic() < give_up, log.read_text(errors="replace")
            time.sleep(0.2)
        return process

    def kill(self, process):
        """Kills a process and its children, to simulate a lost machine."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self):
        for process in reversed(self.processes):
            self.kill(process)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.add_worker()
        made.add_worker()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def spark(cluster):
    with fleet.choose("spark", cluster.master_url, sys.executable) as engine:
        yield engine


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    place = tmp_path_factory.mktemp("jobs")
    before = make_job(place / "before", ranks=6, steps=40, late_us={4: 110})
    after = make_job(place / "after", ranks=7, steps=50, seed=3, slow={2: 1.1}, gpus={2: "another GPU's model"})
    (after / "rank9.json").write_text("this is no trace")
    return before, after


@pytest.fixture(scope="module")
def both(tmp_path_factory, jobs, spark):
    """The same jobs, ingested with each engine."""
    place = tmp_path_factory.mktemp("both")
    outcomes = {}
    for engine in ("duckdb", spark):
        name = engine if isinstance(engine, str) else engine.name
        outcomes[name] = [
            fleet.ingest(jobs[0], to=place / name, engine=engine),
            fleet.ingest(jobs[1], to=place / name, engine=engine, job=HOSTILE),
            fleet.ingest(FIXTURES / "ranks", to=place / name, engine=engine, job="2024-01-01"),
        ]
    return place / "duckdb", place / "spark", outcomes


def rows_of(to, table):
    found = duckdb.sql(f"select * from read_parquet('{to}/{table}/*/*/part.parquet', hive_types_autocast = false)")
    return sorted(found.fetchall(), key=repr)


def same(one, other, at=""):
    """Asserts equality: exact for integers and strings, to nine digits for floats."""
    if isinstance(one, dict):
        assert list(one) == list(other), at
        for key in one:
            same(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), at
        for i, pair in enumerate(zip(one, other)):
            same(*pair, f"{at}[{i}]")
    elif isinstance(one, float) and isinstance(other, float):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9), (at, one, other)
    else:
        assert type(one) is type(other) and one == other, (at, one, other)


def test_spark_ingests_the_same_tables_as_duckdb(both):
    here, there, outcomes = both
    for one, other in zip(outcomes["duckdb"], outcomes["spark"]):
        assert [(each.path, each.state, each.rank) for each in one.outcomes] == [
            (each.path, each.state, each.rank) for each in other.outcomes
        ]
    assert [one.path for one in outcomes["spark"][1].of("bad")][0].endswith("rank9.json")
    for table in TABLES:
        rows = rows_of(here, table)
        assert rows and rows == rows_of(there, table), table
    assert store.jobs(here) == store.jobs(there)
    for job in store.jobs(here):
        manifests = [store.ranks(place, job) for place in (here, there)]
        for manifest in manifests:
            for row in manifest.values():
                del row["ingest_seconds"]
        assert manifests[0] == manifests[1]


def test_every_query_returns_the_same_rows_on_both_engines(both, spark):
    here, there, _ = both
    questions = sorted(
        path.name.removesuffix(".sql")
        for path in (files("laggard.fleet") / "sql").iterdir()
        if not path.name.startswith("view_")
    )
    assert len(questions) > 5
    for job in store.jobs(here):
        with fleet.choose("duckdb") as local:
            local.open(here, job, store.ranks(here, job))
            spark.open(there, job, store.ranks(there, job))
            for question in questions:
                sql = fleet.engine.question(question)
                same(local.query(sql), spark.query(sql), f"{job} {question}")


def test_reports_and_comparisons_are_equal_on_both_engines(both, spark):
    here, _, _ = both
    for run in (
        lambda engine: fleet.report(here, "before", engine=engine),
        lambda engine: fleet.report(here, HOSTILE, engine=engine),
        lambda engine: fleet.compare(here, a="before", b=HOSTILE, engine=engine),
    ):
        one, other = run("duckdb").data, run(spark).data
        assert (one.pop("engine"), other.pop("engine")) == ("duckdb", "spark")
        same(one, other)
    assert fleet.report(here, "before", engine=spark).data["stragglers"]["stand_out"] == [4]


def test_lost_worker_loses_no_rows(tmp_path, cluster, spark):
    traces, to = make_job(tmp_path / "job", ranks=30, steps=300), tmp_path / "fleet"
    victim = cluster.workers[-1]

    def kill():
        give_up = time.monotonic() + PATIENCE_S
        while len(list(to.glob("ranks/*/*/part.json"))) < 3 and time.monotonic() < give_up:
            time.sleep(0.02)
        seen.append(len(list(to.glob("ranks/*/*/part.json"))))
        cluster.kill(victim)

    seen = []
    killer = threading.Thread(target=kill)
    killer.start()
    done = fleet.ingest(traces, to=to, engine=spark)
    killer.join()
    assert 3 <= seen[0] < 30, "the worker was not killed during the ingest"
    assert len(done.of("new")) + len(done.of("there")) == 30 and not done.of("bad", "duplicate")
    data = fleet.report(to).data
    assert [row["rank"] for row in data["ranks"]] == list(range(30))
    assert {row["kernels"] for row in data["ranks"]} == {300 * 5}
    fleet.ingest(traces, to=tmp_path / "again")
    for table in TABLES:
        assert rows_of(to, table) == rows_of(tmp_path / "again", table), table
    assert len(fleet.ingest(traces, to=to, engine=spark).of("there")) == 30


def test_missing_java_is_an_error(tmp_path, both, cluster):
    env = {**os.environ, "JAVA_HOME": "", "PATH": str(tmp_path)}
    words = [sys.executable, "-m", "laggard", "fleet", "--engine", "spark", "--master", cluster.master_url]
    words += ["report", str(both[0]), "--job", "before"]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.returncode == 2 and "Java 17" in done.stderr


def test_missing_worker_python_is_an_error(tmp_path, cluster):
    traces = make_job(tmp_path / "job", ranks=2, steps=3)
    words = [sys.executable, "-m", "laggard", "fleet", "--engine", "spark", "--master", "local[1]"]
    words += ["--worker-python", "/nowhere/python", "ingest", str(traces), "--to", str(tmp_path / "fleet")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "/nowhere/python" in done.stderr and "--worker-python" in done.stderr
