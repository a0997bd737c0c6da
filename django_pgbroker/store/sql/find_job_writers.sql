-- purpose: the other transactions that have written or locked jobs, or are about to: they may have read what is out of
--          date by now, or hold rows that were passed over
-- params:
-- returns: the virtual id of a transaction, one a row
-- moves:
-- locks:   none
-- index:
select distinct virtualtransaction
from pg_locks
where locktype = 'relation'
  and database = (select oid from pg_database where datname = current_database())
  and relation = 'pgbroker.job'::regclass
  and mode in ('RowShareLock', 'RowExclusiveLock')
  and granted
  and pid is distinct from pg_backend_pid();
