"""The analysis of `laggard report` as a typical Python script.

usage: baseline.py TRACE.json[.gz] [--gc-off]

Parses the trace with orjson, attributes every kernel to its operator and phase, and sums kernel time by class of
operation. Prints one JSON object: counts, kernel microseconds, seconds per step, peak memory.
"""

import argparse
import bisect
import gc
import gzip
import json
import resource
import time
from pathlib import Path

import orjson

# A kernel belongs to the first class with a word that occurs in its lower-case name.
CLASSES = {
    "Attention": ("attention", "fmha", "flash_fwd", "flash_bwd", "attn_fwd"),
    "KV cache": ("reshape_and_cache",),
    "MoE": ("_matmul_ogs_", "topk", "routing", "moe"),
    "Norm": ("rsqrt", "layer_norm", "layernorm", "rmsnorm"),
    "GEMM": ("cijk_", "gemm", "nvjet_", "cublaslt", "wvsplitk", "cutlass"),
    "Communication": ("nccl", "rccl", "allreduce", "all_reduce"),
    "Triton fused": ("triton_poi", "triton_red", "triton_per"),
    "Elementwise": ("at::native::",),
    "Sort": ("sort", "merge"),
    "Reduce": ("reduce", "devicescan"),
    "Copy": ("copy", "memcpy"),
}


class Stopwatch:
    """Seconds and CPU seconds between laps, by name."""

    def __init__(self):
        self.laps = {}
        self.last = time.perf_counter(), time.process_time()

    def lap(self, name):
        now = time.perf_counter(), time.process_time()
        wall, cpu = (round(b - a, 4) for a, b in zip(self.last, now))
        self.laps[name] = {"s": wall, "cpu_s": cpu}
        self.last = now

    def total(self, key):
        return round(sum(lap[key] for lap in self.laps.values()), 4)


def read(path):
    content = Path(path).read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def class_of(name):
    name = name.lower()
    return next((c for c, words in CLASSES.items() if any(w in name for w in words)), "Other")


def sift(events):
    """Kernels, operators by external id, launch times by correlation, sorted annotations."""
    kernels, operators, launches, phases = [], {}, {}, []
    for event in events:
        category = event.get("cat")
        if category in ("kernel", "Kernel"):
            kernels.append(event)
        elif category in ("cpu_op", "Operator"):
            operators[(event.get("args") or {}).get("External id")] = event["name"]
        elif category in ("cuda_runtime", "cuda_driver", "Runtime"):
            launches[(event.get("args") or {}).get("correlation")] = event["ts"]
        elif category == "user_annotation":
            phases.append((event["ts"], event["ts"] + event.get("dur", 0), event["name"]))
    phases.sort()
    return kernels, operators, launches, phases


def attribute(kernels, operators, launches, phases):
    """One row per kernel: class, name, duration, operator, phase at launch."""
    starts = [start for start, _, _ in phases]
    classes, rows = {}, []
    for kernel in kernels:
        name = kernel["name"]
        if name not in classes:
            classes[name] = class_of(name)
        args = kernel.get("args") or {}
        launched = launches.get(args.get("correlation"), kernel["ts"])
        nth = bisect.bisect_right(starts, launched) - 1
        phase = phases[nth][2] if nth >= 0 and launched <= phases[nth][1] else ""
        rows.append((classes[name], name, kernel.get("dur", 0), operators.get(args.get("External id")), phase))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--gc-off", action="store_true", help="disable the garbage collector")
    options = parser.parse_args()
    if options.gc_off:
        gc.disable()
    watch = Stopwatch()
    content = read(options.trace)
    size = len(content)
    watch.lap("read")
    events = orjson.loads(content)["traceEvents"]
    del content
    watch.lap("parse")
    sifted = sift(events)
    watch.lap("sift")
    rows = attribute(*sifted)
    watch.lap("attribute")
    by_class = {}
    for operation, _, duration, _, _ in rows:
        by_class[operation] = by_class.get(operation, 0.0) + duration
    watch.lap("group")
    ranking = sorted(by_class.items(), key=lambda item: -item[1])
    print(json.dumps({
        "bytes": size,
        "events": len(events),
        "kernels": len(rows),
        "kernel_us": round(sum(by_class.values()), 3),
        "by_op_us": {operation: round(micros, 3) for operation, micros in ranking},
        "steps": watch.laps,
        "total_s": watch.total("s"),
        "total_cpu_s": watch.total("cpu_s"),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }))


if __name__ == "__main__":
    main()
