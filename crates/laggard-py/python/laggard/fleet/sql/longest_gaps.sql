-- The longest idle gaps, with the device operation that ended each and the operator that launched it.
select rank, device, start_ns, dur_ns, cause, next, next_op
from gaps
order by dur_ns desc, rank, start_ns, device nulls first, next nulls first, next_op nulls first
limit 100
