"""Writes sample pages, assembled like those of the report, for manual inspection.

    python sample.py DIRECTORY
"""

import base64
import gzip
import json
import random
import re
import sys
from html import escape
from pathlib import Path

WEB = Path(__file__).parent.parent
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<b onmouseover=alert(2)>bold</b>",
    "a\u202etxt.exe\u2066",
    "line\nbreak\tand \x1b[31mcolour",
    "核函数::запуск<é>",
    "long_" * 2000,
    "__proto__",
    "",
]
REPORT = """<h2>Time by kernel</h2>
<p class="lead">B takes 1.21× the time of A (+21.0 %).</p>
<p class="notice">12 samples have no stack.</p>
<dl class="facts"><dt>machine</dt><dd>16 cores, 64 GB</dd><dt>command</dt><dd>python train.py</dd></dl>
<section class="culprit"><header>97 % scalar-loop</header><div class="share"><i style="width:97%"></i></div>
<div class="at">distance, kernel.c:41</div><ul><li>packed instructions in A: 92 %</li><li>in B: 3 %</li></ul>
<div class="advice">→ build with -O3 -march=native</div></section>
<table class="rows"><thead><tr><th>kernel</th><th class="n">calls</th><th class="n">time, ms</th></tr></thead><tbody>
<tr><td>gemm</td><td class="n" data-v="12">12</td><td class="n" data-v="34.5">34.5</td></tr>
<tr><td>softmax</td><td class="n" data-v="1200">1,200</td><td class="n" data-v="3.21">3.21</td></tr>
<tr><td>copy</td><td class="n" data-v="7">7</td><td class="n">-</td></tr></tbody></table>
<table class="code"><thead><tr><th class="n">self %</th><th>address</th><th>instruction</th><th>source</th></tr></thead><tbody>
<tr><td class="n">0.3</td><td>1139</td><td>movss xmm0, [rdi+rax*4]</td><td>kernel.c:41</td></tr>
<tr class="hot"><td class="n">61.2</td><td>113e</td><td>mulss xmm0, xmm0</td><td>kernel.c:42</td></tr></tbody></table>
<pre class="verbatim">$ python train.py</pre><ol class="stack"><li>main</li><li>distance</li></ol>
"""


def shipped(path):
    """A file without comments, types and indentation."""
    lines = (line.strip() for line in path.read_text().splitlines())
    code = (line for line in lines if line and not re.match(r"//|\*|/\*((?!\*/).)*(\*/)?$", line))
    return "".join(re.sub(r"/\*\* @type .*?\*/ ?", "", line) + "\n" for line in code)


def page(title, data, packed=False):
    """The page as HTML."""
    scripts = [shipped(path) for path in sorted(WEB.glob("[0-9][0-9]-*.js"))]
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    if packed:
        coded = base64.b64encode(gzip.compress(text.encode(), 6)).decode()
        data = f'<script type="text/plain" id="data" data-encoding="gzip-base64">{coded}</script>'
    else:
        data = f'<script type="application/json" id="data">{text.replace("<", chr(92) + "u003c")}</script>'
    panels = {"timeline": "Timeline", "flame": "Flame graph", "distribution": "Timings"}
    sections = "\n".join(
        f'<section data-panel="{panel}" data-title="{name}"></section>'
        for panel, name in panels.items()
        if f'"{panel}' in text
    )
    return f"""<!doctype html>
<!-- page by laggard -->
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>
<style>{shipped(WEB / "page.css")}</style><script>{scripts[0]}</script>
</head><body>
<header><h1>{escape(title)}</h1><p class="lead">A sample page.</p></header>
<nav id="panels"></nav>
<main>
<section id="report" data-title="Report">{REPORT}</section>
{sections}
</main>
{data}
<script>(() => {{ "use strict";
{"".join(scripts[1:])}}})();</script>
</body></html>
"""


def flame(rng, nodes, functions, sides=1, names=(), depth=60):
    """A random call tree in which a few functions have most of the weight."""
    kinds = [rng.choice([0, 0, 0, 1, 2, 3]) for _ in range(functions)]
    libraries = ["libtorch_cpu.so", "python3.12", "libc.so.6", "numpy/_core.so", "[kernel]", "libblas.so", "app.py"]
    titles = list(names) or [rng.choice(["matmul", "parse", "read", "hash", "copy", "visit", "alloc"]) for _ in range(functions)]
    titles = [name if names else f"{name}_{i}" for i, name in enumerate(titles)]
    strings = ["", "all", "train.py", *libraries, *titles]
    base = 3 + len(libraries)
    parent, function, level = [-1], [0], [0]
    while len(parent) < nodes:
        up = max(0, int(len(parent) * (1 - rng.random() ** 2)) - 1) if rng.random() < 0.9 else 0
        if level[up] >= depth:
            continue
        parent.append(up)
        function.append(1 + min(int(rng.expovariate(1) * functions / 6), functions - 1))
        level.append(level[up] + 1)
    one = [0] + [round(rng.paretovariate(1.1) * 1e4) if rng.random() < 0.7 else 0 for _ in parent[1:]]
    other = [round(w * rng.choice([0, 0.5, 1, 1, 1.1, 1.6])) or (50000 if rng.random() < 0.02 else 0) for w in one]
    weights = [one, other][:sides]
    return {
        "event": "task-clock", "unit": "ns", "per": "", "sides": ["numpy 2.1", "ours 0.4"][:sides], "strings": strings,
        "functions": {
            "name": [1] + [base + i for i in range(functions)],
            "library": [0] + [3 + (i * i) % len(libraries) for i in range(functions)],
            "kind": [4, *kinds],
            "file": [0] + [2 if kind == 2 else 0 for kind in kinds],
            "line": [0] + [i if kind == 2 else 0 for i, kind in enumerate(kinds)],
        },
        "nodes": {"parent": parent, "function": function, "self": weights},
        "wholes": [sum(side) for side in weights], "samples": [len(parent)] * sides,
        "hidden": {"nodes": 1234, "least": 0.0005},
    }


def sample_timeline(rng, tree, items, threads=4):
    """Random samples by thread, each with a node of the tree."""
    kinds = tree["functions"]["kind"]
    tracks = []
    for thread in range(threads):
        start = sorted(rng.randrange(10**10) for _ in range(items // threads))
        node = [rng.randrange(1, len(tree["nodes"]["parent"])) for _ in start]
        function = [tree["nodes"]["function"][n] for n in node]
        tracks.append({
            "name": f"thread {thread}", "group": "python (4242)", "start": start, "duration": [0] * len(start),
            "label": [tree["functions"]["name"][f] for f in function], "class": [min(kinds[f], 3) for f in function],
            "phase": [], "node": node, "weight": [1000000] * len(start),
        })
    strings = tree["strings"] + ["native", "inlined", "Python", "kernel"]
    return {"end": 10**10, "unit": "ns", "strings": strings, "classes": list(range(len(strings) - 4, len(strings))),
            "phases": [], "tracks": tracks, "note": ""}


def trace_timeline(rng, streams=6, items=400):
    """Random kernels by stream, with the phases of training steps."""
    classes = ["gemm", "attention", "copy", "communication", "elementwise"]
    phases = ["forward", "backward", "optimizer"]
    names = [f"void cutlass::{name}_kernel<float, {i}>" for name in classes for i in range(3)]
    tracks = []
    for stream in range(streams):
        track = {"name": f"stream {7 + stream}", "group": f"rank {stream // 3}, NVIDIA H100", "node": [], "weight": [],
                 "start": [], "duration": [], "label": [], "class": [], "phase": []}
        time = 0
        for _ in range(items):
            time += int(rng.expovariate(1 / 20000))
            length, kind = int(rng.expovariate(1 / 80000)) + 500, rng.randrange(len(classes))
            track["start"].append(time)
            track["duration"].append(length)
            track["label"].append(kind * 3 + rng.randrange(3))
            track["class"].append(kind)
            track["phase"].append(int(time / 3e6) % 4 - 1)
            time += length
        tracks.append(track)
    strings = names + classes + phases
    return {"end": max(t["start"][-1] + t["duration"][-1] for t in tracks), "unit": "ns", "strings": strings,
            "classes": [15 + i for i in range(5)], "phases": [20 + i for i in range(3)], "tracks": tracks,
            "note": "12,000 shorter operations not shown"}


def distributions(rng, cases):
    """Timings of two sides per case; the last case has only a few."""
    found = []
    for case in range(cases):
        sides = []
        for name in ["numpy", "ours"]:
            middle = 10 ** rng.uniform(3, 8) if name == "numpy" else middle * rng.uniform(0.7, 1.5)
            values = [middle * rng.lognormvariate(0, 0.05) * (3 if rng.random() < 0.01 else 1) for _ in range(200 if case < cases - 1 else 7)]
            ordered = sorted(values)
            median = ordered[len(ordered) // 2]
            sides.append({"name": name, "values": values, "interval": [median * 0.985, median, median * 1.012]})
        found.append({"title": f"sort, n = {2 ** (case % 12)}, float{32 * (1 + case // 18)}", "unit": "ns", "sides": sides})
    return found


def main(directory):
    rng = random.Random(7)
    directory.mkdir(parents=True, exist_ok=True)
    one, two = flame(rng, 4000, 150), flame(rng, 4000, 150, sides=2)
    two["intervals"] = {f: [-1e6 * f, 2e6 * f] for f in range(1, 60)}
    two["per"] = "call"
    hostile = flame(rng, 60, len(HOSTILE), names=HOSTILE, depth=8)
    hostile["event"] = hostile["sides"][0] = HOSTILE[0]
    big = flame(rng, 300000, 20000, depth=80)
    deep = flame(rng, 2, 3)
    deep["nodes"] = {"parent": list(range(-1, 5000)), "function": [0] + [1 + i % 3 for i in range(5000)], "self": [[0] * 5000 + [100]]}
    samples = {
        "one": {"flame": one, "timeline": sample_timeline(rng, one, 8000)},
        "two": {"flame": two},
        "trace": {"timeline": trace_timeline(rng)},
        "bench": {"distributions": distributions(rng, 36)},
        "hostile": {"flame": hostile, "timeline": sample_timeline(rng, hostile, 80), "distributions": [{**distributions(rng, 2)[1], "title": HOSTILE[0]}]},
        "deep": {"flame": deep},
        "big": {"flame": big, "timeline": sample_timeline(rng, big, 200000)},
        "million": {"timeline": trace_timeline(rng, streams=4, items=250000)},
    }
    for name, data in samples.items():
        packed = name in ("big", "million", "bench")
        (directory / f"{name}.html").write_text(page(f"sample: {name}", {"schema": "laggard.page/1", **data}, packed))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
