-- One row per rank: device times, step times, how often it arrived last in collectives, how long the
-- others waited for it, and its pace.
with device as (
    select
        rank,
        count(*) as devices,
        sum(span_ns) as span_ns,
        sum(busy_ns) as busy_ns,
        sum(compute_ns) as compute_ns,
        sum(exposed_communication_ns) as exposed_communication_ns,
        sum(idle_ns) as idle_ns,
        sum(host_bound_ns) as host_bound_ns
    from devices
    group by rank
),
step as (
    select
        rank,
        count(*) as steps,
        percentile_cont(0.5) within group (order by cast(dur_ns as double)) as step_ns,
        percentile_cont(0.25) within group (order by cast(dur_ns as double)) as step_p25_ns,
        percentile_cont(0.75) within group (order by cast(dur_ns as double)) as step_p75_ns
    from steps
    group by rank
),
kernel as (
    select rank, sum(case when activity in ('kernel', 'device') then n else 0 end) as kernels
    from work
    group by rank
),
matched as (
    select rank, count(*) as matched, sum(1 / cast(parts as double)) as even_share
    from arrivals
    group by rank
),
last as (
    select
        last_rank as rank,
        count(*) as last_in,
        sum(waited_ns) as waited_ns,
        sum(waited_ns / cast(parts - 1 as double)) as held_ns
    from waits
    group by last_rank
)
select
    ranks.rank, ranks.host, ranks.gpu, ranks.events, ranks.lost,
    coalesce(kernel.kernels, 0) as kernels,
    coalesce(device.devices, 0) as devices,
    coalesce(device.span_ns, 0) as span_ns,
    coalesce(device.busy_ns, 0) as busy_ns,
    coalesce(device.compute_ns, 0) as compute_ns,
    coalesce(device.exposed_communication_ns, 0) as exposed_communication_ns,
    coalesce(device.idle_ns, 0) as idle_ns,
    coalesce(device.host_bound_ns, 0) as host_bound_ns,
    coalesce(step.steps, 0) as steps,
    step.step_ns, step.step_p25_ns, step.step_p75_ns,
    coalesce(matched.matched, 0) as matched,
    coalesce(matched.even_share, 0) as even_share,
    coalesce(last.last_in, 0) as last_in,
    coalesce(last.waited_ns, 0) as waited_ns,
    coalesce(last.held_ns, 0) as held_ns,
    pace.pace,
    coalesce(pace.names, 0) as pace_names
from ranks
left join device on device.rank = ranks.rank
left join step on step.rank = ranks.rank
left join kernel on kernel.rank = ranks.rank
left join matched on matched.rank = ranks.rank
left join last on last.rank = ranks.rank
left join pace on pace.rank = ranks.rank
order by ranks.rank
