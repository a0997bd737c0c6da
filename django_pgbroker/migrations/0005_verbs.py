"""What the verbs of operators need; the DDL is in ``sql/0005_verbs.sql``."""

from django.db import migrations, models

from django_pgbroker.domain.verbs import permissions_of
from django_pgbroker.migrations._schema_change import SchemaChange

_BROKER = {"managed": False, "required_db_vendor": "postgresql"}


class Migration(migrations.Migration):
    """Permissions of the verbs, redriven time-outs, pauses with an end, orders to one worker, an append-only audit."""

    dependencies = [("django_pgbroker", "0004_atomic")]

    operations = [
        SchemaChange(
            "0005_verbs",
            migration="0005_verbs",
            state_operations=[
                migrations.AddField("archivedjob", "timeout_seconds", models.IntegerField(null=True, blank=True)),
                migrations.AddField("queue", "resume_at", models.DateTimeField(null=True, blank=True)),
                migrations.AddField("worker", "ordered_concurrency", models.IntegerField(null=True, blank=True)),
                migrations.AddField("worker", "paused_queues", models.JSONField(default=list)),
                migrations.AlterModelOptions(
                    "job",
                    options={
                        **_BROKER,
                        "permissions": permissions_of("job"),
                        "verbose_name": "job",
                        "verbose_name_plural": "jobs",
                    },
                ),
                migrations.AlterModelOptions(
                    "queue",
                    options={
                        **_BROKER,
                        "ordering": ("name",),
                        "permissions": permissions_of("queue"),
                        "verbose_name": "queue",
                        "verbose_name_plural": "queues",
                    },
                ),
                migrations.AlterModelOptions(
                    "worker",
                    options={
                        **_BROKER,
                        "permissions": permissions_of("worker"),
                        "verbose_name": "worker",
                        "verbose_name_plural": "workers",
                    },
                ),
            ],
        ),
    ]
