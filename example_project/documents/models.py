"""What the example keeps: batches, their documents, and the catalogue entries of some of them."""

from django.db import models


class Batch(models.Model):
    """One reading of a folder."""

    folder = models.TextField()
    started_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "batches"

    def __str__(self) -> str:
        return f"batch {self.pk}"


class Document(models.Model):
    """A source file. Its job fills in what it found; a file that cannot be read as source stays unanalysed."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="documents", db_index=False)
    path = models.TextField()
    job_id = models.BigIntegerField(null=True, editable=False)
    encoding = models.CharField(max_length=40, blank=True)
    line_count = models.PositiveIntegerField(null=True)
    token_count = models.PositiveIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)
    analysed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "path"], name="one_document_per_file")]

    def __str__(self) -> str:
        return self.path


class CatalogueEntry(models.Model):
    """A document's place in the outside catalogue, which is unreliable: it answers only who asks again."""

    document = models.OneToOneField(Document, on_delete=models.CASCADE, related_name="catalogue_entry")
    job_id = models.BigIntegerField(null=True, editable=False)
    contact_count = models.PositiveIntegerField(default=0)
    listed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "catalogue entries"

    def __str__(self) -> str:
        return f"catalogue entry of {self.document_id}"
