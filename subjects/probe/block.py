"""Samples blocks of itself, as `with laggard.record(…)` does: AGENT LAGGARD DIRECTORY SCENARIO [FLAGS].

The agent is loaded late, `laggard drive` takes the samples. Each scenario says on standard output
what the test has to know.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time

AGENT, LAGGARD, DIRECTORY, SCENARIO, *FLAGS = sys.argv[1:]
BUSY = 1

agent = None


class Refused(Exception):
    pass


@contextlib.contextmanager
def record(name):
    """Samples the block into a file of this name; yields what `laggard_stop` will have answered."""
    global agent
    if agent is None:
        agent = ctypes.CDLL(AGENT, os.RTLD_NOW | os.RTLD_LOCAL)
    ours, theirs = socket.socketpair()
    command = [LAGGARD, "drive", "--pid", str(os.getpid()), "-o", os.path.join(DIRECTORY, name), *FLAGS]
    driver = subprocess.Popen(command, stdin=theirs, stdout=theirs, process_group=0) if sys.version_info >= (3, 11) \
        else subprocess.Popen(command, stdin=theirs, stdout=theirs, preexec_fn=os.setpgrp)
    theirs.close()
    lines = ours.makefile()
    word, ring = lines.readline().rstrip("\n").split(" ", 1)
    driver.wait()
    if word != "ring":
        raise Refused(ring)
    answer = agent.laggard_start(os.fsencode(ring))
    if answer:
        raise Refused(answer)
    pid, result = os.getpid(), {}
    try:
        yield result
    finally:
        if os.getpid() == pid:
            result["stop"] = agent.laggard_stop()
            ours.sendall(b"stop %d %d 0\n" % (time.monotonic_ns(), time.process_time_ns()))
            result["said"] = lines.read().splitlines()
            ours.close()


def burn(seconds):
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        for i in range(2000):
            total += i * i
    return total


def in_main(seconds):
    burn(seconds)


def in_old_thread(begin, seconds):
    begin.wait()
    burn(seconds)


def in_new_thread(seconds):
    burn(seconds)


def action(number):
    """The action that the kernel has for a signal: handler, flags, restorer, mask."""
    place = (ctypes.c_uint64 * 4)()
    ctypes.CDLL(None).syscall(13, number, None, place, 8)
    return list(place)


SIGNALS = [signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP, 61]


def threads():
    begin = threading.Event()
    old = threading.Thread(target=in_old_thread, args=(begin, 0.4))
    old.start()
    before = [action(number) for number in SIGNALS]
    with record("first.lag") as first:
        begin.set()
        new = threading.Thread(target=in_new_thread, args=(0.4,))
        new.start()
        in_main(0.4)
        new.join()
        old.join()
    assert first["stop"] == 0, first
    assert [action(number) for number in SIGNALS] == before, "actions are back"
    descriptors = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]
    assert not any("perf" in name for name in descriptors), descriptors
    # With the default action, one late sample would end the process.
    burn(0.2)
    with record("second.lag") as second:
        in_main(0.3)
    assert second["stop"] == 0, second
    print(first["said"][-1])
    print(second["said"][-1])


SCENARIOS = {"threads": threads}

if __name__ == "__main__":
    SCENARIOS[SCENARIO]()
