"""Run equal chunks of work with and without sampling: WORKLOAD PAIRS OUTPUT.

Writes CPU nanoseconds, one line per pair: with sampling, without, and without again.
"""
import ctypes
import sys
import time

toggle = ctypes.CDLL(None).laggard_toggle
workload, pairs, output = sys.argv[1], int(sys.argv[2]), sys.argv[3]

if workload == "fib":

    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def chunk():
        fib(23)
        fib(23)

else:
    import os

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy as np

    matrix, dot = np.random.rand(4, 4).astype(np.float32), np.dot

    def chunk():
        for _ in range(30_000):
            dot(matrix, matrix)


def once(on):
    toggle(on)
    start = time.process_time_ns()
    chunk()
    took = time.process_time_ns() - start
    toggle(0)
    return took


ORDERS = [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1)]
for _ in range(10):
    once(0)
with open(output, "w") as out:
    for pair in range(pairs):
        took = [0, 0, 0]
        for which in ORDERS[pair % len(ORDERS)]:
            took[which] = once(1 if which == 0 else 0)
        print(*took, file=out)
