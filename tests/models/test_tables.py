"""The unmanaged models say of the tables exactly what PostgreSQL says: Django itself never compares them."""

from io import StringIO

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models

from tests.factories import (
    ArchivedJobFactory,
    ExecutionFactory,
    JobFactory,
    JobProgressFactory,
    JobStepFactory,
    WorkerFactory,
)

MODELS = list(apps.get_app_config("django_pgbroker").get_models())
CONCRETE = [model for model in MODELS if not model._meta.proxy]

COLUMNS = """
select attname, format_type(atttypid, atttypmod), not attnotnull
from pg_attribute
where attrelid = %s::regclass and attnum > 0 and not attisdropped
"""


def columns_of_model(model: type[models.Model]) -> set[tuple[str, str | None, bool]]:
    return {(field.column, field.db_type(connection), field.null) for field in model._meta.fields if field.column}


def columns_of_table(table: str) -> set[tuple[str, str, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, [table])
        return set(cursor.fetchall())


@pytest.mark.django_db
@pytest.mark.parametrize("model", CONCRETE, ids=lambda model: model.__name__)
def test_model_and_table_agree_on_columns_types_and_nullability(model: type[models.Model]) -> None:
    assert columns_of_model(model) == columns_of_table(model._meta.db_table)


@pytest.mark.django_db
def test_every_table_has_a_model_and_every_model_a_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            'select format(\'"pgbroker"."%s"\', relname) from pg_class'
            " where relnamespace = 'pgbroker'::regnamespace and relkind in ('r', 'p') and not relispartition"
        )
        tables = [name for (name,) in cursor.fetchall()]

    assert sorted(tables) == sorted(model._meta.db_table for model in CONCRETE)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_model_is_managed_by_django_nor_used_on_another_database(model: type[models.Model]) -> None:
    concrete = model._meta.concrete_model._meta

    assert (concrete.managed, concrete.required_db_vendor) == (False, "postgresql")


@pytest.mark.django_db
def test_no_link_is_a_constraint_in_the_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "select conrelid::regclass::text from pg_constraint where contype = 'f'"
            " and (connamespace = 'pgbroker'::regnamespace"
            "   or confrelid in (select oid from pg_class where relnamespace = 'pgbroker'::regnamespace))"
        )
        assert cursor.fetchall() == []


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    output = StringIO()

    call_command("makemigrations", "django_pgbroker", check=True, dry_run=True, stdout=output)

    assert "No changes detected" in output.getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "factory",
    [JobFactory, ArchivedJobFactory, ExecutionFactory, WorkerFactory, JobProgressFactory],
    ids=lambda factory: factory.__name__,
)
def test_a_row_reads_back_as_it_was_made_and_has_a_name(factory: type[JobFactory]) -> None:
    made = factory()

    found = type(made).objects.get(pk=made.pk)

    assert str(found) == str(made)
    assert str(found) not in ("", f"{type(made).__name__} object ({made.pk})")


@pytest.mark.django_db
def test_a_step_and_a_cursor_read_back_and_have_names() -> None:
    for name, shown in (("load", "step 'load' of job 7"), ("", "cursor of job 7")):
        made = JobStepFactory(job_id=7, name=name)
        found = type(made).objects.get(pk=(7, name))
        assert (str(found), found.result) == (shown, {"rows": 7})
