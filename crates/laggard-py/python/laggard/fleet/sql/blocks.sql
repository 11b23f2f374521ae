-- How often a rank came last in each twentieth of its collectives: what tells a lasting straggler from
-- one long disturbance.
select
    rank, block,
    count(*) as matched,
    sum(case when place = 1 then 1 else 0 end) as last_in
from arrivals
group by rank, block
order by rank, block
