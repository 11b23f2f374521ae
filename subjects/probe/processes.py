"""Forks, threads, exec and pools; each works in a function with its own name."""
import os
import subprocess
import sys
import threading


def burn(n=150_000):
    total = 0.0
    for i in range(n):
        total += i * 0.5
    return total


def in_child():
    for _ in range(20):
        burn()


def in_thread():
    for _ in range(20):
        burn()


def in_main():
    for _ in range(20):
        burn()


in_main()
child = os.fork()
if child == 0:
    in_child()
    os._exit(7)
assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 7
program = "def in_program():\n    for i in range(2_000_000): pass\nin_program()"
assert subprocess.run([sys.executable, "-c", program]).returncode == 0
threads = [threading.Thread(target=in_thread) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
