"""Transactional jobs; the DDL is in ``sql/0004_atomic.sql``."""

from django.db import migrations

from django_pgbroker.migrations._schema_change import SchemaChange


class Migration(migrations.Migration):
    """The function that completes a job inside its handler's transaction."""

    dependencies = [("django_pgbroker", "0003_progress")]

    operations = [SchemaChange("0004_atomic", migration="0004_atomic")]
