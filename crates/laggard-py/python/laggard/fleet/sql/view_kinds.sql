-- Numbers each combination of operation and group, so that long strings are compared only once.
select
    operation, process_group, group_ranks,
    row_number() over (order by operation, process_group, group_ranks) as kind
from (
    select distinct
        operation, coalesce(process_group, '') as process_group, coalesce(group_ranks, '') as group_ranks
    from collectives
) as named
