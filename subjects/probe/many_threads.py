"""Run the same work in many threads: python|dot THREADS TIMES OUTPUT.

Writes CPU and wall time of the part with threads, in seconds.
"""
import os
import sys
import threading
import time

workload, count, times, output = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

if workload == "python":

    def work():
        total = 0
        for i in range(times):
            total += i

else:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import numpy as np

    matrix = np.random.rand(64, 64).astype(np.float32)

    def work():
        for _ in range(times):
            np.dot(matrix, matrix)


go = threading.Event()


def body():
    go.wait()
    work()


threads = [threading.Thread(target=body) for _ in range(count)]
for thread in threads:
    thread.start()
cpu, wall = time.process_time(), time.monotonic()
go.set()
for thread in threads:
    thread.join()
with open(output, "w") as out:
    print(time.process_time() - cpu, time.monotonic() - wall, file=out)
