"""Progress, steps and cursors of long jobs; the DDL is in ``sql/0003_progress.sql``."""

from django.db import migrations, models

from django_pgbroker.migrations._schema_change import SchemaChange

_BROKER = {"managed": False, "required_db_vendor": "postgresql"}


class Migration(migrations.Migration):
    """How far a job is, and what it need not do again."""

    dependencies = [("django_pgbroker", "0002_cancel")]

    operations = [
        SchemaChange(
            "0003_progress",
            migration="0003_progress",
            state_operations=[
                migrations.AddField("job", "is_tracked", models.BooleanField(default=False)),
                migrations.AddField("archivedjob", "progress", models.JSONField(null=True, blank=True)),
                migrations.CreateModel(
                    "JobProgress",
                    fields=[
                        (
                            "job",
                            models.OneToOneField(
                                db_constraint=False,
                                on_delete=models.DO_NOTHING,
                                primary_key=True,
                                related_name="progress",
                                serialize=False,
                                to="django_pgbroker.job",
                            ),
                        ),
                        ("lease_token", models.BigIntegerField()),
                        ("done", models.FloatField()),
                        ("total", models.FloatField(null=True, blank=True)),
                        ("stage", models.TextField(null=True, blank=True)),
                        ("updated_at", models.DateTimeField()),
                    ],
                    options={
                        **_BROKER,
                        "db_table": '"pgbroker"."job_progress"',
                        "verbose_name": "progress of a job",
                        "verbose_name_plural": "progress of jobs",
                    },
                ),
                migrations.CreateModel(
                    "JobStep",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "job_id", "name", blank=True, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("job_id", models.BigIntegerField()),
                        ("name", models.TextField(blank=True)),
                        ("lease_token", models.BigIntegerField()),
                        ("result", models.JSONField()),
                        ("finished_at", models.DateTimeField()),
                    ],
                    options={
                        **_BROKER,
                        "db_table": '"pgbroker"."job_step"',
                        "verbose_name": "step of a job",
                        "verbose_name_plural": "steps of jobs",
                    },
                ),
            ],
        ),
    ]
