"""Cancel of running jobs; the DDL is in ``sql/0002_cancel.sql``."""

from django.db import migrations, models

from django_pgbroker.migrations._schema_change import SchemaChange


class Migration(migrations.Migration):
    """Who wants a running job cancelled, when and why."""

    dependencies = [("django_pgbroker", "0001_initial")]

    operations = [
        SchemaChange(
            "0002_cancel",
            migration="0002_cancel",
            state_operations=[
                migrations.AddField("job", "cancel_requested_at", models.DateTimeField(null=True, blank=True)),
                migrations.AddField("job", "cancel_requested_by", models.TextField(null=True, blank=True)),
                migrations.AddField("job", "cancel_reason", models.TextField(null=True, blank=True)),
            ],
        ),
    ]
