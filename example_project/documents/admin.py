"""Admin of the example: what the jobs found, to look at."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from example_project.documents.models import Batch, CatalogueEntry, Document


class ReadOnlyAdmin(admin.ModelAdmin):
    """Shows rows that only jobs write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    list_display = ["id", "folder", "started_at"]


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    list_display = ["path", "batch", "job_id", "encoding", "line_count", "token_count", "analysed_at"]
    list_filter = ["batch", "encoding"]
    search_fields = ["path"]
    list_select_related = ["batch"]


@admin.register(CatalogueEntry)
class CatalogueEntryAdmin(ReadOnlyAdmin):
    list_display = ["document", "job_id", "contact_count", "listed_at"]
    list_select_related = ["document"]
