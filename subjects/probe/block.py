"""Record blocks of this program: AGENT LAGGARD DIRECTORY SCENARIO TRIGGER [FLAGS].

The agent is loaded at run time, and `laggard drive` takes the samples. TRIGGER is the number of the
sample trigger to try first.
"""

import ctypes
import faulthandler
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time

AGENT, LAGGARD, DIRECTORY, SCENARIO, TRIGGER, *FLAGS = sys.argv[1:]
BUSY = 1
KEPT = 2
# Offset of the trigger in the header of the ring buffer.
TRIGGER_AT = 56

agent = None


class Refused(Exception):
    pass


class record:
    """Record the block to a file with this name."""

    def __init__(self, name):
        self.path = os.path.join(DIRECTORY, name)

    def __enter__(self):
        global agent
        if agent is None:
            agent = ctypes.CDLL(AGENT, os.RTLD_NOW | os.RTLD_LOCAL)
        self.pid = os.getpid()
        self.socket, theirs = socket.socketpair()
        command = [LAGGARD, "drive", "--pid", str(self.pid), "-o", self.path, *FLAGS]
        driver = subprocess.Popen(command, stdin=theirs, stdout=theirs, start_new_session=True)
        theirs.close()
        self.lines = self.socket.makefile()
        word, text = self.lines.readline().rstrip("\n").split(" ", 1)
        driver.wait()
        answer = text
        if word == "ring":
            with open(text, "r+b") as ring:
                ring.seek(TRIGGER_AT)
                ring.write(int(TRIGGER).to_bytes(4, "little"))
            answer = agent.laggard_start(os.fsencode(text))
        if answer:
            self.socket.close()
            raise Refused(answer)
        self.began = time.monotonic_ns(), time.process_time_ns()
        return self

    def __exit__(self, *_):
        self.stopped = agent.laggard_stop()
        if os.getpid() != self.pid:
            return
        used = time.monotonic_ns() - self.began[0], time.process_time_ns() - self.began[1]
        self.socket.sendall(b"stop %d %d 0\n" % used)
        self.said = self.lines.read().splitlines()
        self.lines.close()
        self.socket.close()
        assert self.said[-1].startswith("done "), self.said


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
    """The kernel's action for a signal: handler, flags, restorer, mask."""
    place = (ctypes.c_uint64 * 4)()
    ctypes.CDLL(None).syscall(13, number, None, place, 8)
    return list(place)


SIGNALS = [signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP, 61]


def actions():
    return [action(number) for number in SIGNALS]


def events():
    """File descriptors of perf events."""
    names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return [name for name in names if os.path.islink(name) and "perf_event" in os.readlink(name)]


def threads():
    """Existing and new threads; then everything is restored; then a second block."""
    begin = threading.Event()
    old = threading.Thread(target=in_old_thread, args=(begin, 0.4))
    old.start()
    before = actions()
    with record("first.lag") as first:
        begin.set()
        new = threading.Thread(target=in_new_thread, args=(0.4,))
        new.start()
        in_main(0.4)
        new.join()
        old.join()
    assert first.stopped == 0 and actions() == before and not events()
    # With the default action, a late sample would kill the process.
    burn(0.2)
    with record("second.lag") as second:
        in_second(0.3)
    assert second.stopped == 0 and actions() == before


def in_second(seconds):
    burn(seconds)


def many():
    """Many blocks that start and end while other threads work."""
    is_over = False

    def work():
        while not is_over:
            burn(0.001)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    before = actions()
    for turn in range(40):
        with record(f"{turn}.lag") as block:
            in_main(0.005)
        assert block.stopped or actions() == before
    is_over = True
    for worker in workers:
        worker.join()


def nested():
    with record("outer.lag"):
        in_main(0.1)
        try:
            with record("inner.lag"):
                raise SystemExit("a block in a block")
        except Refused as refused:
            assert refused.args == (BUSY,), refused
        in_main(0.1)
    assert agent.laggard_stop() == 1, "there is nothing to stop"


def forks():
    """Processes that are forked or started in a block are not sampled and exit normally."""
    before = actions()
    with record("forks.lag"):
        in_main(0.1)
        for _ in range(20):
            child = os.fork()
            if child == 0:
                ok = actions() == before and not events()
                in_child(0.02)
                os._exit(7 if ok else 8)
            in_main(0.01)
            assert os.waitpid(child, 0)[1] == 7 << 8
        done = subprocess.run([sys.executable, "-c", "print(sum(range(10**6)))"], capture_output=True)
        assert done.returncode == 0 and done.stdout == b"499999500000\n", done
        context = multiprocessing.get_context("fork")
        with context.Pool(2) as pool:
            assert pool.map(abs, range(-100, 0)) == list(range(100, 0, -1))
        # No child processes remain.
        try:
            os.wait()
            raise SystemExit("the driver is a child")
        except ChildProcessError:
            pass
    # A child that runs until the end of the block and records itself.
    with record("parent.lag"):
        in_main(0.1)
        child = os.fork()
    if child == 0:
        with record("child.lag"):
            in_child(0.2)
        os._exit(9)
    assert os.waitpid(child, 0)[1] == 9 << 8


def in_child(seconds):
    burn(seconds)


def faults():
    """Signal handlers of the program: set before the block, within it, and for a real fault."""
    faulthandler.enable()
    before = actions()
    got = []
    signal.signal(signal.SIGTRAP, lambda *_: got.append(1))
    trap = action(signal.SIGTRAP)
    with record("faults.lag"):
        in_main(0.2)
        os.kill(os.getpid(), signal.SIGTRAP)
        in_main(0.1)
        faulthandler.disable()
        faulthandler.enable()
        # The program replaced the fault handlers of the agent; samples are taken without them.
        in_careful(0.2)
    assert got == [1] and action(signal.SIGTRAP) == trap and before[0] == action(signal.SIGSEGV)
    with record("fatal.lag"):
        in_main(0.2)
        ctypes.string_at(8)


def in_careful(seconds):
    burn(seconds)


def blocked():
    """Threads that block all signals, started before the block and within it."""

    def work(begin):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        begin.wait()
        burn(0.2)
        over.wait()

    over = threading.Event()
    begins = [threading.Event(), threading.Event()]
    workers = [threading.Thread(target=work, args=(begin,)) for begin in begins]
    workers[0].start()
    time.sleep(0.1)
    before = actions()
    with record("blocked.lag") as block:
        workers[1].start()
        for begin in begins:
            begin.set()
        in_main(0.4)
    kept = block.stopped
    burn(0.1)
    over.set()
    for worker in workers:
        worker.join()
    with record("after.lag") as block:
        in_main(0.1)
    assert block.stopped == 0 and actions() == before
    assert kept == KEPT, kept


def killed():
    with record("killed.lag"):
        in_main(1.5)
        os.kill(os.getpid(), signal.SIGKILL)


def replaced():
    with record("replaced.lag"):
        in_main(0.3)
        os.execv(sys.executable, [sys.executable, "-c", "sum(range(10**7))"])


def product():
    import numpy as np

    matrix = np.ones((512, 512), np.float32)
    matrix @ matrix  # threads of BLAS are there before
    with record("product.lag"):
        multiply(matrix)


def multiply(matrix):
    for _ in range(60):
        matrix @ matrix


def waits():
    """Waiting threads have wall-clock samples, including those that start in the block."""
    begin = threading.Event()
    old = threading.Thread(target=waits_in_old_thread, args=(begin,))
    old.start()
    with record("waits.lag"):
        new = threading.Thread(target=waits_in_new_thread)
        new.start()
        time.sleep(0.5)
        begin.set()
        new.join()
        old.join()


def waits_in_old_thread(begin):
    begin.wait()


def waits_in_new_thread():
    time.sleep(0.5)


if __name__ == "__main__":
    globals()[SCENARIO]()
