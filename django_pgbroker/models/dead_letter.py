"""The dead letters: archived jobs that wait for an operator."""

from django_pgbroker.domain.states import JobState
from django_pgbroker.models.archived_job import ArchivedJob
from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.querysets import ArchivedJobQuerySet


class DeadLetterManager(BrokerManager.from_queryset(ArchivedJobQuerySet)):  # type: ignore[misc]
    """Sees dead letters only, so that every query stays in their partition."""

    def get_queryset(self) -> ArchivedJobQuerySet:
        """The rows in state *dead*."""
        return super().get_queryset().filter(state=JobState.DEAD)  # type: ignore[no-any-return]


class DeadLetter(ArchivedJob):
    """One job whose attempts are spent, or whose error may not be retried."""

    objects = DeadLetterManager()  # type: ignore[misc]

    class Meta:
        proxy = True
        verbose_name = "dead letter"
        verbose_name_plural = "dead letters"
