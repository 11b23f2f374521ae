"""The worker of a benchmark: runs statements on request and responds with measurements.

Started with -c and the file descriptor of a socket; or stand-alone ("alone"), with the duration
and the statement as arguments. Runs on Python 3.6 and later. Standard input and output belong to
the statement. Every message is a length (8 bytes) followed by that many bytes; numbers are
little-endian. The driver is src/bench/worker.rs.
"""


def _laggard_work():
    import ast
    import builtins
    import faulthandler
    import fcntl
    import gc
    import itertools
    import os
    import resource
    import struct
    import sys
    import time
    import traceback

    # Bound here, so that a statement that patches a module does not affect the measurement.
    read, write = os.read, os.write
    clock = getattr(time, "perf_counter_ns", None) or (lambda: int(time.perf_counter() * 1e9))
    getrusage, itself, children = (
        resource.getrusage,
        resource.RUSAGE_SELF,
        resource.RUSAGE_CHILDREN,
    )
    pack, unpack = struct.pack, struct.unpack
    repeat, collecting, collect, dont_collect = itertools.repeat, gc.isenabled, gc.enable, gc.disable
    modules, print_exception = sys.modules, traceback.format_exception
    words = sys.argv[1:]
    sys.argv[1:] = []
    is_alone = words[0] == "alone"
    if not is_alone:
        # Moved to a high number, because a statement may close descriptors that it does not own.
        socket = fcntl.fcntl(int(words[0]), fcntl.F_DUPFD, 200)
        os.close(int(words[0]))
        os.set_inheritable(socket, False)
    try:
        faulthandler.enable(2)
    except Exception:
        pass

    def receive(length):
        parts = []
        while length:
            part = read(socket, min(length, 1 << 20))
            if not part:
                # The driver has ended.
                os._exit(0)
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def message():
        return receive(unpack("<Q", receive(8))[0])

    def send(*pieces):
        for piece in (pack("<Q", sum(map(len, pieces))),) + pieces:
            at = 0
            while at < len(piece):
                try:
                    at += write(socket, piece[at : at + (1 << 20)])
                except OSError as error:
                    write(2, b"lost the connection to laggard: %s\n" % str(error).encode())
                    os._exit(1)

    def text(words):
        data = str(words).encode("utf-8", "backslashreplace")
        return pack("<Q", len(data)) + data

    def taker(data):
        at = [0]

        def take():
            (length,) = unpack("<Q", data[at[0] : at[0] + 8])
            at[0] += 8 + length
            return data[at[0] - length : at[0]].decode()

        return take

    # Descriptions of results, which the driver compares.

    LARGEST = 64 << 20
    KINDS = {"?": "b", "e": "f", "f": "f", "d": "f", "Zf": "c", "Zd": "c"}
    KINDS.update(dict.fromkeys("bhilqn", "i"))
    KINDS.update(dict.fromkeys("BHILQN", "u"))

    class Incomparable(Exception):
        pass

    def describe(value):
        pieces, size = [], [0]

        def put(piece):
            size[0] += len(piece)
            if size[0] > LARGEST:
                raise Incomparable("a value larger than 64 MiB")
            pieces.append(piece)

        def walk(value, depth):
            if depth > 40:
                raise Incomparable("a value that is nested too deeply")
            if value is None:
                put(b"N")
            elif isinstance(value, bool):
                put(b"b" + pack("<B", value))
            elif isinstance(value, int):
                # Not as text: Python limits the conversion of large integers to decimal.
                sign = b"-" if value < 0 else b"+"
                size_of = (abs(value).bit_length() + 7) // 8
                put(b"i" + sign + pack("<Q", size_of) + abs(value).to_bytes(size_of, "little"))
            elif isinstance(value, float):
                put(b"f" + pack("<d", value))
            elif isinstance(value, complex):
                put(b"c" + pack("<dd", value.real, value.imag))
            elif isinstance(value, str):
                put(b"s" + text(value))
            elif isinstance(value, (bytes, bytearray)):
                put(b"y" + pack("<Q", len(value)))
                put(bytes(value))
            elif isinstance(value, (list, tuple)):
                put(b"l" + pack("<Q", len(value)))
                for item in value:
                    walk(item, depth + 1)
            elif isinstance(value, dict):
                put(b"d" + pack("<Q", len(value)))
                for key, item in sorted(value.items(), key=lambda item: repr(item[0])):
                    walk(key, depth + 1)
                    walk(item, depth + 1)
            elif isinstance(value, (set, frozenset)):
                # Sets are unordered.
                put(b"l" + pack("<Q", len(value)))
                try:
                    items = sorted(value)
                except TypeError:
                    items = sorted(value, key=repr)
                for item in items:
                    walk(item, depth + 1)
            else:
                array(value)

        def array(value):
            name = "%s.%s" % (type(value).__module__, type(value).__qualname__)
            try:
                try:
                    view = memoryview(value)
                except (TypeError, ValueError, BufferError):
                    view = memoryview(value.__array__())
            except Exception:
                raise Incomparable("a value of type " + name.replace("builtins.", ""))
            kind = KINDS.get(view.format.lstrip("@=<"))
            if kind is None or view.ndim is None:
                raise Incomparable("a %s with elements of format %r" % (name, view.format))
            if view.nbytes > LARGEST:
                raise Incomparable("a value larger than 64 MiB")
            put(b"a" + kind.encode() + pack("<BQ", view.itemsize, view.ndim))
            put(b"".join(pack("<Q", length) for length in view.shape))
            put(pack("<Q", view.nbytes))
            if view.c_contiguous and view.nbytes:
                # Without a copy, so that peak memory stays that of the statement.
                put(view.cast("B"))
            else:
                put(view.tobytes())

        try:
            walk(value, 0)
        except Incomparable as why:
            return [b"x" + text(why)]
        return pieces

    # The statement, its set-up code and its preparation become one generator. As with timeit,
    # variables of the set-up code are local variables; they persist between batches. `None` runs
    # the statement once and returns its value, `True` runs the preparation.

    FRAME = """
def statement(_laggard_clock):
    SETUP
    _laggard_calls = yield
    while True:
        if _laggard_calls is True:
            PREPARATION
            _laggard_calls = yield
            continue
        if _laggard_calls is None:
            _laggard_value = _laggard_nothing
            ONCE
            _laggard_calls = yield _laggard_value
            _laggard_value = None
            continue
        _laggard_start = _laggard_clock()
        for _laggard_call in _laggard_calls:
            STATEMENT
        _laggard_calls = yield _laggard_clock() - _laggard_start
"""
    nothing = object()
    # Added to the line numbers of the preparation, so that the driver can drop its samples.
    PREPARATION_LINES = 20000

    def assign(node, value):
        target = ast.Name(id="_laggard_value", ctx=ast.Store())
        return ast.copy_location(ast.Assign(targets=[target], value=value), node)

    def once(body):
        """The statement, with the value of its last expression or assignment stored."""
        last = body[-1] if body else None
        if isinstance(last, ast.Expr):
            return body[:-1] + [assign(last, last.value)]
        if isinstance(last, ast.Assign) and len(last.targets) == 1:
            target = last.targets[0]
            if isinstance(target, ast.Name):
                return body + [assign(last, ast.Name(id=target.id, ctx=ast.Load()))]
        return body

    def build(setup, preparation, statement, check):
        value = once((check or statement).body)
        parts = {
            "SETUP": setup,
            "PREPARATION": preparation.body,
            "STATEMENT": statement.body,
            "ONCE": value,
        }

        class Fill(ast.NodeTransformer):
            def visit_Expr(self, node):
                if isinstance(node.value, ast.Name) and node.value.id in parts:
                    return parts[node.value.id] or [ast.copy_location(ast.Pass(), node)]
                return self.generic_visit(node)

        tree = Fill().visit(ast.parse(FRAME))
        return compile(ast.fix_missing_locations(tree), "<statement>", "exec")

    def parsed(source, name):
        # Compiled separately first: this detects `return` and `break` outside of functions and
        # loops, and error messages then refer to the user's lines.
        compile(source, name, "exec", dont_inherit=True)
        return ast.parse(source, name)

    before = set(modules)

    class Statement:
        """A statement with its variables."""

        def __init__(self, inner, is_prepared, variables):
            self.inner, self.is_prepared, self.module = inner, is_prepared, variables
            self.changes, self.first_ns = None, 0

        def variables(self):
            """The variables of the set-up code, which are local unless it needs a module."""
            local = self.inner.gi_frame.f_locals
            known = dict(self.module)
            known.update(local)
            if type(local) is dict:
                # Before Python 3.13, the frame would keep references to all values, which makes
                # operations slower that work in place if there is only one.
                local.clear()
            return known

        def prepare(self):
            """Runs the preparation, which precedes every call."""
            if self.is_prepared:
                try:
                    self.inner.send(True)
                except Exception as error:
                    raise FailedPreparation(error)

        def run(self, calls):
            """Runs some calls and returns their time, without that of the preparation."""
            if not self.is_prepared:
                return self.inner.send(repeat(None, calls))
            time = 0
            for _ in range(calls):
                self.prepare()
                time += self.inner.send(repeat(None, 1))
            return time

    class FailedPreparation(Exception):
        pass

    def set_up(take):
        statement, setup, preparation = take(), take(), take()
        keep_gc, check = take() == "1", take()
        names = {"__name__": "__main__", "__builtins__": builtins, "_laggard_nothing": nothing}
        for _ in range(int(take())):
            name, value = take(), take()
            try:
                names[name] = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                names[name] = value
        body, tree = parsed(setup, "<setup>").body, parsed(statement, "<statement>")
        is_prepared = bool(preparation)
        preparation = parsed(preparation, "<preparation>")
        ast.increment_lineno(preparation, PREPARATION_LINES)
        # Expression that is compared with other sides instead of the value of the statement.
        check = parsed(check, "<check>") if check else None
        parameters = [
            ast.parse("%s = globals()[%r]" % (name, name)).body[0]
            for name in names
            if not name.startswith("_")
        ]
        try:
            code = build(parameters + body, preparation, tree, check)
        except SyntaxError:
            # Set-up code that is only valid in a module, such as `from math import *`.
            exec(compile(setup, "<setup>", "exec", dont_inherit=True), names)
            code = build([], preparation, tree, check)
        exec(code, names)
        inner = names.pop("statement")(clock)
        next(inner)
        return Statement(inner, is_prepared, names), keep_gc

    def failed(error):
        is_preparation = isinstance(error, FailedPreparation)
        if is_preparation:
            error = error.args[0]
        lines = print_exception(type(error), error, error.__traceback__)
        last = "".join(lines[-1:]).strip().splitlines()
        kind = b"S" if isinstance(error, SyntaxError) else b"p" if is_preparation else b"E"
        if kind == b"S" and error.text:
            where = ", in %r" % error.text.strip()
        else:
            where = ""
        send(kind + text((last[-1] if last else "") + where) + text(without_us(lines)))

    def without_us(lines):
        """The traceback without the worker's own frames."""
        return "".join(line for line in lines if 'File "<string>"' not in line)

    def is_foreign(name, module):
        """Whether a module is not part of the standard library."""
        known = getattr(sys, "stdlib_module_names", None)
        if known is None:
            return "-packages" in (getattr(module, "__file__", None) or "")
        return name not in known

    def facts():
        found = [
            ("python", sys.executable or ""),
            ("version", sys.version.split()[0]),
            ("implementation", sys.implementation.name),
        ]
        for name in sorted(set(modules) - before):
            module = modules.get(name)
            version = "" if "." in name else getattr(module, "__version__", "")
            if isinstance(version, str) and version and is_foreign(name, module):
                found.append((name, version))
        return found[:15]

    def asking():
        """A function that sends requests to callgrind: instructions that have no effect on a real CPU."""
        import ctypes
        import mmap
        import platform

        if platform.machine() != "x86_64":
            raise RuntimeError("counting instructions is not supported on " + platform.machine())
        # rdi holds the request, which is copied to rax; then come four rotations of rdi and `xchg
        # rbx, rbx`; the response is in rdx.
        code = "4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3"
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes(bytearray.fromhex(code)))
        at = ctypes.addressof(ctypes.c_char.from_buffer(page))
        function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(at)
        requests = {}
        for number, name in enumerate(["dump", "zero", "toggle", "dump at", "start", "stop"]):
            requests[name] = (ctypes.c_uint64 * 6)(0x43540000 + number, 0, 0, 0, 0, 0)

        def ask(name):
            return function(ctypes.addressof(requests[name]))

        # Keeps the page alive as long as the function.
        ask.page = page
        return ask

    def count(statement, calls, lead):
        if not asked:
            asked.append(asking())
        ask = asked[0]
        # Garbage collection would be counted as part of the calls.
        was_collecting = collecting()
        dont_collect()
        ask("start")
        statement.run(lead)
        ask("zero")
        # Also cancels the preparation, which runs once in both parts.
        statement.prepare()
        statement.inner.send(repeat(None, 0))
        ask("dump")
        statement.run(calls)
        # Instrumentation stays on: stopping it would discard all translated code.
        ask("dump")
        if was_collecting:
            collect()

    def count_calls(statement, lead, most, limit):
        """Counts the calls of Python functions, and of C functions by Python code, in all threads.

        Returns the number of counted calls of the statement, the functions, and how often each
        function calls another one, after `lead` calls. A resumed generator is not called again. Stops counting after
        `limit` nanoseconds; without a complete call of the statement by then, the number is 0.
        """
        import dis
        import json
        import threading
        import zlib

        # Counters by id of caller and callee, because hashing code objects is slow.
        edges, c_functions, is_over = {}, {}, []
        builtin, descriptor = type(len), type(list.append)
        offset = object.__basicsize__
        try:
            from ctypes import c_void_p

            address_at = c_void_p.from_address
        except ImportError:
            address_at = None

        def add(caller, callee):
            key = (id(caller), id(callee))
            edge = edges.get(key)
            if edge is None:
                edge = edges.setdefault(key, (caller, callee, itertools.count()))
            # Atomic, unlike an addition.
            next(edge[2])
            if clock() > end:
                if not is_over:
                    is_over.append(True)
                stop()

        def add_c(caller, function):
            key = (function.__module__ if type(function) is builtin else None, function.__qualname__)
            known = c_functions.get(key)
            if known is None:
                known = c_functions.setdefault(key, key + (place(function),))
            add(caller, known)

        def place(function):
            """Address of the machine code: PyMethodDef.ml_meth."""
            if address_at is None or sys.implementation.name != "cpython":
                return 0
            fields = 0 if type(function) is builtin else 24
            method = address_at(id(function) + offset + fields).value
            return address_at(method + 8).value or 0 if method else 0

        resumes = {}

        def is_resumed(frame, code):
            # Only generators and coroutines can be resumed.
            if not code.co_flags & 0x2A0:
                return False
            if sys.version_info < (3, 11):
                return frame.f_lasti >= 0
            instructions = resumes.get(code)
            if instructions is None:
                instructions = resumes[code] = code.co_code
            # The argument of RESUME is 0 at the start of a function. An exception that is thrown into
            # a generator starts at another instruction.
            at = frame.f_lasti
            return instructions[at] != dis.opmap["RESUME"] or instructions[at + 1] & 3 != 0

        def profiled(frame, event, arg):
            if is_over:
                # Each thread has its own profile function.
                sys.setprofile(None)
            elif event == "call":
                code = frame.f_code
                if not is_resumed(frame, code):
                    back = frame.f_back
                    add(back and back.f_code, code)
            elif event == "c_call" and type(arg) in (builtin, descriptor):
                add_c(frame.f_code, arg)

        if hasattr(sys, "monitoring"):
            watch = sys.monitoring
            frame_at = sys._getframe
            tool = next(number for number in (4, 3, 1, 0, 2) if watch.get_tool(number) is None)
            watch.use_tool_id(tool, "laggard")

            def started(code, _):
                back = frame_at(1).f_back
                add(back and back.f_code, code)

            def called(code, _, function, __):
                if type(function) in (builtin, descriptor):
                    add_c(code, function)

            def start():
                watch.register_callback(tool, watch.events.PY_START, started)
                watch.register_callback(tool, watch.events.CALL, called)
                watch.set_events(tool, watch.events.PY_START | watch.events.CALL)

            def stop():
                watch.set_events(tool, 0)

            def finish():
                stop()
                watch.free_tool_id(tool)

        else:
            # Threads that run already cannot be counted.
            def start():
                threading.setprofile(profiled)
                sys.setprofile(profiled)

            def stop():
                sys.setprofile(None)
                threading.setprofile(None)

            finish = stop

        def count_of(counter):
            # `count(5)`; reading it otherwise would advance the counter.
            return int(repr(counter)[6:-1])

        inner = statement.inner
        statement.run(lead)
        was_collecting, calls, longest, complete = collecting(), 0, 0, []
        dont_collect()
        end = clock() + limit
        try:
            while calls < most and clock() + 2 * longest < end:
                began = clock()
                statement.prepare()
                start()
                inner.send(repeat(None, 1))
                if is_over:
                    # Counts of this call are incomplete.
                    break
                longest = max(longest, clock() - began)
                calls += 1
                stop()
                complete = [(caller, callee, count_of(n)) for caller, callee, n in list(edges.values())]
        finally:
            finish()
            if was_collecting:
                collect()
        def lines(code):
            found = [line for _, line in dis.findlinestarts(code) if line]
            for constant in code.co_consts:
                if type(constant) is type(code):
                    found.append(lines(constant))
            return max(found or [code.co_firstlineno])

        def fingerprint(code):
            parts = [code.co_code, repr(code.co_names).encode("utf-8", "replace")]
            for at, constant in enumerate(code.co_consts):
                if at == 0 and type(constant) is str:
                    # The docstring.
                    continue
                if type(constant) is type(code):
                    parts.append(b"%d" % fingerprint(constant))
                else:
                    parts.append(repr(constant).encode("utf-8", "replace"))
            return zlib.crc32(b"".join(parts))

        def forwards(code):
            """Whether a function wraps others: it takes any arguments, or wraps several functions."""
            if wrappers.get(id(code), 0) > 1:
                return True
            own = code.co_varnames[: code.co_argcount]
            passes_on = code.co_flags & 0xC == 0xC and all(name in ("self", "cls") for name in own)
            # A wrapper refers to the function that it wraps.
            return passes_on and bool(code.co_freevars)

        names, wrappers = {}, {}

        def add_name(code, name):
            if id(code) in names:
                return
            names[id(code)] = name
            for constant in code.co_consts:
                if type(constant) is type(code):
                    add_name(constant, "%s.<locals>.%s" % (name, constant.co_name))

        def wraps(function):
            for cell in function.__closure__ or ():
                try:
                    if type(cell.cell_contents) is type(add):
                        return True
                except ValueError:
                    # The cell is empty.
                    pass
            return False

        defined = set()
        for function in gc.get_objects():
            if type(function) is type(add):
                code = function.__code__
                defined.add((function.__qualname__, os.path.basename(code.co_filename)))
                if not hasattr(code, "co_qualname"):
                    # Before Python 3.11, only functions have qualified names.
                    add_name(code, function.__qualname__)
                if wraps(function):
                    wrappers[id(code)] = wrappers.get(id(code), 0) + 1

        def name_of(code):
            return names.get(id(code)) or getattr(code, "co_qualname", code.co_name)

        def describe_function(function):
            if type(function) is tuple:
                module, name, address = function
                return {"name": name, "module": module or "", "address": address}
            return {
                "name": name_of(function),
                "file": function.co_filename,
                "lines": [function.co_firstlineno, lines(function)],
                "forwards": forwards(function),
                "code": fingerprint(function),
            }

        numbers, functions, rows = {}, [], []

        def number(function):
            if id(function) not in numbers:
                numbers[id(function)] = len(functions)
                functions.append(describe_function(function))
            return numbers[id(function)]

        own = (count_calls, start, stop, finish, clock)
        of_harness = {getattr(function, "__code__", function) for function in own}
        clock_place = c_functions.get((clock.__module__, clock.__qualname__))
        for caller, callee, count in complete:
            if callee is clock_place and caller is inner.gi_code:
                # Two clock readings per call belong to the harness.
                count -= 2 * calls
            if count > 0 and caller not in of_harness and callee not in of_harness:
                rows.append([-1 if caller is None else number(caller), number(callee), count])
        python = getattr(sys.implementation, "cache_tag", None) or ""
        return json.dumps(
            {
                "calls": calls,
                "python": python,
                "functions": functions,
                "edges": rows,
                "defined": sorted(defined),
            }
        )

    def queued():
        """Time in which this thread waited for a CPU that others used; 0 if unknown."""
        try:
            descriptor = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
            try:
                return int(read(descriptor, 100).split()[1])
            finally:
                os.close(descriptor)
        except (OSError, ValueError, IndexError):
            return 0

    def usage():
        used, of_children = getrusage(itself), getrusage(children)
        return [used[at] + of_children[at] for at in (0, 1, 6, 7, 14, 15)] + [queued()]

    def alone(seconds, times, *rest):
        """Calls a statement for a given time or a given number of times, for a recorder."""
        try:
            statement, keep_gc = set_up(iter(rest).__next__)
            if not keep_gc:
                dont_collect()
            if times:
                statement.run(int(times))
                return
            end, calls = clock() + int(float(seconds) * 1e9), 1
            while clock() < end:
                if statement.run(calls) < 20000000 and not statement.is_prepared:
                    calls *= 2
        except Exception as error:
            if isinstance(error, FailedPreparation):
                error = error.args[0]
            lines = print_exception(type(error), error, error.__traceback__)
            sys.stderr.write(without_us(lines))
            sys.exit(1)

    if is_alone:
        return alone(*words[1:])
    # Requests refer to statements by their index, in the order of set-up.
    statements, keep_gc, asked = [], False, []
    send(b"H")
    while True:
        request = message()
        what = request[:1]
        try:
            if what == b"S":
                statement, keep_gc = set_up(taker(request[1:]))
                statements.append(statement)
                send(b"O")
            elif what == b"D":
                statement = None
                statements.clear()
                send(b"O")
            elif what == b"V":
                (number,) = unpack("<Q", request[1:])
                statement = statements[number]
                statement.prepare()
                began = clock()
                value = statement.inner.send(None)
                statement.first_ns = clock() - began
                if value is nothing:
                    pieces = [b"x" + text("no value")]
                else:
                    pieces = describe(value)
                send(b"V", *pieces)
                value = pieces = None
            elif what == b"W":
                (number,) = unpack("<Q", request[1:])
                statement = statements[number]
                statement.changes = _LaggardChanges(statement.variables())
                send(b"O")
            elif what == b"I":
                (number,) = unpack("<Q", request[1:])
                statement = statements[number]
                changes, statement.changes = statement.changes, None
                found = changes.found(
                    statement.variables,
                    lambda: statement.run(1),
                    statement.first_ns,
                )
                answer = b"".join(text(part) for change in found for part in change)
                # Copies are freed before the driver resets the peak of the memory use.
                changes = found = None
                send(b"I" + answer)
            elif what == b"C":
                number, calls, lead = unpack("<QQQ", request[1:])
                count(statements[number], calls, lead)
                send(b"O")
            elif what == b"P":
                number, lead, most, limit = unpack("<QQQQ", request[1:])
                send(b"P" + text(count_calls(statements[number], lead, most, limit)))
            elif what == b"F":
                send(b"F" + b"".join(text(name) + text(value) for name, value in facts()))
            else:
                number, calls, lead = unpack("<QQQ", request[1:])
                statement = statements[number]
                # As timeit does: a garbage collection within a batch is noise caused by other code.
                was_collecting = collecting()
                if not keep_gc:
                    dont_collect()
                if lead:
                    statement.run(lead)
                # Before every batch: a statement with a preparation has one call per batch.
                statement.prepare()
                inner = statement.inner
                start = usage()
                wall = inner.send(repeat(None, calls))
                end = usage()
                if was_collecting:
                    collect()
                if statement.changes:
                    statement.first_ns = wall
                used = [after - before_it for after, before_it in zip(end, start)]
                used[:2] = [int(seconds * 1e9 + 0.5) for seconds in used[:2]]
                send(b"B" + pack("<8Q", wall, *(max(0, int(number)) for number in used)))
        except BaseException as error:
            failed(error)


_laggard_work()
