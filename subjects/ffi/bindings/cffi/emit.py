"""Write the C source of _bench_cffi_api, the module that bench_cffi_api uses: emit.py cdef.h out.c"""

import sys
from pathlib import Path

from cffi import FFI

declarations, out = sys.argv[1:]
ffi = FFI()
ffi.cdef(Path(declarations).read_text())
ffi.set_source("_bench_cffi_api", '#include "benchlib.h"')
ffi.emit_c_code(out)
