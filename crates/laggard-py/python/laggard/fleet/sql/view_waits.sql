-- One row per matched collective: which rank arrived last, and how long the others waited.
select
    kind, ordinal,
    max(parts) as parts,
    max(case when place = 1 then rank end) as last_rank,
    max(start_ns) - min(start_ns) as skew_ns,
    max(dur_ns) - min(dur_ns) as wait_ns,
    sum(dur_ns - shortest_ns) as waited_ns
from arrivals
group by kind, ordinal
