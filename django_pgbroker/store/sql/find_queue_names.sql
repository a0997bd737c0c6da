-- purpose: the names of all queues
-- params:
-- returns: name
-- moves:
-- locks:   none
-- index:
select name
from pgbroker.queue
order by name;
