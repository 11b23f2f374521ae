-- A rank's part in a collective that several ranks took part in. Collectives are matched by operation,
-- group and order. The rank that comes last has the shortest part, as all others wait in theirs: its
-- `place` is 1. No column depends on a common clock, except `start_ns` across ranks.
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
