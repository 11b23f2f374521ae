"""Detects outliers among ranks, hosts and GPUs. Plain functions over rows of the SQL queries."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

Row = dict[str, Any]

#: Modified z-score above which a value is an outlier (Iglewicz and Hoaglin).
OUTLIER = 3.5
#: Significance level for the whole fleet.
LEVEL = 0.01
#: Minimum waiting time for a straggler, as share of the time of a rank.
HELD_SHARE = 0.005
#: Minimum slowdown of a slow rank, host or GPU.
PACE = 0.02
#: Minimum number of collectives for estimating the dispersion.
ENOUGH_FOR_BLOCKS = 40


def scores(values: list[float]) -> list[float]:
    """Modified z-scores: distances from the median, in robust standard deviations."""
    if not values:
        return []
    centre = median(values)
    away = [abs(value - centre) for value in values]
    deviation = 1.4826 * median(away)
    if deviation == 0:
        # More than half of the values are equal, so use the mean distance instead.
        deviation = 1.2533 * sum(away) / len(away)
    return [(value - centre) / deviation if deviation else 0.0 for value in values]


def chance_of_at_least(k: int, n: int, p: float) -> float:
    """The probability of at least `k` successes in `n` trials with probability `p` each."""
    if k <= 0 or p >= 1:
        return 1.0
    if p <= 0 or k > n:
        return 0.0
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    term = math.exp(log + k * math.log(p) + (n - k) * math.log1p(-p))
    total = 0.0
    for i in range(k, n + 1):
        total += term
        term *= (n - i) / (i + 1) * p / (1 - p)
        if i > n * p and term < total * 1e-15:
            break
    return min(1.0, total)


def dispersion(blocks: list[Row]) -> float:
    """Overdispersion of arriving last over the run: 1 if collectives are independent, more if one
    disturbance delays many of them."""
    by_rank: dict[int, list[Row]] = {}
    for row in blocks:
        by_rank.setdefault(row["rank"], []).append(row)
    found = []
    for rows in by_rank.values():
        matched, last_in = sum(row["matched"] for row in rows), sum(row["last_in"] for row in rows)
        if matched < ENOUGH_FOR_BLOCKS or not 0 < last_in < matched:
            continue
        share = last_in / matched
        off = sum(
            (row["last_in"] - share * row["matched"]) ** 2 / (row["matched"] * share * (1 - share)) for row in rows
        )
        found.append(off / (len(rows) - 1))
    return max(1.0, sum(found) / len(found)) if found else 1.0


def stragglers(ranks: list[Row], blocks: list[Row]) -> Row:
    """Finds the ranks that others wait for. A rank is an outlier if it arrives last more often than by
    chance, causes far more waiting time than other ranks, and the waiting time is long enough to matter."""
    taking_part = [row for row in ranks if row["matched"]]
    factor = dispersion(blocks)
    span = median([row["span_ns"] for row in taking_part]) if taking_part else 0
    rows = []
    for row, score in zip(taking_part, scores([float(row["waited_ns"]) for row in taking_part])):
        even = row["even_share"] / row["matched"]
        chance = chance_of_at_least(int(row["last_in"] / factor), max(1, int(row["matched"] / factor)), even)
        held = row["held_ns"] / span if span else 0.0
        chance = min(1.0, chance * len(taking_part))
        rows.append(
            {
                "rank": row["rank"],
                "host": row["host"],
                "last_in": row["last_in"],
                "matched": row["matched"],
                "share": row["last_in"] / row["matched"],
                "even_share": even,
                "waited_ns": row["waited_ns"],
                "held_ns": row["held_ns"],
                "held_share": held,
                "late_ns": row["held_ns"] / row["last_in"] if row["last_in"] else None,
                "chance": chance,
                "score": score,
                "stands_out": chance < LEVEL and score > OUTLIER and held >= HELD_SHARE,
            }
        )
    rows.sort(key=lambda row: (not row["stands_out"], -row["waited_ns"], row["rank"]))
    return {
        "stand_out": [row["rank"] for row in rows if row["stands_out"]],
        "dispersion": factor,
        "span_ns": span,
        "rows": rows,
    }


def paces(ranks: list[Row]) -> Row:
    """Finds ranks whose kernels take longer than on other ranks."""
    timed = [row for row in ranks if row["pace"] is not None]
    rows = []
    for row, score in zip(timed, scores([row["pace"] for row in timed])):
        out = len(timed) > 2 and score > OUTLIER and row["pace"] > 1 + PACE
        rows.append({name: row[name] for name in ("rank", "host", "gpu", "pace", "pace_names", "compute_ns")})
        rows[-1] |= {"score": score, "stands_out": out}
    rows.sort(key=lambda row: (not row["stands_out"], -row["pace"], row["rank"]))
    return {"stand_out": [row["rank"] for row in rows if row["stands_out"]], "n": len(timed), "rows": rows}


def groups(groups: list[Row], ranks: list[Row], key: str) -> Row:
    """Finds hosts or GPU models whose ranks are slower than others by more than the variation within
    groups."""
    by_group: dict[str, list[float]] = {}
    for row in ranks:
        if row[key] is not None and row["pace"] is not None:
            by_group.setdefault(row[key], []).append(row["pace"])
    within = [pace - median(paces) for paces in by_group.values() if len(paces) > 1 for pace in paces]
    rows = []
    for group in groups:
        own = by_group.get(group[key], [])
        others = [pace for name, paces in by_group.items() if name != group[key] for pace in paces]
        found: Row = {**group, "ratio": None, "noise": None, "stands_out": False}
        if own and others:
            found["ratio"] = median(own) / median(others)
            off = within if len(within) > len(by_group) else [pace - median(others) for pace in others]
            # The standard error of the median over the ranks of the group.
            found["noise"] = 1.4826 * median([abs(one) for one in off]) * 1.2533 / math.sqrt(len(own))
            beyond = max(PACE, OUTLIER * found["noise"] / median(others))
            found["stands_out"] = found["ratio"] > 1 + beyond
        rows.append(found)
    rows.sort(key=lambda row: (not row["stands_out"], -(row["ratio"] or 0), row[key]))
    return {"stand_out": [row[key] for row in rows if row["stands_out"]], "rows": rows}


def interval(values: list[float]) -> Row:
    """The median over ranks with a distribution-free confidence interval from order statistics, at a level of
    at least 95 %. With five ranks or fewer, `level` is lower."""
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        return {"median": None, "low": None, "high": None, "level": None, "n": 0}
    # The largest number of values that can be dropped at each end.
    if n > 1000:
        cut, tail = int(n / 2 - 0.98 * math.sqrt(n)) - 1, 0.025
    else:
        cut, term = 0, math.exp(-n * math.log(2))
        tail = term
        while 2 * (cut + 1) < n:
            term *= (n - cut) / (cut + 1)
            if 2 * (tail + term) > 0.05:
                break
            cut, tail = cut + 1, tail + term
    low, high = ordered[cut], ordered[n - 1 - cut]
    return {"median": median(ordered), "low": low, "high": high, "level": max(0.0, 1 - 2 * tail), "n": n}
