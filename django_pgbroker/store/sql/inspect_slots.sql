-- purpose: list the replication slots and how much WAL each of them keeps on the disk
-- params:
-- returns: name, whether in use, state of its WAL, bytes kept
-- moves:
-- locks:   none
-- index:   the catalogue's own
select
    slot_name::text as name,
    active as is_active,
    wal_status,
    coalesce(pg_wal_lsn_diff(
        case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, restart_lsn
    ), 0)::bigint as kept_bytes
from pg_replication_slots
order by kept_bytes desc
