"""`with laggard.record(…)` samples a block in this process."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import laggard
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sampling requires Linux")

#: Enough CPU time for several hundred samples at 999 Hz, also on a busy machine.
SECONDS = 0.4


def burn(seconds=SECONDS):
    """Uses the CPU for so many seconds of thread time."""
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        for i in range(1000):
            total += i * i
    return total


def in_the_block():
    return burn()


def in_an_old_thread(begin):
    begin.wait()
    burn()


def in_a_new_thread():
    burn()


def python_functions(profile):
    """Names of functions in the stacks, with their numbers of samples."""
    found = {}
    for row in profile.samples.select(["stack", "count"]).head(10**9):
        for name in {frame.split(" (")[0] for frame in row["stack"].split(";")}:
            found[name] = found.get(name, 0) + row["count"]
    return found


def test_functions_of_the_block_are_sampled_with_complete_stacks(tmp_path):
    with laggard.record(tmp_path / "run.lag") as recording:
        in_the_block()
    burn(0.1)  # after the block: not sampled
    found = python_functions(recording.profile)
    assert recording.samples > 50
    assert recording.complete >= 0.95 * recording.samples
    assert found["in_the_block"] >= 0.9 * recording.samples
    assert laggard.load(tmp_path / "run.lag").kind == "profile"


def test_threads_started_before_and_in_the_block_are_sampled(tmp_path):
    begin = threading.Event()
    old = threading.Thread(target=in_an_old_thread, args=(begin,), name="old")
    old.start()
    with laggard.record(tmp_path / "run.lag") as recording:
        begin.set()
        new = threading.Thread(target=in_a_new_thread, name="new")
        new.start()
        in_the_block()
        new.join()
        old.join()
    found = python_functions(recording.profile)
    for name in ("in_the_block", "in_an_old_thread", "in_a_new_thread"):
        assert found.get(name, 0) > 20, (name, found)


def test_blocks_can_be_repeated_but_not_nested(tmp_path):
    for number in range(3):
        with laggard.record(tmp_path / f"{number}.lag") as recording:
            burn(0.1)
            if number == 1:
                with pytest.raises(laggard.RecordError, match="record"):
                    laggard.record(tmp_path / "within.lag").__enter__()
        assert recording.samples > 10


def test_exceptions_are_propagated_and_the_file_is_written(tmp_path):
    with pytest.raises(ZeroDivisionError), laggard.record(tmp_path / "run.lag") as recording:
        burn(0.1)
        _ = 1 / 0
    assert recording.profile.samples.num_rows == recording.samples > 0


def test_suffix_selects_the_format(tmp_path):
    with laggard.record(tmp_path / "run.folded"):
        in_the_block()
    assert "in_the_block" in (tmp_path / "run.folded").read_text()


def test_subprocesses_and_forks_in_a_block_are_not_sampled(tmp_path):
    with laggard.record(tmp_path / "run.lag") as recording:
        assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout == b"1\n"
        pid = os.fork()
        if pid == 0:
            burn(0.05)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        burn(0.1)
    pids = {row["pid"] for row in recording.profile.threads.head(1000)}
    assert pids == {os.getpid()}


def test_killed_process_leaves_a_readable_recording(tmp_path):
    path = tmp_path / "run.lag"
    code = f"""
        import laggard, os, signal, time
        recording = laggard.record({str(path)!r}).__enter__()
        end = time.thread_time() + 1.5
        while time.thread_time() < end:
            sum(range(1000))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=60)
    assert ended.returncode == -9, ended.stderr
    for _ in range(100):  # the process that reads the samples exits a little later
        if path.exists():
            try:
                if laggard.load(path).samples.num_rows:
                    break
            except laggard.Error:
                pass
        time.sleep(0.1)
    assert laggard.load(path).samples.num_rows > 50


def test_file_of_another_kind_is_not_overwritten(tmp_path):
    path = tmp_path / "notes.lag"
    path.write_text("my own notes")
    with pytest.raises(laggard.RecordError, match="notes.lag"):
        laggard.record(path).__enter__()
    assert path.read_text() == "my own notes"
    with laggard.record(path, force=True):
        burn(0.05)
    assert laggard.load(path).kind == "profile"


def test_why_with_callables_reports_the_interpreter():
    numbers = list(range(5000))

    def native():
        return sum(numbers)

    def loop():
        total = 0
        for number in numbers:
            total += number
        return total

    verdict = laggard.why(native, loop, time=4)
    assert verdict.lags and verdict.ratio > 1.5
    assert verdict.culprits[0].kind == "interpreter"
    assert verdict.culprits[0].facts
