-- Arrival skew and waiting time of collectives, by operation. Only the skew needs synchronized clocks.
with named as (
    select kinds.operation, waits.parts, waits.last_rank, waits.skew_ns, waits.wait_ns, waits.waited_ns
    from waits
    join kinds on kinds.kind = waits.kind
),
often as (
    select
        operation, last_rank, count(*) as last_in,
        row_number() over (partition by operation order by count(*) desc, last_rank) as place
    from named
    group by operation, last_rank
)
select
    named.operation,
    count(*) as n,
    max(named.parts) as ranks,
    percentile_cont(0.5) within group (order by cast(named.skew_ns as double)) as skew_median_ns,
    percentile_cont(0.95) within group (order by cast(named.skew_ns as double)) as skew_p95_ns,
    percentile_cont(0.5) within group (order by cast(named.wait_ns as double)) as wait_median_ns,
    percentile_cont(0.95) within group (order by cast(named.wait_ns as double)) as wait_p95_ns,
    sum(named.waited_ns) as waited_ns,
    max(often.last_rank) as last_rank,
    max(often.last_in) as last_in
from named
join often on often.operation = named.operation and often.place = 1
group by named.operation
order by waited_ns desc, named.operation
