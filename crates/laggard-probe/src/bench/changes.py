"""Detects statements that change their own input, so that later calls do other work than the first.

A statement may also write to a variable that is only its output. Therefore, an in-place change is
reported only if it makes calls faster or slower: calls are timed with the changed and with the
restored content.
"""


class _LaggardChanges:
    """Changes of a statement's variables by its first call."""

    # Only this many elements of a container are compared, evenly spaced.
    ELEMENTS = 1000
    LARGEST = 64 << 20
    DEPTH = 3
    # Minimum ratio of the times with and without a change.
    MATTERS = 1.3
    # For caches, the first call is compared, which is slower for other reasons too.
    CACHE_MATTERS, CACHE_NS = 1.5, 100000
    # Shorter differences are noise.
    LEAST_NS = 1000
    # Calls with the original content are repeated for about this time, and this often.
    REPEAT_NS = 20000000
    REPEATS = (1, 50)

    def __init__(self, variables):
        self.before = {}
        for name, value in variables.items():
            if not name.startswith("_"):
                self.before[name] = (self.size(value), self.fingerprint(value), self.copy(value))

    def found(self, variables, run, first_ns):
        """Changes as tuples: kind, name, type, ratio of times.

        `variables` returns the current variables, `run` runs a call and returns its time, and
        `first_ns` is the time of the first call.
        """
        after = variables()
        changed = [
            name
            for name, (_, fingerprint, _) in self.before.items()
            if name in after and self.fingerprint(after[name]) != fingerprint
        ]
        if not changed:
            return []
        first_sizes = dict((name, self.size(after[name])) for name in changed)
        after = None
        second_ns = run()
        found, after = [], variables()
        for name in changed:
            size, _, copy = self.before[name]
            value = after.get(name)
            kind = type(value).__name__
            sizes = [size, first_sizes[name], self.size(value)]
            if hasattr(value, "__next__") and not hasattr(value, "readline"):
                found.append(("consumed", name, kind, 1.0))
            elif sizes[0] != sizes[1] != sizes[2]:
                found.append(("resized", name, kind, 1.0))
            elif copy is not None:
                ratio = self.ratio(name, copy, variables, run, second_ns)
                if not 1 / self.MATTERS < ratio < self.MATTERS:
                    found.append(("changed", name, kind, ratio))
            elif hasattr(value, "__dict__"):
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

    def size(self, value):
        try:
            return len(value)
        except Exception:
            return None

    def fingerprint(self, value, depth=0):
        """A value that differs if the content does, or `None` if it is unknown."""
        import itertools
        import zlib

        def of_elements(elements):
            return [self.fingerprint(element, depth + 1) for element in elements]

        try:
            if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
                return hash(value)
            if depth > self.DEPTH:
                return None
            if isinstance(value, (list, tuple)):
                step = max(1, len(value) // self.ELEMENTS)
                return (len(value), of_elements(value[::step]))
            if isinstance(value, dict):
                some = list(itertools.islice(value.items(), self.ELEMENTS))
                return (len(value), of_elements(some))
            if isinstance(value, (set, frozenset)):
                some = itertools.islice(value, self.ELEMENTS)
                return (len(value), sum(hash(element) for element in some))
            if hasattr(value, "gi_frame"):
                return value.gi_frame is None or value.gi_frame.f_lasti
            if hasattr(value, "readline"):
                return value.tell()
            if hasattr(value, "__length_hint__"):
                return value.__length_hint__()
            if hasattr(value, "__next__"):
                return repr(value.__reduce__())
            buffer = self.bytes(value)
            if buffer is not None:
                return zlib.crc32(buffer)
            if type(value).__module__ == "collections" and type(value).__name__ == "deque":
                return self.fingerprint(list(value), depth)
            if isinstance(value, type) or callable(value):
                return None
            return self.fingerprint(vars(value), depth)
        except Exception:
            return None

    def bytes(self, value):
        """The memory of an array as a sequence of bytes."""
        try:
            view = memoryview(value)
        except (TypeError, ValueError, BufferError):
            return None
        if view.nbytes > self.LARGEST or not view.c_contiguous or not view.nbytes:
            return None
        return view.cast("B")

    def copy(self, value):
        """A copy of the elements of a mutable container, or the position in a file."""
        try:
            if hasattr(value, "readline"):
                return value.tell()
            if isinstance(value, (list, dict, set)) and 0 < len(value) << 3 <= self.LARGEST:
                return value.copy()
            buffer = self.bytes(value)
            if buffer is not None and not buffer.readonly:
                return bytes(buffer)
        except Exception:
            pass
        return None

    def restore(self, value, copy):
        try:
            if hasattr(value, "readline"):
                value.seek(copy)
            elif isinstance(value, list):
                value[:] = copy
            elif isinstance(value, (dict, set)):
                value.clear()
                value.update(copy)
            else:
                self.bytes(value)[:] = copy
            return True
        except Exception:
            return False


