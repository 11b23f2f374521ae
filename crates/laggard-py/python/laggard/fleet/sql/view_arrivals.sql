-- One row per rank and matched collective. Collectives are matched across ranks by operation, group and
-- order. The rank that arrives last has the shortest duration, because the others wait for it. Its
-- `place` is 1. Only comparing `start_ns` across ranks needs synchronized clocks.
select
    rank, kind, ordinal, start_ns, dur_ns, parts, shortest_ns, place,
    ntile(20) over (partition by rank order by start_ns, kind, ordinal) as block
from (
    select
        collectives.rank, kinds.kind, collectives.ordinal, collectives.start_ns, collectives.dur_ns,
        count(*) over (partition by kinds.kind, collectives.ordinal) as parts,
        min(collectives.dur_ns) over (partition by kinds.kind, collectives.ordinal) as shortest_ns,
        row_number() over (
            partition by kinds.kind, collectives.ordinal order by collectives.dur_ns, collectives.rank
        ) as place
    from collectives
    join kinds
        on kinds.operation = collectives.operation
        and kinds.process_group = coalesce(collectives.process_group, '')
        and kinds.group_ranks = coalesce(collectives.group_ranks, '')
) as placed
where parts > 1
