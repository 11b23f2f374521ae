"""Work for one or two seconds: WORKLOAD OUTPUT. Writes its CPU and wall time in seconds."""
import sys
import time

start = time.monotonic()
if sys.argv[1] == "fib":

    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    for _ in range(400):
        fib(23)
else:
    import os

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy as np

    matrix, dot = np.random.rand(4, 4).astype(np.float32), np.dot
    for _ in range(1_500_000):
        dot(matrix, matrix)
with open(sys.argv[2], "w") as out:
    print(time.process_time(), time.monotonic() - start, file=out)
