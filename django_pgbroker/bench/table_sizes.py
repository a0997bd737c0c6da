"""How large the live tables and their indexes are, and what is dead in them."""

from django_pgbroker.store.gateway import Gateway

_SIZES = """
select relname, pg_table_size(oid) from pg_class
where oid in ('pgbroker.job'::regclass, 'pgbroker.job_payload'::regclass)
    or oid in (select indexrelid from pg_index
        where indrelid in ('pgbroker.job'::regclass, 'pgbroker.job_payload'::regclass))
order by relname
"""

_DEAD = "select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_all_tables where relid = 'pgbroker.job'::regclass"


def read_sizes(gateway: Gateway) -> dict[str, int]:
    """Bytes of ``job``, ``job_payload`` and each of their indexes, by name."""
    return {name: int(size) for name, size in gateway.connection.execute(_SIZES, prepare=False).fetchall()}


def read_dead_rows(gateway: Gateway) -> int:
    """Dead rows of ``job``, as the server's statistics say."""
    [(dead,)] = gateway.connection.execute(_DEAD, prepare=False).fetchall()
    return int(dead)


def size_of_job(sizes: dict[str, int]) -> int:
    """Bytes of ``job`` with its indexes."""
    return sum(size for name, size in sizes.items() if not name.startswith("job_payload"))
