"""The screen of dead letters: the same rows as the archive's, read from their own partition."""

from collections.abc import Mapping

from django.contrib import admin

from django_pgbroker.admin.archived_job import ArchivedJobScreen
from django_pgbroker.admin.display import job_type
from django_pgbroker.admin.filters import JobTypeFilter, QueueFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import DeadLetter


@admin.register(DeadLetter)
class DeadLetterScreen(ArchivedJobScreen):
    """Jobs whose attempts are spent, or whose error may not be retried."""

    states = frozenset({JobState.DEAD})
    is_whole_list_offered = True
    list_display = ["number", "ending", job_type, "queue", "attempts", "finished"]
    list_filter = (QueueFilter, JobTypeFilter)
    note = "Jobs that failed for good: their attempts are spent, or their error may not be retried."
    empty_note = "No dead letters. Every job has come through so far, or still has attempts left."

    def index_serves(self, chosen: Mapping[str, str]) -> bool:
        """Names have no index."""
        return False
