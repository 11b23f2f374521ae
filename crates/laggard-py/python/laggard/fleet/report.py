"""Reports on all ranks of a job, and comparisons of two jobs, as data for text and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from . import judge, store
from .engine import Engine, question

Row = dict[str, Any]

SCHEMA = "laggard.fleet/1"

#: Steps that differ by less count as equal, as two runs of one job differ by that much.
ALIKE = 0.01


class Answer:
    """A fleet report or comparison: `data` is its JSON, `str()` its text."""

    def __init__(self, data: Row):
        self.data = data

    def text(self, top: int | None = 10) -> str:
        """Formats the report for a terminal. `top=None` shows all rows."""
        from .show import text

        return text(self.data, top)

    def markdown(self, top: int | None = 10) -> str:
        """Formats the report as Markdown."""
        from .show import markdown

        return markdown(self.data, top)

    def json(self) -> str:
        """Formats the report as JSON. The key `schema` has the version of the format."""
        return json.dumps(self.data, indent=2, allow_nan=False) + "\n"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<laggard.fleet.Answer {self.data['verb']}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text())}</pre>"


def report(engine: Engine, fleet: Path, job: str | None = None) -> Answer:
    """Reports stragglers, skew of collectives, idle time by cause, and slow hosts and GPUs."""
    name = store.the_job(fleet, job, "--job")
    known = store.ranks(fleet, name)
    engine.open(fleet, name, known)
    ranks = _ask(engine, "ranks")
    return Answer(
        {
            "schema": SCHEMA,
            "verb": "report",
            "laggard": _version(),
            "engine": engine.name,
            "fleet": str(fleet),
            "job": name,
            "totals": _totals(known, ranks),
            "ranks": ranks,
            "stragglers": judge.stragglers(ranks, _ask(engine, "blocks")),
            "collectives": _ask(engine, "collectives"),
            "gaps": {"by_rank": _ask(engine, "gaps"), "longest": _ask(engine, "longest_gaps")},
            "paces": judge.paces(ranks),
            "hosts": judge.groups(_ask(engine, "hosts"), ranks, "host"),
            "gpus": judge.groups(_ask(engine, "gpus"), ranks, "gpu"),
            "classes": _ask(engine, "classes"),
            "warnings": _warnings(known, ranks),
        }
    )


def compare(engine: Engine, a: tuple[Path, str | None], b: tuple[Path, str | None]) -> Answer:
    """Compares two jobs rank by rank. A is the reference."""
    sides = [_side(engine, fleet, job, flag) for (fleet, job), flag in ((a, "--a"), (b, "--b"))]
    ranks_a, ranks_b = ({row["rank"]: row for row in side["ranks"]} for side in sides)
    common = sorted(ranks_a.keys() & ranks_b.keys())
    by_step = bool(common) and all(ranks_a[rank]["steps"] and ranks_b[rank]["steps"] for rank in common)
    of = "step_ns" if by_step else "span_ns"
    rows = []
    for rank in common:
        left, right = ranks_a[rank], ranks_b[rank]
        ratio = right[of] / left[of] if left[of] else None
        row = {"rank": rank, "host_a": left["host"], "host_b": right["host"], "a_ns": left[of], "b_ns": right[of]}
        rows.append({**row, "gap_ns": right[of] - left[of], "ratio": ratio})
    ratio = judge.interval([row["ratio"] for row in rows if row["ratio"] is not None])
    stand_out = [side["stragglers"]["stand_out"] for side in sides]
    warnings = []
    if not by_step and common:
        warnings.append("some ranks have no steps: comparing the spans of traces, whose lengths may differ")
    if 0 < ratio["n"] < 6:
        ranks = f"{ratio['n']} rank{'s' if ratio['n'] > 1 else ''}"
        warnings.append(f"confidence intervals over {ranks} have a level of {100 * ratio['level']:.0f} %, not 95 %")
    if not common:
        warnings.append("the jobs have no rank in common")
    return Answer(
        {
            "schema": SCHEMA,
            "verb": "compare",
            "laggard": _version(),
            "engine": engine.name,
            "a": {name: sides[0][name] for name in ("fleet", "job", "totals")},
            "b": {name: sides[1][name] for name in ("fleet", "job", "totals")},
            "measure": "step" if by_step else "span",
            "ratio": ratio,
            "gap": judge.interval([row["gap_ns"] for row in rows]),
            "verdict": _verdict(ratio),
            "ranks": rows,
            "classes": _class_gaps(sides, ranks_a, ranks_b, common, by_step),
            "stragglers": {
                "a": stand_out[0],
                "b": stand_out[1],
                "new": [rank for rank in stand_out[1] if rank not in stand_out[0]],
                "gone": [rank for rank in stand_out[0] if rank not in stand_out[1]],
            },
            "only_a": sorted(ranks_a.keys() - ranks_b.keys()),
            "only_b": sorted(ranks_b.keys() - ranks_a.keys()),
            "warnings": warnings,
        }
    )


def _side(engine: Engine, fleet: Path, job: str | None, flag: str) -> Row:
    name = store.the_job(fleet, job, flag)
    known = store.ranks(fleet, name)
    engine.open(fleet, name, known)
    ranks = _ask(engine, "ranks")
    return {
        "fleet": str(fleet),
        "job": name,
        "totals": _totals(known, ranks),
        "ranks": ranks,
        "stragglers": judge.stragglers(ranks, _ask(engine, "blocks")),
        "classes": _ask(engine, "rank_classes"),
    }


def _class_gaps(
    sides: list[Row], ranks_a: dict[int, Row], ranks_b: dict[int, Row], common: list[int], by_step: bool
) -> list[Row]:
    """Device time by class, per step if there are steps: the median over ranks of B minus A."""

    def amounts(side: Row, ranks: dict[int, Row]) -> dict[tuple[int, str], float]:
        return {
            (row["rank"], row["class"]): row["sum_ns"] / (ranks[row["rank"]]["steps"] if by_step else 1)
            for row in side["classes"]
            if row["rank"] in common_ranks
        }

    common_ranks = set(common)
    a, b = amounts(sides[0], ranks_a), amounts(sides[1], ranks_b)
    rows: list[Row] = []
    for name in sorted({name for _, name in [*a, *b]}):
        gaps = [b.get((rank, name), 0.0) - a.get((rank, name), 0.0) for rank in common]
        rows.append(
            {
                "class": name,
                "a_ns": median([a.get((rank, name), 0.0) for rank in common]),
                "b_ns": median([b.get((rank, name), 0.0) for rank in common]),
                "gap": judge.interval(gaps),
            }
        )
    rows.sort(key=lambda row: (-abs(row["gap"]["median"]), row["class"]))
    return rows


def _verdict(ratio: Row) -> str:
    if ratio["median"] is None:
        return "unknown"
    if ratio["low"] > 1 + ALIKE:
        return "slower"
    if ratio["high"] < 1 - ALIKE:
        return "faster"
    return "alike" if ratio["low"] >= 1 - ALIKE and ratio["high"] <= 1 + ALIKE else "unclear"


def _ask(engine: Engine, name: str) -> list[Row]:
    return engine.query(question(name))


def _totals(known: dict[int, Row], ranks: list[Row]) -> Row:
    def total(name: str) -> int:
        return sum(row.get(name) or 0 for row in known.values())

    world_size = max((row["world_size"] or 0 for row in known.values()), default=0) or None
    missing = [rank for rank in range(world_size or 0) if rank not in known]
    return {
        "ranks": len(known),
        "world_size": world_size,
        "missing": missing,
        "hosts": len({row["host"] for row in known.values() if row["host"] is not None}),
        "gpus": len({row["gpu"] for row in known.values() if row["gpu"] is not None}),
        "events": total("events"),
        "lost": total("lost"),
        "file_bytes": total("file_bytes"),
        "text_bytes": total("text_bytes"),
        "parquet_bytes": total("parquet_bytes"),
        "kernels": sum(row["kernels"] for row in ranks),
    }


def _warnings(known: dict[int, Row], ranks: list[Row]) -> list[str]:
    warnings = []
    sizes = {row["world_size"] for row in known.values() if row["world_size"] is not None}
    if len(sizes) > 1:
        warnings.append(f"traces have different world sizes: {', '.join(map(str, sorted(sizes)))}")
    lost = [rank for rank, row in known.items() if row["lost"]]
    if lost:
        warnings.append(f"events were lost or repaired in {len(lost)} of {len(known)} traces")
    if not any(row["matched"] for row in ranks):
        warnings.append("no collectives matched across ranks: stragglers cannot be detected")
    if not any(row["host"] is not None for row in known.values()):
        warnings.append("hosts are unknown: neither file names nor traces have them")
    versions = {row["laggard"] for row in known.values()}
    if len(versions) > 1:
        warnings.append(f"ranks were ingested by different versions of laggard: {', '.join(sorted(versions))}")
    return warnings


def _version() -> str:
    from .._laggard import __version__

    return __version__
