"""Detects statements that change their own input, so that later calls do other work than the first.

A statement may also write to a variable that is only its output. Therefore, an in-place change is
reported only if it makes calls faster or slower: calls are timed with the changed and with the
restored content.

Variables are inspected without running their code: only objects of built-in types and buffers are read.
The content of a lazy object would otherwise be computed here, and the statement would find it cached.
"""


class _LaggardChanges:
    """Changes of a statement's variables by its first call."""

    # Of larger containers, only this many elements are compared, evenly spaced.
    ELEMENTS = 1000
    DEPTH = 3
    # Maximum number of elements that are compared, and of bytes that are compared or copied, over all
    # variables.
    MOST_ELEMENTS = 100000
    MOST_BYTES = 64 << 20
    # Minimum ratio of the times with and without a change.
    MATTERS = 1.3
    # For caches, the first call is compared, which is slower for other reasons too.
    CACHE_MATTERS, CACHE_NS = 1.5, 100000
    # Shorter differences are noise.
    LEAST_NS = 1000
    # Calls with the original content are repeated for about this time, and this often.
    REPEAT_NS = 20000000
    REPEATS = (1, 50)
    # Slower calls are not repeated to detect changes.
    SLOW_NS = 1000000000

    def __init__(self, variables):
        self.before = {}
        self.bytes_left = self.MOST_BYTES
        self.elements_left = self.MOST_ELEMENTS
        for name, value in variables.items():
            if not name.startswith("_"):
                self.before[name] = (self.size(value), self.fingerprint(value), self.copy(value))

    def found(self, variables, run, first_ns):
        """Changes as tuples: kind, name, type, ratio of times.

        `variables` returns the current variables, `run` runs a call and returns its time, and
        `first_ns` is the time of the first call.
        """
        # Elements are compared again, but copies are kept.
        self.bytes_left, self.elements_left = self.MOST_BYTES, self.MOST_ELEMENTS
        after = variables()
        changed = [
            name
            for name, (_, fingerprint, _) in self.before.items()
            if name in after and self.fingerprint(after[name]) != fingerprint
        ]
        first_sizes = dict((name, self.size(after[name])) for name in changed)
        # References to a variable make operations slower that work in place if there is only one.
        after = None
        if not changed or first_ns > self.SLOW_NS:
            return []
        second_ns = run()
        found, after = [], variables()
        described = []
        for name in changed:
            value = after.get(name)
            is_iterator = hasattr(type(value), "__next__") and not self.is_file(value)
            sizes = [self.before[name][0], first_sizes[name], self.size(value)]
            has_state = hasattr(type(value), "__dict__") and hasattr(value, "__dict__")
            described.append((name, type(value).__name__, is_iterator, sizes, has_state))
        after = value = None
        for name, kind, is_iterator, sizes, has_state in described:
            copy = self.before[name][2]
            if is_iterator:
                found.append(("consumed", name, kind, 1.0))
            elif sizes[0] != sizes[1] != sizes[2]:
                found.append(("resized", name, kind, 1.0))
            elif copy is not None:
                ratio = self.ratio(name, copy, variables, run, second_ns)
                if not 1 / self.MATTERS < ratio < self.MATTERS:
                    found.append(("changed", name, kind, ratio))
            elif has_state:
                is_slow = first_ns - second_ns >= self.CACHE_NS
                if is_slow and first_ns >= self.CACHE_MATTERS * second_ns:
                    found.append(("cache", name, kind, first_ns / float(max(second_ns, 1))))
        return found

    def ratio(self, name, copy, variables, run, known_ns):
        """Time of a call with the original content, relative to that with the changed content.

        Returns 1 if the content cannot be restored or the times hardly differ.
        """
        least, most = self.REPEATS
        original, changed = [], [known_ns]
        for _ in range(max(least, min(most, self.REPEAT_NS // max(known_ns, 1)))):
            if not self.restore(variables().get(name), copy):
                return 1.0
            original.append(run())
            changed.append(run())
        # The minimum, because disturbances only add time.
        original, changed = min(original), min(changed)
        if abs(original - changed) < self.LEAST_NS:
            return 1.0
        return original / float(max(changed, 1))

    def is_file(self, value):
        import io

        # All classes of the `io` module derive from it. A subclass may have code of its own.
        return isinstance(value, io.IOBase) and type(value).__module__ in ("_io", "io")

    def is_container(self, value):
        """Whether it is a container whose length is known without running other code."""
        from collections import deque

        return type(value) in (list, tuple, dict, set, frozenset, bytearray, bytes, str, deque)

    def size(self, value):
        return len(value) if self.is_container(value) else None

    def fingerprint(self, value, depth=0):
        """A value that differs if the content does, or `None` if it is unknown."""
        import itertools
        import zlib
        from collections import deque

        def of_elements(elements):
            return [self.fingerprint(element, depth + 1) for element in elements]

        self.elements_left -= 1
        kind = type(value)
        try:
            if self.elements_left < 0 or depth > self.DEPTH:
                return None
            if value is None or kind in (bool, int, float, complex, str, bytes):
                return hash(value)
            if kind in (list, tuple, deque):
                elements = list(value) if kind is deque else value
                step = max(1, len(elements) // self.ELEMENTS)
                return (len(elements), of_elements(elements[::step]))
            if kind is dict:
                return (len(value), of_elements(itertools.islice(value.items(), self.ELEMENTS)))
            if kind in (set, frozenset):
                some = itertools.islice(value, self.ELEMENTS)
                known = [hash(element) for element in some if type(element) in (int, float, str, bytes)]
                return (len(value), sum(known))
            if kind.__name__ == "generator" and kind.__module__ == "builtins":
                return value.gi_frame is None or value.gi_frame.f_lasti
            if self.is_file(value):
                return value.tell()
            if kind.__module__ in ("builtins", "itertools") and hasattr(kind, "__next__"):
                return self.position(value)
            buffer = self.buffer(value)
            if buffer is not None:
                return zlib.crc32(buffer)
            if isinstance(value, type) or callable(value) or kind.__name__ == "module":
                return None
            # Not `vars`, which may run code.
            return self.fingerprint(object.__getattribute__(value, "__dict__"), depth)
        except Exception:
            return None

    def position(self, iterator):
        """The position of an iterator of Python itself."""
        if hasattr(type(iterator), "__length_hint__"):
            return iterator.__length_hint__()
        if type(iterator).__name__ in ("count", "repeat"):
            return repr(iterator)
        return None

    def buffer(self, value):
        """The memory of an array as a sequence of bytes, if it is small enough."""
        try:
            view = memoryview(value)
        except (TypeError, ValueError, BufferError):
            return None
        if view.nbytes > self.bytes_left or not view.c_contiguous or not view.nbytes:
            return None
        self.bytes_left -= view.nbytes
        return view.cast("B")

    def copy(self, value):
        """A copy of the elements of a mutable container, or the position in a file."""
        import sys

        try:
            if self.is_file(value):
                return value.tell()
            if type(value) in (list, dict, set):
                size = sys.getsizeof(value)
                if len(value) and size <= self.bytes_left:
                    self.bytes_left -= size
                    return value.copy()
                return None
            buffer = self.buffer(value)
            if buffer is not None and not buffer.readonly:
                return bytes(buffer)
        except Exception:
            pass
        return None

    def restore(self, value, copy):
        try:
            if self.is_file(value):
                value.seek(copy)
            elif type(value) is list:
                value[:] = copy
            elif type(value) in (dict, set):
                value.clear()
                value.update(copy)
            else:
                memoryview(value).cast("B")[:] = copy
            return True
        except Exception:
            return False


