"""Length of a track of points."""

import math

import numpy as np


def length_of_arrays(x, y):
    return float(np.hypot(np.diff(x), np.diff(y)).sum())


def length_of_lists(x, y):
    length = 0.0
    for i in range(1, len(x)):
        length += math.hypot(x[i] - x[i - 1], y[i] - y[i - 1])
    return length
