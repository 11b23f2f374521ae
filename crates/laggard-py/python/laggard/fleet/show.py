"""Formats fleet reports as text and Markdown. Names in traces are untrusted and are escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING, Any
from unicodedata import category, east_asian_width

if TYPE_CHECKING:
    from .run import Ingested

Row = dict[str, Any]

WIDTH = 100
#: Maximum length of names in text tables.
LONGEST = 36


@dataclass
class Column:
    """A table column: title, unit and cells."""

    head: str
    unit: str
    cells: list[str]
    left: bool = False


@dataclass
class Section:
    """A section of a report: sentences, a table, and a note that explains its columns."""

    title: str
    says: list[str] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    note: str = ""


def visible(name: object, longest: int | None = None) -> str:
    """Escapes control, format and other invisible characters, and shortens long names."""
    out = []
    for char in str(name):
        if char == "\\":
            out.append("\\\\")
        elif category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            code = ord(char)
            short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
            out.append(short or (f"\\x{code:02x}" if code < 256 else f"\\u{{{code:x}}}"))
        else:
            out.append(char)
    text = "".join(out)
    if longest is not None and len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[: longest - 1 - half]}…{text[-half:]}"
    return text


def text(data: Row, top: int | None = 10) -> str:
    """Formats a report for a terminal."""
    return "\n".join(_section_text(section) for section in _sections(data, top, LONGEST))


def markdown(data: Row, top: int | None = 10) -> str:
    """Formats a report as Markdown."""
    return "\n".join(_section_markdown(section) for section in _sections(data, top, None))


def ingested(done: Ingested) -> str:
    """Summarizes an ingest in a few lines."""
    lines = []
    new, there = done.of("new"), done.of("there")
    for job in sorted({outcome.job for outcome in new + there}):
        mine = [outcome for outcome in new + there if outcome.job == job]
        text_bytes, packed = sum(one.text_bytes for one in mine), sum(one.parquet_bytes for one in mine)
        share = f", {number(100 * packed / text_bytes)} % of {size(text_bytes)} of JSON" if text_bytes else ""
        fresh = sum(outcome.state == "new" for outcome in mine)
        lines.append(
            f"job {visible(job)}: {many(len(mine), 'rank')}, {fresh} of them new; {size(packed)} of Parquet{share}"
        )
    if new:
        read = sum(one.text_bytes for one in new)
        rate = size(read / done.seconds) if done.seconds else "-"
        lines.append(f"{many(len(new), 'trace')} in {number(done.seconds)} s, {rate}/s")
    skipped = done.of("bad", "duplicate")
    if skipped:
        lines.append(f"{many(len(skipped), 'file')} skipped")
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Formats a number with three significant digits."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def many(count: int, of: str) -> str:
    """Formats a count with its noun."""
    return f"{count:,} {of}" + ("" if count == 1 else "s")


def size(count: float) -> str:
    """Formats a size in bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{number(count)} {unit}"
        count /= 1000
    return f"{number(count)} TB"


def span(ns: float | None) -> str:
    """Formats a time with its unit."""
    if ns is None:
        return "-"
    factor, unit = _unit([ns])
    return f"{number(ns / factor)} {unit}"


def _unit(values: Sequence[float | None]) -> tuple[float, str]:
    largest = max((abs(value) for value in values if value is not None), default=0)
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if largest >= factor:
            return factor, unit
    return 1.0, "ns"


def _times(head: str, values: Sequence[float | None], signed: bool = False) -> Column:
    factor, unit = _unit(values)
    sign = "+" if signed else ""

    def cell(value: float | None) -> str:
        return "-" if value is None else (sign if value > 0 else "") + number(value / factor)

    return Column(head, unit, [cell(value) for value in values])


def _numbers(head: str, unit: str, values: Sequence[float | None]) -> Column:
    return Column(head, unit, [number(value) for value in values])


def _counts(head: str, values: Sequence[int]) -> Column:
    return Column(head, "n", [f"{value:,}" for value in values])


def _names(head: str, values: Sequence[object], longest: int | None = None) -> Column:
    return Column(head, "", ["-" if value is None else visible(value, longest) for value in values], left=True)


def _ranks(values: Sequence[int]) -> Column:
    return Column("rank", "", [str(value) for value in values])


def _listed(ranks: Sequence[object], most: int = 8) -> str:
    shown = ", ".join(visible(rank, LONGEST) for rank in ranks[:most])
    return shown + (f" and {len(ranks) - most:,} more" if len(ranks) > most else "")


def _sections(data: Row, top: int | None, longest: int | None) -> list[Section]:
    sections = (_report if data["verb"] == "report" else _compare)(data, top, longest)
    if data["warnings"]:
        sections.append(Section("Warnings", [visible(each) for each in data["warnings"]]))
    return sections


def _cut(rows: list[Row], top: int | None) -> tuple[list[Row], str]:
    if top is None or len(rows) <= top:
        return rows, ""
    return rows[:top], f"{len(rows) - top:,} more of {len(rows):,} rows: --all"


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _report(data: Row, top: int | None, longest: int | None) -> list[Section]:
    return [
        _fleet(data),
        _who(data),
        _rank_table(data, top, longest),
        _straggler_table(data, top, longest),
        _collective_table(data, top, longest),
        *_gap_tables(data, top, longest),
        _pace_table(data, top, longest),
        _group_table(data["hosts"], "Hosts", "host", top, longest),
        _group_table(data["gpus"], "GPU models", "gpu", top, longest),
        _class_table(data, top, longest),
    ]


def _fleet(data: Row) -> Section:
    totals = data["totals"]
    says = [
        f"job {visible(data['job'])}: {many(totals['ranks'], 'rank')}"
        + (f" of {totals['world_size']:,}" if totals["world_size"] else "")
        + (f", {many(totals['hosts'], 'host')}" if totals["hosts"] else "")
        + f", {many(totals['events'], 'event')}, {many(totals['kernels'], 'kernel')}",
        f"{size(totals['parquet_bytes'])} of Parquet from {size(totals['text_bytes'])} of JSON",
    ]
    if totals["missing"]:
        says.append(f"{many(len(totals['missing']), 'rank')} missing: {_listed(totals['missing'])}")
    return Section("Fleet", says)


def _who(data: Row) -> Section:
    says = []
    found = data["stragglers"]
    for row in found["rows"]:
        if row["stands_out"]:
            says.append(
                f"rank {row['rank']}{_at(row)} is a straggler: it arrived last in {row['last_in']:,} of "
                f"{row['matched']:,} collectives ({number(100 * row['share'])} %; expected without a "
                f"straggler: {number(100 * row['even_share'])} %) and delayed each other rank by "
                f"{span(row['held_ns'])} on average, {number(100 * row['held_share'])} % of the time of a rank"
            )
    if not says and found["rows"]:
        says.append(
            f"no stragglers among {many(len(found['rows']), 'rank')}: no rank arrived last more often than by chance "
            "with a relevant delay"
        )
    for key, what, label in (("hosts", "host", "host"), ("gpus", "gpu", "GPU model")):
        for row in data[key]["rows"]:
            if row["stands_out"]:
                says.append(
                    f"{label} {visible(row[what], LONGEST)} is slow: its kernels take {number(row['ratio'])} "
                    f"times as long as on the others (median of {many(row['n'], 'rank')}, "
                    f"±{number(100 * row['noise'])} % noise)"
                )
    out = [row for row in data["paces"]["rows"] if row["stands_out"]]
    says += [
        f"the GPU of rank {row['rank']}{_at(row)} is slow: its kernels take {number(row['pace'])} times as long as "
        f"on the median rank ({many(row['pace_names'], 'kernel')} compared)"
        for row in out[:5]
    ]
    if not out and data["paces"]["n"] > 2 and not data["hosts"]["stand_out"] and not data["gpus"]["stand_out"]:
        says.append(f"no slow GPU or host: kernel times agree on all {data['paces']['n']:,} ranks, within noise")
    return Section("Findings", says)


def _at(row: Row) -> str:
    return f" on {visible(row['host'], LONGEST)}" if row["host"] is not None else ""


def _rank_table(data: Row, top: int | None, longest: int | None) -> Section:
    rows, more = _cut(data["ranks"], top)

    def of(name: str) -> list[Any]:
        return [row[name] for row in rows]

    busy = [100 * row["busy_ns"] / row["span_ns"] if row["span_ns"] else None for row in rows]
    late = [row["held_ns"] / row["last_in"] if row["last_in"] else None for row in rows]
    columns = [
        _ranks(of("rank")),
        _names("host", of("host"), longest and 16),
        _times("span", of("span_ns")),
        _numbers("busy", "%", busy),
        _times("compute", of("compute_ns")),
        _times("exposed", of("exposed_communication_ns")),
        _times("idle", of("idle_ns")),
        _times("host-bound", of("host_bound_ns")),
        _times("step", of("step_ns")),
        _counts("steps", of("steps")),
        _counts("last in", of("last_in")),
        _counts("matched", of("matched")),
        _times("delay", late),
    ]
    note = (
        "exposed: communication not overlapped by compute; step: median; matched: collectives matched across ranks; "
        "last in: those in which this rank arrived last; delay: mean wait of each other rank in these"
    )
    return Section("Ranks", [], columns, _joined(note, more))


def _straggler_table(data: Row, top: int | None, longest: int | None) -> Section:
    found = data["stragglers"]
    rows, more = _cut([row for row in found["rows"] if row["last_in"]], top)
    if not rows:
        return Section("Stragglers", ["no collectives matched across ranks"])
    columns = [
        _ranks([row["rank"] for row in rows]),
        _numbers("last in", "%", [100 * row["share"] for row in rows]),
        _numbers("even", "%", [100 * row["even_share"] for row in rows]),
        _counts("matched", [row["matched"] for row in rows]),
        _times("waited", [row["waited_ns"] for row in rows]),
        _times("delay", [row["held_ns"] for row in rows]),
        _numbers("delay", "%", [100 * row["held_share"] for row in rows]),
        _numbers("z-score", "σ", [row["score"] for row in rows]),
        Column("p-value", "", ["<1e-6" if row["chance"] < 1e-6 else f"{row['chance']:.2g}" for row in rows]),
        Column("straggler", "", ["yes" if row["stands_out"] else "no" for row in rows], left=True),
    ]
    note = (
        "even: share expected of equal ranks; waited: wait of all other ranks together; delay: mean wait of each other "
        "rank, also as share of the median span; z-score: robust, of the waiting time; p-value: of arriving last this "
        f"often among equal ranks, corrected for the number of ranks and an overdispersion of "
        f"{number(found['dispersion'])}; needs no common clock"
    )
    return Section("Stragglers", [], columns, _joined(note, more))


def _collective_table(data: Row, top: int | None, longest: int | None) -> Section:
    rows, more = _cut(data["collectives"], top)
    if not rows:
        return Section("Collectives", ["no collectives matched across ranks"])
    columns = [
        _names("operation", [row["operation"] for row in rows], longest and 30),
        _counts("count", [row["n"] for row in rows]),
        _counts("ranks", [row["ranks"] for row in rows]),
        _times("wait", [row["wait_median_ns"] for row in rows]),
        _times("p95", [row["wait_p95_ns"] for row in rows]),
        _times("waited", [row["waited_ns"] for row in rows]),
        _times("skew", [row["skew_median_ns"] for row in rows]),
        _times("p95", [row["skew_p95_ns"] for row in rows]),
        Column("most often last", "", [f"rank {row['last_rank']}" for row in rows], left=True),
        _counts("times", [row["last_in"] for row in rows]),
    ]
    note = (
        "wait: longest minus shortest duration, median, needs no common clock; waited: by all ranks together; skew: "
        "first to last start, median, depends on synchronized host clocks"
    )
    return Section("Collectives", [], columns, _joined(note, more))


def _gap_tables(data: Row, top: int | None, longest: int | None) -> list[Section]:
    causes = sorted({row["cause"] for row in data["gaps"]["by_rank"]})
    by_rank: dict[int, dict[str, Row]] = {}
    for row in data["gaps"]["by_rank"]:
        by_rank.setdefault(row["rank"], {})[row["cause"]] = row
    most_idle = sorted(by_rank, key=lambda rank: (-sum(row["sum_ns"] for row in by_rank[rank].values()), rank))
    ranks, more = _cut([{"rank": rank} for rank in most_idle], top)
    sections = []
    if ranks:
        columns = [_ranks([row["rank"] for row in ranks])]
        for cause in causes:
            found = [by_rank[row["rank"]].get(cause) for row in ranks]
            columns.append(_times(visible(cause), [row["sum_ns"] if row else 0 for row in found]))
            columns.append(_counts("gaps", [row["n"] if row else 0 for row in found]))
        sections.append(Section("Idle time by cause", [], columns, _joined("sorted by idle time", more)))
    rows, _ = _cut(data["gaps"]["longest"], top if top is not None else None)
    if rows:
        columns = [
            _ranks([row["rank"] for row in rows]),
            _times("gap", [row["dur_ns"] for row in rows]),
            _names("cause", [row["cause"] for row in rows], longest),
            _names("ended by", [row["next"] for row in rows], longest),
            _names("launched by", [row["next_op"] for row in rows], longest and 24),
        ]
        sections.append(Section("Longest gaps", [], columns))
    return sections


def _pace_table(data: Row, top: int | None, longest: int | None) -> Section:
    rows, more = _cut(data["paces"]["rows"], top)
    if not rows:
        return Section("Kernel pace", ["no kernel was run by more than half of the ranks"])
    columns = [
        _ranks([row["rank"] for row in rows]),
        _names("host", [row["host"] for row in rows], longest and 24),
        _names("GPU", [row["gpu"] for row in rows], longest),
        _numbers("pace", "x", [row["pace"] for row in rows]),
        _numbers("z-score", "σ", [row["score"] for row in rows]),
        _counts("kernels", [row["pace_names"] for row in rows]),
        Column("outlier", "", ["yes" if row["stands_out"] else "no" for row in rows], left=True),
    ]
    note = (
        "pace: kernel time relative to the median rank, over kernels run by more than half of the ranks, without "
        "communication and copies; kernels: kernel names compared"
    )
    return Section("Kernel pace", [], columns, _joined(note, more))


def _group_table(found: Row, title: str, key: str, top: int | None, longest: int | None) -> Section:
    rows, more = _cut(found["rows"], top)
    if not rows:
        return Section(title, ["unknown"])
    ranges = [
        f"{number(row['pace_min'])}–{number(row['pace_max'])}" if row["pace_min"] is not None else "-" for row in rows
    ]
    columns = [
        _names("GPU" if key == "gpu" else key, [row[key] for row in rows], longest),
        _counts("ranks", [row["ranks"] for row in rows]),
        _numbers("pace", "x", [row["pace"] for row in rows]),
        Column("min–max", "x", ranges),
        _numbers("vs. others", "x", [row["ratio"] for row in rows]),
        Column("noise", "%", ["-" if row["noise"] is None else f"±{number(100 * row['noise'])}" for row in rows]),
        _times("compute", [row["compute_ns"] for row in rows]),
        Column("outlier", "", ["yes" if row["stands_out"] else "no" for row in rows], left=True),
    ]
    note = "pace, compute: median over ranks; noise: standard error of the pace"
    return Section(title, [], columns, _joined(note, more))


def _class_table(data: Row, top: int | None, longest: int | None) -> Section:
    rows, more = _cut(data["classes"], top)
    if not rows:
        return Section("Device time by class", ["no device operations"])
    factor, unit = _unit([row["max_ns"] for row in rows])
    columns = [
        _names("class", [row["class"] for row in rows], longest),
        _counts("count", [row["n"] for row in rows]),
        _times("total", [row["sum_ns"] for row in rows]),
        _numbers("median", unit, [row["median_ns"] / factor for row in rows]),
        Column("p25–p75", unit, [_range(row["p25_ns"], row["p75_ns"], factor) for row in rows]),
        Column("min…max", unit, [_range(row["min_ns"], row["max_ns"], factor, "…") for row in rows]),
        Column("max on", "", [f"rank {row['max_rank']}" for row in rows], left=True),
    ]
    note = f"total: sum over all ranks; others: per rank, over {many(rows[0]['ranks'], 'rank')}"
    return Section("Device time by class", [], columns, _joined(note, more))


def _range(low: float, high: float, factor: float, dash: str = "–") -> str:
    return f"{number(low / factor)}{dash}{number(high / factor)}"


def _compare(data: Row, top: int | None, longest: int | None) -> list[Section]:
    return [_verdict(data), _pairs(data, top, longest), _class_gaps(data, top, longest)]


def _verdict(data: Row) -> Section:
    ratio, gap = data["ratio"], data["gap"]
    says = [
        f"{side.upper()}: job {visible(data[side]['job'])}, {many(data[side]['totals']['ranks'], 'rank')}"
        for side in ("a", "b")
    ]
    if ratio["median"] is not None:
        what = "a step" if data["measure"] == "step" else "the span of device operations"
        words = {
            "slower": "B is slower",
            "faster": "B is faster",
            "alike": "B is as fast as A",
            "unclear": "no detectable difference",
        }
        says.append(
            f"{words[data['verdict']]}: {what} takes {number(ratio['median'])} times as long "
            f"({100 * ratio['level']:.0f} % CI {number(ratio['low'])}–{number(ratio['high'])}; median of "
            f"{many(ratio['n'], 'rank')}), {'+' if gap['median'] > 0 else ''}{span(gap['median'])}"
        )
    found = data["stragglers"]
    for ranks, where in ((found["new"], "only in B"), (found["gone"], "only in A")):
        if ranks:
            says.append(f"stragglers {where}: {_listed(ranks)}")
    if not found["new"] and not found["gone"]:
        both = f"the same in both: {_listed(found['a'])}" if found["a"] else "none in either"
        says.append(f"stragglers: {both}")
    for name, side in (("only_a", "A"), ("only_b", "B")):
        if data[name]:
            says.append(f"{many(len(data[name]), 'rank')} only in {side}: {_listed(data[name])}")
    return Section("Fleet comparison", says)


def _pairs(data: Row, top: int | None, longest: int | None) -> Section:
    rows, more = _cut(sorted(data["ranks"], key=lambda row: (-(row["ratio"] or 0), row["rank"])), top)
    if not rows:
        return Section("Ranks", ["no rank in common"])
    columns = [
        _ranks([row["rank"] for row in rows]),
        _names("host A", [row["host_a"] for row in rows], longest and 16),
        _names("host B", [row["host_b"] for row in rows], longest and 16),
        _times("A", [row["a_ns"] for row in rows]),
        _times("B", [row["b_ns"] for row in rows]),
        _times("diff.", [row["gap_ns"] for row in rows], signed=True),
        _numbers("ratio", "x", [row["ratio"] for row in rows]),
    ]
    what = "median step" if data["measure"] == "step" else "span of device operations"
    return Section("Ranks", [], columns, _joined(f"{what}; diff.: B minus A; sorted by ratio", more))


def _class_gaps(data: Row, top: int | None, longest: int | None) -> Section:
    rows, more = _cut(data["classes"], top)
    if not rows:
        return Section("Device time by class", ["no device operations on common ranks"])
    gaps = [row["gap"] for row in rows]
    factor, unit = _unit([gap["high"] for gap in gaps] + [gap["low"] for gap in gaps])
    columns = [
        _names("class", [row["class"] for row in rows], longest),
        _times("A", [row["a_ns"] for row in rows]),
        _times("B", [row["b_ns"] for row in rows]),
        Column(
            "diff.", unit, [("+" if gap["median"] > 0 else "") + number(gap["median"] / factor) for gap in gaps]
        ),
        Column("CI", unit, [_range(gap["low"], gap["high"], factor, "…") for gap in gaps]),
        _counts("ranks", [gap["n"] for gap in gaps]),
    ]
    each = "per step" if data["measure"] == "step" else "per trace"
    note = f"medians over ranks, {each}; diff.: B minus A; CI: confidence interval of the difference"
    return Section("Device time by class", [], columns, _joined(note, more))


def _wide(text: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 0 if category(char) == "Mn" else 1 for char in text)


def _padded(text: str, width: int, left: bool) -> str:
    fill = " " * (width - _wide(text))
    return text + fill if left else fill + text


def _section_text(section: Section) -> str:
    lines = [section.title]
    for sentence in section.says:
        lines += wrap(sentence, WIDTH - 4, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    if section.columns:
        cells = [[column.head, column.unit, *column.cells] for column in section.columns]
        widths = [max(_wide(cell) for cell in column) for column in cells]
        for row in zip(*cells):
            made = [
                _padded(cell, width, column.left) for cell, width, column in zip(row, widths, section.columns)
            ]
            lines.append(("  " + "  ".join(made)).rstrip())
    if section.note:
        lines += wrap(section.note, WIDTH - 2, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


#: Characters with a meaning in Markdown or HTML.
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$@:-])")


def _escaped(text: str) -> str:
    return _MARKS.sub(lambda found: f"&#{ord(found[0])};", text)


def _section_markdown(section: Section) -> str:
    lines = [f"## {section.title}", ""]
    for sentence in section.says:
        lines += [f"- {_escaped(sentence)}"]
    if section.says:
        lines.append("")
    if section.columns:
        heads = [f"{column.head}, {column.unit}" if column.unit else column.head for column in section.columns]
        lines.append("| " + " | ".join(heads) + " |")
        lines.append("|" + "|".join(" :--- " if column.left else " ---: " for column in section.columns) + "|")
        for row in zip(*(column.cells for column in section.columns)):
            made = [_escaped(cell) if column.left else cell for cell, column in zip(row, section.columns)]
            lines.append("| " + " | ".join(made) + " |")
        lines.append("")
    if section.note:
        lines += [section.note, ""]
    return "\n".join(lines)
