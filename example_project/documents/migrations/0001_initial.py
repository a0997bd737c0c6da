"""Tables of the example app."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("folder", models.TextField()),
                ("started_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "batches",
            },
        ),
        migrations.CreateModel(
            name="Document",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.TextField()),
                ("job_id", models.BigIntegerField(editable=False, null=True)),
                ("encoding", models.CharField(blank=True, max_length=40)),
                ("line_count", models.PositiveIntegerField(null=True)),
                ("token_count", models.PositiveIntegerField(null=True)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                ("analysed_at", models.DateTimeField(null=True)),
                (
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="documents",
                        to="documents.batch",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="CatalogueEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("job_id", models.BigIntegerField(editable=False, null=True)),
                ("contact_count", models.PositiveIntegerField(default=0)),
                ("listed_at", models.DateTimeField(null=True)),
                (
                    "document",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="catalogue_entry",
                        to="documents.document",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "catalogue entries",
            },
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.UniqueConstraint(fields=("batch", "path"), name="one_document_per_file"),
        ),
    ]
