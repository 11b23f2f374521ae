"""raptors, the array library of the benchmarks, returns the same results as NumPy and rejects unsupported input."""

import array
import itertools
import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest

np = pytest.importorskip("numpy")
raptors = pytest.importorskip("raptors")

DTYPES = ["float32", "float64", "int32"]
SHAPES = [(0,), (1,), (7,), (4096,), (0, 0), (0, 3), (3, 0), (1, 1), (1, 9), (9, 1), (3, 5), (64, 64), (33, 130)]
SHAPES += [(2000, 3), (3, 20000), (512, 512)]
LAYOUTS = ["contiguous", "transpose", "fortran", "row gaps", "all gaps", "backwards", "offset"]


def numbers(shape, dtype, seed=1):
    made = np.random.default_rng(seed).uniform(-100, 100, shape)
    return made.astype(dtype)


def laid_out(shape, dtype, layout):
    """An array of this shape with the given memory layout."""
    if layout == "contiguous":
        return numbers(shape, dtype)
    if layout == "transpose":
        return numbers(shape[::-1], dtype).T
    if layout == "fortran":
        return np.asfortranarray(numbers(shape, dtype))
    if layout == "row gaps":
        return numbers((*shape[:-1], shape[-1] + 3), dtype)[..., : shape[-1]]
    if layout == "all gaps":
        return numbers(tuple(2 * size for size in shape), dtype)[(slice(None, None, 2),) * len(shape)]
    if layout == "backwards":
        return numbers(shape, dtype)[(slice(None, None, -1),) * len(shape)]
    return numbers(np.prod(shape, dtype=int) + 1, dtype)[1:].reshape(shape)


def close(got, expected, dtype):
    """Asserts that values are equal except for rounding. The absolute tolerance allows for cancellation."""
    expected = np.asarray(expected)
    got = np.asarray(got)
    assert got.shape == expected.shape
    tolerance = {"float32": 2e-6, "float64": 1e-13, "int32": 1e-13}[dtype]
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=100 * tolerance)


def same(got, expected):
    """Asserts that arrays have the same type and exactly the same elements."""
    taken = np.asarray(got)
    assert taken.dtype == expected.dtype and got.dtype == str(expected.dtype)
    np.testing.assert_array_equal(taken, expected)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value encountered")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_operations_match_numpy(shape, dtype, layout):
    a = laid_out(shape, dtype, layout)
    r = raptors.array(a)
    wide = a.astype(np.float64 if dtype != "int32" else np.int64)
    assert r.shape == a.shape and r.dtype == dtype and r.ndim == a.ndim and r.size == a.size
    same(r, a)
    same(r.T, a.T)
    assert r.tolist() == a.tolist()

    count = max(1, a.size)
    close(r.sum() / count, wide.sum() / count, dtype)
    close(r.mean(), wide.mean(), dtype)
    factor = 3 if dtype == "int32" else 1.0009765625
    same(r.scale(factor), a * np.asarray(factor, dtype))
    same(r * factor, a * np.asarray(factor, dtype))
    same(r.broadcast_add(r.T.T), a + a)
    other = numbers(shape, dtype, seed=2)
    same(r + raptors.array(other), a + other)
    row = laid_out(shape[-1:], dtype, "all gaps")
    same(r.broadcast_add(raptors.array(row)), a + row)
    same(raptors.broadcast_add(row, a), row + a)
    if a.ndim == 2:
        column = numbers((shape[0], 1), dtype)
        same(r + raptors.array(column), a + column)
        same(raptors.array(row.reshape(1, -1)) + raptors.array(column), row + column)
        close(r.mean_axis0(), wide.mean(axis=0), dtype)
        close(r.mean_axis1(), wide.mean(axis=1), dtype)
        close(r.mean(axis=-1), wide.mean(axis=1), dtype)
        assert r.mean_axis0().dtype == str(a.mean(axis=0).dtype)
        if dtype != "int32":
            close(np.asarray(r.sum(axis=0)) / max(1, shape[0]), wide.sum(axis=0) / max(1, shape[0]), dtype)
            close(np.asarray(r.sum(axis=1)) / max(1, shape[1]), wide.sum(axis=1) / max(1, shape[1]), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_keep_the_memory_order_of_their_operand(dtype):
    a = raptors.array(numbers((3, 5), dtype))
    assert a.scale(2).strides == a.strides
    assert a.T.scale(2).strides == a.T.strides
    assert (a.T + a.T).strides == a.T.strides


def test_arrays_share_memory_with_numpy():
    a = numbers((4, 6), "float32")
    r = raptors.array(a)
    a[1, 2] = 1000
    assert r[1, 2] == 1000 and r.T[2, 1] == 1000
    assert np.shares_memory(r.to_numpy(), a)
    assert np.shares_memory(raptors.array(r).to_numpy(), a)
    assert not np.shares_memory(raptors.array(a, copy=True).to_numpy(), a)
    assert not r.to_numpy().flags.writeable
    assert memoryview(r).tolist() == a.tolist()


def test_views_outlive_their_array():
    result = raptors.array(numbers((300, 300), "float64")).scale(2.0)
    lent = result.to_numpy()
    view = result.T[1:5]
    del result
    for _ in range(20):
        raptors.array(numbers((300, 300), "float64", seed=3)).scale(0.0)
    same(view, lent.T[1:5])
    assert lent.any()


def test_arrays_are_created_from_lists_and_buffers():
    assert raptors.array([[1, 2], [3, 4]]).dtype == "int32"
    assert raptors.array([1, 2.5]).tolist() == [1.0, 2.5]
    assert raptors.array([[1, 2]], dtype="float32").dtype == "float32"
    assert raptors.array([]).shape == (0,)
    assert raptors.array(array.array("d", [1, 2, 3])).sum() == 6
    assert raptors.array(numbers((3, 3), "float64"), dtype=np.float32).dtype == "float32"
    packed = np.zeros(5, np.dtype([("tag", "u1"), ("value", "f8")]))
    packed["value"] = range(5)
    assert raptors.array(packed["value"]).sum() == 10, "unaligned elements are copied"
    assert np.array(raptors.array([1, 2]), dtype="float32").tolist() == [1, 2]
    assert raptors.array([1.0, 2.0]).__array__(np.float32).dtype == np.float32


INDICES = [0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(3, 1, -1), slice(5, 2)]


@pytest.mark.parametrize("index", [*INDICES, *itertools.product(INDICES, INDICES)], ids=str)
def test_indexing_matches_numpy(index):
    a = numbers((4, 6), "int32")
    got, expected = raptors.array(a)[index], a[index]
    if np.ndim(expected):
        same(got, expected)
        assert got.sum() == expected.sum()
    else:
        assert got == expected


def test_int32_arithmetic_wraps_but_sums_do_not():
    a = np.full((100, 100), 2**31 - 1, np.int32)
    r = raptors.array(a)
    assert r.sum() == a.sum() == (2**31 - 1) * 10000
    same(r + r, a + a)
    same(r.scale(5), a * np.int32(5))


def test_float32_sums_are_accurate():
    a = np.full((2048, 2048), 0.1, np.float32)
    r = raptors.array(a)
    assert r.mean() == pytest.approx(float(np.float32(0.1)), rel=5e-6)
    assert r.mean_axis0()[7] == pytest.approx(float(np.float32(0.1)), rel=5e-6)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda r: r.scale("x"), TypeError, "real number"),
        (lambda r: raptors.array([1, 2]).scale(1.5), TypeError, "integer"),
        (lambda r: raptors.array([1, 2]).scale(2**40), OverflowError, ""),
        (lambda r: r + raptors.array([1, 2]), TypeError, "float32 and int32 cannot be added"),
        (lambda r: r + np.ones(3, np.float32), ValueError, "shapes [3, 4] and [3] do not fit together"),
        (lambda r: r + 1.0, TypeError, ""),
        (lambda r: r.sum(axis=2), ValueError, "axis 2 is out of bounds for 2 dimensions"),
        (lambda r: r.mean(axis=-3), ValueError, "axis -3"),
        (lambda r: r[0].mean_axis1(), ValueError, "axis 1 is out of bounds for 1 dimensions"),
        (lambda r: raptors.array([[1, 2]]).sum(axis=0), TypeError, "int64"),
        (lambda r: raptors.array(np.ones(3, np.int64)), TypeError, "format 'l'"),
        (lambda r: raptors.array(np.ones(3, ">f4")), TypeError, "format '>f'"),
        (lambda r: raptors.array(np.ones((2, 2, 2))), ValueError, "3 dimensions"),
        (lambda r: raptors.array(np.float32(1)), BufferError, ""),
        (lambda r: raptors.array(3), TypeError, "expected numbers in lists"),
        (lambda r: raptors.array([[1], [2, 3]]), ValueError, "different lengths"),
        (lambda r: raptors.array([1, [2]]), ValueError, "different lengths"),
        (lambda r: raptors.array(["a"]), TypeError, ""),
        (lambda r: raptors.array([2**31]), OverflowError, "no int32"),
        (lambda r: raptors.array([1], dtype="int8"), TypeError, "expected float32, float64 or int32"),
        (lambda r: r[3], IndexError, "index 3 is out of bounds for size 3"),
        (lambda r: r[0, 0, 0], IndexError, "too many indices"),
        (lambda r: r["a"], TypeError, "an index is"),
    ],
)
def test_invalid_calls_raise(call, error, message):
    with pytest.raises(error) as raised:
        call(raptors.array(numbers((3, 4), "float32")))
    assert message in str(raised.value)


SCENARIO = """
    import json, numpy as np, raptors
    results = {}
    for dtype in ("float32", "float64", "int32"):
        for shape in ((700, 811), (37, 41), (3000, 5)):
            a = np.random.default_rng(1).uniform(-100, 100, shape).astype(dtype)
            for name, a in (("c", a), ("t", a.T), ("g", a[::2, ::3])):
                r, row = raptors.array(a), a[0]
                wide = a.astype("float64")
                assert np.array_equal(r.scale(2), a * np.asarray(2, dtype)), (dtype, shape, name)
                assert np.array_equal(r + row, a + row), (dtype, shape, name)
                assert np.array_equal(r + r, a + a), (dtype, shape, name)
                close = dict(rtol=1e-5, atol=1e-4)
                assert np.allclose(r.sum() / a.size, wide.mean(), **close), (dtype, shape, name)
                assert np.allclose(r.mean_axis0(), wide.mean(axis=0), **close), (dtype, shape, name)
                assert np.allclose(r.mean_axis1(), wide.mean(axis=1), **close), (dtype, shape, name)
    print(json.dumps(raptors.backend()))
"""


def run_in_process(script, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAPTORS_")}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment | settings,
        capture_output=True,
        text=True,
    )


def blas_of_numpy():
    """The OpenBLAS library in the NumPy wheel, or None."""
    beside = os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs")
    names = os.listdir(beside) if os.path.isdir(beside) else []
    return next((os.path.join(beside, name) for name in names if "openblas" in name), None)


@pytest.mark.parametrize("simd", ["scalar", "0", "sse2", "avx2", "avx512", "auto"])
@pytest.mark.parametrize("more", [{}, {"RAPTORS_THREADS": "3"}, {"RAPTORS_CACHE_MB": "0"}, "blas"], ids=str)
def test_all_backends_return_the_same_results(simd, more):
    if more == "blas":
        if not (path := blas_of_numpy()):
            pytest.skip("NumPy was installed without OpenBLAS")
        more = {"RAPTORS_BLAS": path, "OPENBLAS_NUM_THREADS": "1"}
    done = run_in_process(SCENARIO, RAPTORS_SIMD=simd, **more)
    if "this processor has none" in done.stderr:
        pytest.skip(f"this CPU does not support {simd}")
    assert done.returncode == 0, done.stderr
    backend = json.loads(done.stdout)
    assert backend["simd"] == {"0": "scalar", "auto": backend["simd"]}.get(simd, simd)
    assert backend["threads"] == int(more.get("RAPTORS_THREADS", 1))
    assert backend["blas"] == more.get("RAPTORS_BLAS")


@pytest.mark.parametrize(
    "name, value",
    [("RAPTORS_SIMD", "mmx"), ("RAPTORS_THREADS", "0"), ("RAPTORS_BLAS", "/nowhere.so"), ("RAPTORS_CACHE_MB", "much")],
)
def test_invalid_settings_fail_at_import(name, value):
    done = run_in_process("import raptors", **{name: value})
    assert done.returncode == 1
    assert f"ImportError: {name}={value}: " in done.stderr


def test_arrays_can_be_used_by_several_threads():
    a = numbers((1000, 1000), "float32")
    r = raptors.array(a)
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(r.scale(2.0), a * np.float32(2)):
                wrong.append("scale")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is not available")
def test_threads_work_after_a_fork():
    script = """
        import os, numpy as np, raptors
        a = np.ones((2000, 2000))
        r = raptors.array(a)
        assert r.sum() == 4e6
        child = os.fork()
        assert r.sum() == 4e6
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """
    done = run_in_process(script, RAPTORS_THREADS="3")
    assert done.returncode == 0, done.stderr
