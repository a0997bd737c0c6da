"""Who may do what: PUBLIC nothing, and a role without CREATE on the database everything that migrate needs."""

from collections.abc import Iterator
from secrets import token_hex

import pytest
from django.db import ProgrammingError
from psycopg import sql

from tests.migrations.conftest import Database
from tests.migrations.test_migrate import TABLES

PUBLIC_RIGHTS = """
select format('%s on %s', privilege, relname)
from pg_class, unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) as privilege
where relnamespace = 'pgbroker'::regnamespace and relkind in ('r', 'p')
    and has_table_privilege('public', pg_class.oid, privilege)
union all
select format('%s on %s', privilege, relname)
from pg_class, unnest(array['usage', 'select', 'update']) as privilege
where relnamespace = 'pgbroker'::regnamespace and relkind = 'S'
    and has_sequence_privilege('public', pg_class.oid, privilege)
union all
select format('execute on %s', proname)
from pg_proc
where pronamespace = 'pgbroker'::regnamespace and has_function_privilege('public', oid, 'execute')
union all
select format('%s on schema', privilege)
from unnest(array['usage', 'create']) as privilege
where has_schema_privilege('public', 'pgbroker', privilege)
"""

OBJECTS = """
select 'table' from pg_class where relnamespace = 'pgbroker'::regnamespace and relkind in ('r', 'p')
union select 'sequence' from pg_class where relnamespace = 'pgbroker'::regnamespace and relkind = 'S'
union select 'function' from pg_proc where pronamespace = 'pgbroker'::regnamespace
"""


def test_public_has_no_rights_at_all(database_on_each_server: Database) -> None:
    database = database_on_each_server
    with database.connect() as connection:
        connection.execute("alter default privileges grant select on tables to public")

    database.migrate()

    assert database.query(PUBLIC_RIGHTS) == []
    assert sorted(database.query(OBJECTS)) == [("function",), ("sequence",), ("table",)]


@pytest.fixture
def limited_role(database_on_each_server: Database) -> Iterator[str]:
    """A login role that may not create schemas in the database."""
    name = f"pgbroker_{token_hex(6)}"
    role = sql.Identifier(name)
    with database_on_each_server.connect() as connection:
        connection.execute(sql.SQL("create role {} login").format(role))
        # Django's own table of migrations lives there
        connection.execute(sql.SQL("grant create on schema public to {}").format(role))
        yield name
        connection.execute(sql.SQL("drop owned by {}").format(role))
        connection.execute(sql.SQL("drop role {}").format(role))


@pytest.mark.parametrize(
    "schema",
    ["create schema pgbroker authorization {}", "create schema pgbroker; grant usage, create on schema pgbroker to {}"],
    ids=["owned by the role", "owned by the DBA"],
)
def test_a_role_without_create_on_the_database_migrates_into_a_schema_made_by_a_dba(
    database_on_each_server: Database, limited_role: str, schema: str
) -> None:
    database = database_on_each_server
    with database.connect() as connection:
        connection.execute(sql.SQL(schema).format(sql.Identifier(limited_role)))

    database.migrate(USER=limited_role)
    database.migrate("zero", USER=limited_role)
    assert database.tables() == set()
    assert database.query("select to_regnamespace('pgbroker')::text") == [("pgbroker",)]
    database.migrate(USER=limited_role)

    assert database.tables() == TABLES
    owners = database.query("select distinct tableowner::text from pg_tables where schemaname = 'pgbroker'")
    assert owners == [(limited_role,)]


def test_without_the_schema_such_a_role_is_told_what_it_lacks(
    database_on_each_server: Database, limited_role: str
) -> None:
    with pytest.raises(ProgrammingError, match="permission denied for database"):
        database_on_each_server.migrate(USER=limited_role)
