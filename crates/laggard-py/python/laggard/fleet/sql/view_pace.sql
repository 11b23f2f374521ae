-- Kernel time of each rank relative to the fleet, over kernels run by more than half of the ranks and
-- weighted by their median number of runs. A pace of 1.1 is 10 % slower than the median rank.
with per_name as (
    select rank, name, sum(n) as n, max(median_ns) as median_ns
    from work
    where class_group <> 'Communication' and activity in ('kernel', 'device')
    group by rank, name
),
common as (
    select
        name,
        percentile_cont(0.5) within group (order by cast(n as double)) as n,
        percentile_cont(0.5) within group (order by median_ns) as median_ns
    from per_name
    group by name
    having count(*) * 2 > (select count(*) from ranks)
)
select
    per_name.rank,
    count(*) as names,
    sum(common.n * per_name.median_ns) / nullif(sum(common.n * common.median_ns), 0) as pace
from per_name
join common on common.name = per_name.name
group by per_name.rank
