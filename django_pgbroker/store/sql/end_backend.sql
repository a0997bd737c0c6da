-- purpose: end the server process of a connection that this worker has lost, whatever it does, and wait for its end
-- params:  process_id bigint
-- returns: whether it has ended; no row when it had already
-- moves:
-- locks:   none
-- index:
-- The name, which is this connection's own too, guards against a process id that somebody else has got meanwhile.
select pg_terminate_backend(pid, 5000)
from pg_stat_activity
where pid = %(process_id)s::bigint
  and pid <> pg_backend_pid()
  and datname = current_database()
  and usename = current_user
  and application_name = current_setting('application_name')
