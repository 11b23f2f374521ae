-- How far apart ranks come to collectives, by operation. Skew needs a common clock, waiting none.
with often as (
    select
        operation, last_rank, count(*) as last_in,
        row_number() over (partition by operation order by count(*) desc, last_rank) as place
    from waits
    group by operation, last_rank
)
select
    waits.operation,
    count(*) as n,
    max(waits.parts) as ranks,
    percentile_cont(0.5) within group (order by cast(waits.skew_ns as double)) as skew_median_ns,
    percentile_cont(0.95) within group (order by cast(waits.skew_ns as double)) as skew_p95_ns,
    percentile_cont(0.5) within group (order by cast(waits.wait_ns as double)) as wait_median_ns,
    percentile_cont(0.95) within group (order by cast(waits.wait_ns as double)) as wait_p95_ns,
    sum(waits.waited_ns) as waited_ns,
    max(often.last_rank) as last_rank,
    max(often.last_in) as last_in
from waits
join often on often.operation = waits.operation and often.place = 1
group by waits.operation
order by waited_ns desc, waits.operation
