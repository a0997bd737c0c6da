-- purpose: how many connections this role may have at once, by each limit that the server knows, and how many are in use
-- params:
-- returns: a row for each limit: what it belongs to (server, role, database), its name, connections allowed, and in use
--          without this one
-- moves:
-- locks:   none
-- index:   the catalogue's own
-- Superusers may use what is reserved, and no limit of a role or database holds for them.
with me as materialized (
    select oid, rolname, rolsuper, rolconnlimit
    from pg_roles
    where rolname = session_user
),
reserved as materialized (
    select
        case when me.rolsuper then 0 else current_setting('superuser_reserved_connections')::bigint end
        + case
            when me.rolsuper or exists (
                select from pg_roles as role
                where role.rolname = 'pg_use_reserved_connections' and pg_has_role(me.oid, role.oid, 'usage')
            ) then 0
            else coalesce(current_setting('reserved_connections', true), '0')::bigint
        end as connections
    from me
),
session as materialized (
    select usesysid, datname
    from pg_stat_activity
    where usesysid is not null and datid is not null and leader_pid is null and pid <> pg_backend_pid()
)
select
    'server' as kind,
    '' as name,
    current_setting('max_connections')::bigint - reserved.connections as allowed,
    (select count(*) from session) as used
from reserved
union all
select 'role', me.rolname::text, me.rolconnlimit::bigint, (select count(*) from session where usesysid = me.oid)
from me
where me.rolconnlimit >= 0 and not me.rolsuper
union all
select
    'database', pg_database.datname::text, pg_database.datconnlimit::bigint,
    (select count(*) from session where session.datname = pg_database.datname)
from pg_database, me
where pg_database.datname = current_database() and pg_database.datconnlimit >= 0 and not me.rolsuper
