-- Pace and compute time of the ranks of each GPU model.
select
    ranks.gpu,
    count(*) as ranks,
    count(pace.pace) as n,
    percentile_cont(0.5) within group (order by pace.pace) as pace,
    min(pace.pace) as pace_min,
    max(pace.pace) as pace_max,
    percentile_cont(0.5) within group (order by cast(device.compute_ns as double)) as compute_ns
from ranks
left join pace on pace.rank = ranks.rank
left join (select rank, sum(compute_ns) as compute_ns from devices group by rank) as device
    on device.rank = ranks.rank
where ranks.gpu is not null
group by ranks.gpu
order by ranks.gpu
