-- purpose: tell the listening workers that queues have work
-- params:  channel text, queues text[] (as a literal)
-- returns: nothing of use
-- moves:
-- locks:   the notification queue of the server, while the transaction commits
-- index:
select pg_notify(%(channel)s::text, name)
from unnest(%(queues)s::text[]) as name;
