"""Python called from C in many ways; every function that uses CPU time has known callers.

The caller of `burn` is always one of the functions named `leaf_*`. Each `leaf_*` is called only by
the function with the same name and the prefix `by_` (or by itself, if its docstring says so).
"""
import ctypes
import functools
import sys


def burn(n=2500):
    total = 0.0
    for i in range(n):
        total += i * 0.5
    return total


def leaf_sort(x):
    burn()
    return -x


def by_sort():
    sorted(range(80), key=leaf_sort)


def leaf_reduce(a, b):
    burn()
    return a + b


def by_reduce():
    functools.reduce(leaf_reduce, range(80))


def leaf_ctypes(a, b):
    burn()
    return a[0] - b[0]


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def by_ctypes():
    numbers = (ctypes.c_int * 30)(*range(30, 0, -1))
    ctypes.CDLL(None).qsort(numbers, 30, 4, COMPARE(leaf_ctypes))


def leaf_generator():
    for i in range(40):
        burn()
        yield i


def by_generator():
    sum(leaf_generator())


def leaf_raise(depth):
    """Calls itself."""
    if depth == 0:
        burn()
        raise ValueError
    leaf_raise(depth - 1)


def by_raise():
    for _ in range(40):
        try:
            leaf_raise(20)
        except ValueError:
            pass


class Finalised:
    def __del__(self):
        leaf_delete()


def leaf_delete():
    burn()


def by_delete():
    for _ in range(40):
        Finalised()


class Attributes:
    @property
    def leaf_property(self):
        return burn()


def by_property():
    thing = Attributes()
    for _ in range(40):
        thing.leaf_property


def leaf_deep(depth):
    """Calls itself."""
    return burn() if depth == 0 else leaf_deep(depth - 1)


def by_deep():
    for _ in range(100):
        leaf_deep(150)


async def leaf_async():
    burn()


async def by_async():
    import asyncio

    for _ in range(40):
        await leaf_async()
        await asyncio.sleep(0)


def by_exec():
    for i in range(150):
        names = {}
        exec(f"def leaf_exec(burn):\n    x = {i}\n    return burn(800)\n", names)
        names["leaf_exec"](burn)


def leaf_größe():
    burn()


def by_größe():
    for _ in range(40):
        leaf_größe()


if __name__ == "__main__":
    import asyncio

    for _ in range(int(sys.argv[1])):
        for function in (by_sort, by_reduce, by_ctypes, by_generator, by_raise, by_delete, by_property, by_deep, by_exec, by_größe):
            function()
        asyncio.run(by_async())
