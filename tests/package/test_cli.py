"""The command line of the installed package."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import laggard
import pytest
from conftest import FIXTURES

SCRIPT = Path(sys.executable).with_name("laggard")


def test_script_and_module_have_the_same_command_line(command):
    script = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True, timeout=60)
    assert script.returncode == 0
    assert script.stdout == command("--help").stdout
    assert "Usage: laggard" in script.stdout
    assert command("--version").stdout.strip() == f"laggard {laggard.__version__}"


def test_exit_statuses(command, tmp_path):
    shutil.copy(FIXTURES / "amd-native.json", tmp_path / "a.json")
    assert command("report", tmp_path / "a.json").stderr == ""
    assert "error:" in command("report", tmp_path / "gone.json", code=2).stderr
    assert "error:" in command("no-such-verb", code=2).stderr
    slower = FIXTURES / "bench"
    code = command(
        "compare", "--fail-above", "0.0001%", slower / "pytest-benchmark.json", slower / "pytest-benchmark-again.json",
        code=None,
    ).returncode  # fmt: skip
    assert code in (0, 1)
    if sys.platform == "linux":
        command("record", "-o", tmp_path / "x.lag", "--", sys.executable, "-c", "raise SystemExit(7)", code=7)


@pytest.mark.skipif(sys.platform != "linux", reason="sampling requires Linux")
def test_recording_contains_the_hot_function(command, tmp_path):
    code = "def hot():\n    for _ in range(3_000_000): pass\nhot()"
    command("record", "-o", tmp_path / "run.lag", "--", sys.executable, "-c", code)
    assert "hot" in command("report", tmp_path / "run.lag").stdout


def test_closed_pipe_is_not_an_error(tmp_path):
    shutil.copy(FIXTURES / "amd-native.json", tmp_path / "a.json")
    line = f"'{sys.executable}' -m laggard report '{tmp_path / 'a.json'}' | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


def test_ctrl_c_terminates_the_program():
    words = [sys.executable, "-m", "laggard", "bench", "--time", "100", "--precision", "0.0000001"]
    process = subprocess.Popen([*words, "--python", sys.executable, "1", "2", "--no-check"], stderr=subprocess.PIPE)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 130)


def test_missing_duckdb_prints_the_install_command(command, tmp_path):
    # Hides an installed DuckDB.
    (tmp_path / "duckdb.py").write_text("raise ImportError('no duckdb')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    stderr = command("query", "select 1", FIXTURES / "amd-native.json", code=2, env=environment).stderr
    assert "pip install 'laggard[sql]'" in stderr, stderr
