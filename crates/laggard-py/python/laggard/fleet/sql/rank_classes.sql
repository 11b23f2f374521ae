-- A rank's device time by class of operation: what two jobs are compared by.
select rank, class, sum(n) as n, sum(sum_ns) as sum_ns
from work
group by rank, class
order by rank, class
