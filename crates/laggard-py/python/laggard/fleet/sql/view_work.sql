-- Device operations by rank and name.
select
    rank, name, class, class_group, activity,
    count(*) as n,
    sum(dur_ns) as sum_ns,
    percentile_cont(0.5) within group (order by cast(dur_ns as double)) as median_ns
from kernels
group by rank, name, class, class_group, activity
