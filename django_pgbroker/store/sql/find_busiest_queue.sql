-- purpose: name the queue with the most pending jobs by the latest samples, or any where none was sampled
-- params:
-- returns: id, name; no row when there is no queue
-- moves:
-- locks:   none
-- index:
select id, name
from pgbroker.queue
order by pending_count desc nulls last, id
limit 1
