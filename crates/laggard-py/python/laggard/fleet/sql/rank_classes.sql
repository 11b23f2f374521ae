-- Device time by rank and kernel class, for comparing two jobs.
select rank, class, sum(n) as n, sum(sum_ns) as sum_ns
from work
group by rank, class
order by rank, class
