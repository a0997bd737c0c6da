-- purpose: the names of all queues
-- returns: name
select name
from pgbroker.queue
order by name;
