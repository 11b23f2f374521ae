-- A rank's part in a collective that several ranks took part in. Collectives are matched by operation,
-- group and order. The rank that comes last has the shortest part, as all others wait in theirs: its
-- `place` is 1. No column depends on a common clock, except `start_ns` across ranks.
select
    rank, operation, process_group, group_ranks, ordinal, start_ns, dur_ns, parts, shortest_ns, place,
    ntile(20) over (
        partition by rank order by start_ns, operation, process_group, group_ranks, ordinal
    ) as block
from (
    select
        rank, operation, process_group, group_ranks, ordinal, start_ns, dur_ns,
        count(*) over (partition by operation, process_group, group_ranks, ordinal) as parts,
        min(dur_ns) over (partition by operation, process_group, group_ranks, ordinal) as shortest_ns,
        row_number() over (
            partition by operation, process_group, group_ranks, ordinal order by dur_ns, rank
        ) as place
    from (
        select
            rank, operation, coalesce(process_group, '') as process_group,
            coalesce(group_ranks, '') as group_ranks, ordinal, start_ns, dur_ns
        from collectives
    ) as named
) as placed
where parts > 1
