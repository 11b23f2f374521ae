-- Device time by kernel class and its distribution over ranks. Ranks without a class count as zero.
with per_rank as (
    select rank, class, sum(n) as n, sum(sum_ns) as sum_ns
    from work
    group by rank, class
),
every as (
    select ranks.rank, class.class
    from ranks
    cross join (select distinct class from per_rank) as class
),
filled as (
    select
        every.rank, every.class,
        coalesce(per_rank.n, 0) as n,
        coalesce(per_rank.sum_ns, 0) as sum_ns,
        row_number() over (
            partition by every.class order by coalesce(per_rank.sum_ns, 0) desc, every.rank
        ) as place
    from every
    left join per_rank on per_rank.rank = every.rank and per_rank.class = every.class
)
select
    class,
    sum(n) as n,
    sum(sum_ns) as sum_ns,
    count(*) as ranks,
    percentile_cont(0.5) within group (order by cast(sum_ns as double)) as median_ns,
    percentile_cont(0.25) within group (order by cast(sum_ns as double)) as p25_ns,
    percentile_cont(0.75) within group (order by cast(sum_ns as double)) as p75_ns,
    min(sum_ns) as min_ns,
    max(sum_ns) as max_ns,
    max(case when place = 1 then rank end) as max_rank
from filled
group by class
order by sum_ns desc, class
