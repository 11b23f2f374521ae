"""What 4,096 ranks of 1 GB would cost to ingest, and what one straggler does to the fleet: the figures of
docs/design/fleet.md, from those measured on one machine. Always the same: `python fleet_simulation.py`."""

import heapq
import math
import random
from statistics import median

SEED = 20260101
RANKS = 4096
GB_A_RANK = 1.0

#: Measured on one machine by crates/laggard-py/benches/fleet.py: JSON a core and second, plain and packed.
PLAIN_GB_S = 0.77
PACKED_GB_S = 0.47
#: Measured: Parquet to JSON, of real ranks; large traces have less.
PARQUET = 0.021
#: Measured: packed to plain JSON.
GZIP = 0.06
#: Assumed: how ranks of one job differ in size, what a network file system gives one host, the price of a
#: core, and how long Spark takes to start.
SPREAD = 0.15
STORAGE_GB_S = 1.0
CORE_HOUR = 0.05
START_S = 30.0


def makespan(tasks, cores):
    """Seconds until the last task is done, each started as soon as a core is free."""
    free = [0.0] * cores
    heapq.heapify(free)
    for task in tasks:
        heapq.heappush(free, heapq.heappop(free) + task)
    return max(free)


def table_of(heads):
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")


def ingest():
    print("## Ingest of 4,096 ranks of 1 GB of JSON\n")
    heads = ["traces", "hosts × cores", "read per host, GB/s", "seconds", "ideal", "lost to the last tasks"]
    table_of([*heads, "core-hours", "cost"])
    for kind, rate, on_disk in (("plain", PLAIN_GB_S, 1.0), (".gz", PACKED_GB_S, GZIP)):
        for hosts, cores in ((1, 2), (1, 64), (16, 16), (64, 16), (256, 16)):
            rng = random.Random(SEED)
            # A host's cores share what storage gives it.
            a_core = min(rate, STORAGE_GB_S / cores / on_disk)
            tasks = [GB_A_RANK / a_core * rng.lognormvariate(0, SPREAD) for _ in range(RANKS)]
            seconds = START_S + makespan(tasks, hosts * cores)
            ideal = START_S + sum(tasks) / (hosts * cores)
            hours = seconds * hosts * cores / 3600
            read = a_core * cores * on_disk
            print(
                f"| {kind} | {hosts} × {cores} | {read:.2f} | {seconds:,.0f} | {ideal:,.0f} "
                f"| {100 * (seconds / ideal - 1):.0f} % | {hours:,.1f} | ${hours * CORE_HOUR:,.2f} |"
            )
    json_tb, gzip_gb, parquet_gb = RANKS * GB_A_RANK / 1000, RANKS * GZIP, RANKS * PARQUET
    print(f"\nJSON {json_tb:.2f} TB, compressed {gzip_gb:.0f} GB, Parquet {parquet_gb:.0f} GB\n")


def lost_worker():
    print("## A worker lost halfway: compressed traces, 16 hosts with 16 cores\n")
    rng = random.Random(SEED)
    tasks = [GB_A_RANK / PACKED_GB_S * rng.lognormvariate(0, SPREAD) for _ in range(RANKS)]
    whole = makespan(tasks, 256)
    # At half time a host's 16 running tasks are lost, half done on average; 240 cores do the rest.
    done = int(RANKS / 2)
    rest = tasks[done:] + tasks[done - 16 : done]
    print(f"{START_S + whole:,.0f} s without the loss, {START_S + whole / 2 + makespan(rest, 240):,.0f} s with it\n")


def straggler():
    print("## Effect of the slowest of n ranks on a step\n")
    stalls = "1 %, and each rank stalls once in 1,000 steps for half a step"
    table_of(["ranks", "every rank varies by 1 %", "3 %", "1 %, and one rank 5 % slow", stalls])
    rng = random.Random(SEED)
    for ranks in (8, 64, 512, 4096):
        cells = []
        steps = max(20, 40_000 // ranks)

        def step(sigma, slow=0.0, stall=0.0):
            longest = max(rng.gauss(1, sigma) + (0.5 if stall and rng.random() < stall else 0) for _ in range(ranks))
            return max(longest, rng.gauss(1 + slow, sigma)) if slow else longest

        for sigma, slow, stall in ((0.01, 0, 0), (0.03, 0, 0), (0.01, 0.05, 0), (0.01, 0, 0.001)):
            times = [step(sigma, slow, stall) for _ in range(steps)]
            cells.append(f"{100 * (sum(times) / steps - 1):+.1f} %")
        print(f"| {ranks:,} | {' | '.join(cells)} |")
    print()


def power():
    print("## Detectable delay: share of 40 fleets in which the late rank is named\n")
    table_of(["ranks", "collectives", "late by 0.25 σ", "0.5 σ", "1 σ", "2 σ", "false positives among equal ranks"])
    rng = random.Random(SEED)
    for ranks, collectives in ((8, 100), (8, 1000), (64, 100), (64, 1000), (256, 200)):
        cells = []
        for late in (0.25, 0.5, 1.0, 2.0):
            named = sum(0 in accused(rng, ranks, collectives, late) for _ in range(40))
            cells.append(f"{100 * named / 40:.0f} %")
        wrong = sum(len(accused(rng, ranks, collectives, 0.0)) for _ in range(40))
        print(f"| {ranks} | {collectives:,} | {' | '.join(cells)} | {wrong} of {40 * ranks:,} |")
    print()


def accused(rng, ranks, collectives, late):
    """Ranks that the report's test names, where rank 0 comes late by so many standard deviations. The test is
    that of laggard/fleet/judge.py, without its threshold for what matters."""
    last_in, waited = [0] * ranks, [0.0] * ranks
    for _ in range(collectives):
        arrivals = [rng.gauss(late if rank == 0 else 0, 1) for rank in range(ranks)]
        last = max(range(ranks), key=arrivals.__getitem__)
        last_in[last] += 1
        waited[last] += ranks * arrivals[last] - sum(arrivals)
    centre = median(waited)
    deviation = 1.4826 * median(abs(value - centre) for value in waited)
    deviation = deviation or 1.2533 * sum(abs(value - centre) for value in waited) / ranks or 1.0
    return [
        rank
        for rank in range(ranks)
        if (waited[rank] - centre) / deviation > 3.5 and tail(last_in[rank], collectives, 1 / ranks) * ranks < 0.01
    ]


def tail(k, n, p):
    """The chance of at least `k` of `n`."""
    return math.fsum(
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(i + 1)
            - math.lgamma(n - i + 1)
            + i * math.log(p)
            + (n - i) * math.log1p(-p)
        )
        for i in range(k, n + 1)
    )


if __name__ == "__main__":
    ingest()
    lost_worker()
    straggler()
    power()
