-- purpose: what the server is set to, how old its oldest transactions are, and what this role may see
-- params:
-- returns: the time, version, whether a standby; fsync, full_page_writes, synchronous_commit, autovacuum, track_counts;
--          share of the NOTIFY queue in use; age of the database in transactions and multixacts with the ages at which
--          vacuums are forced; the role, and whether it sees the sessions of other roles
-- moves:
-- locks:   none
-- index:   the catalogue's own
select
    pgbroker.clock() as read_at,
    current_setting('server_version') as version,
    pg_is_in_recovery() as is_standby,
    current_setting('fsync') as fsync,
    current_setting('full_page_writes') as full_page_writes,
    current_setting('synchronous_commit') as synchronous_commit,
    current_setting('autovacuum') as autovacuum,
    current_setting('track_counts') as track_counts,
    pg_notification_queue_usage() as notify_queue_usage,
    age(datfrozenxid)::bigint as transaction_age,
    mxid_age(datminmxid)::bigint as multixact_age,
    current_setting('autovacuum_freeze_max_age')::bigint as forced_transaction_age,
    current_setting('autovacuum_multixact_freeze_max_age')::bigint as forced_multixact_age,
    current_user::text as role_name,
    pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all
from pg_database
where datname = current_database()
