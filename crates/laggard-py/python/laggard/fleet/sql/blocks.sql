-- How often each rank arrived last, per twentieth of its collectives. This distinguishes a permanent
-- straggler from a single long disturbance.
select
    rank, block,
    count(*) as matched,
    sum(case when place = 1 then 1 else 0 end) as last_in
from arrivals
group by rank, block
order by rank, block
