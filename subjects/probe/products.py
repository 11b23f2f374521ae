"""Two matrix products on different lines that call different BLAS kernels."""
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np


def product_with_itself(matrix, times):
    dot = np.dot
    for _ in range(times):
        dot(matrix, matrix)  # gemm


def product_with_transpose(matrix, times):
    dot, other = np.dot, matrix.T
    for _ in range(times):
        dot(matrix, other)  # syrk


size, times = int(sys.argv[1]), int(sys.argv[2])
matrix = np.random.rand(size, size).astype(sys.argv[3] if len(sys.argv) > 3 else np.float32)
product_with_itself(matrix, times)
product_with_transpose(matrix, times)
