-- Idle time by rank and cause.
select rank, cause, count(*) as n, sum(dur_ns) as sum_ns, max(dur_ns) as longest_ns
from gaps
group by rank, cause
order by rank, cause
