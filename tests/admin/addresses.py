"""Every address of a verb in the admin, found in the screens themselves, with a row that the verb can be done to."""

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.urls import reverse

from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.models import Queue
from tests import factories

APP = "django_pgbroker"

#: What a confirmation must be given for the verb to be done.
VALUES: dict[str, dict[str, Any]] = {
    "job.postpone": {"delay": "5"},
    "job.set_priority": {"priority": "7"},
    "job.move": {"queue": "other"},
    "job.edit": {"argument.order_id": "8"},
    "job.clone": {"argument.order_id": "8"},
    "job.enqueue": {"job_type": "shop.send_receipt", "argument.order_id": "8"},
    "queue.set": {"ageing_seconds": "30"},
    "worker.resize": {"concurrency": "3"},
    "worker.pause_queue": {"queue": "default"},
    "worker.resume_queue": {"queue": "away"},
}


@dataclass(frozen=True)
class Address:
    """One address."""

    model: str
    verb: Verb
    url_name: str
    is_for_one: bool

    def __str__(self) -> str:
        return f"{self.model}-{self.verb.name}-{'one' if self.is_for_one else 'list'}"

    def of(self, row: Any) -> str:
        """For this row, or for the list."""
        return reverse(f"admin:{self.url_name}", args=(row.pk,) if self.is_for_one else ())

    def make_row(self) -> Any:
        """A row that the verb can be done to."""
        factories.QueueFactory(name="other")
        if self.model == "queue":
            factories.JobFactory(queue=factories.QueueFactory(name="mail"))
            paused = {"paused_at": factories.timezone.now(), "paused_by": "ada"}
            Queue.objects.filter(name="mail").update(**(paused if self.verb.name == "queue.resume" else {}))
            return Queue.objects.get(name="mail")
        if self.model == "worker":
            return factories.WorkerFactory(queues={"default": 1, "away": 1}, paused_queues=["away"])
        return make_job(self.model, self.verb.states or frozenset(JobState))


def make_job(model: str, states: frozenset[JobState]) -> Any:
    """A job for the screen of ``model``, in one of the states."""
    if model == "job":
        state = next(state for state in sorted(states) if state in (0, 2, 4))
        return factories.JobFactory(state=state, attempt=1 if state is JobState.SCHEDULED else 0)
    if model == "deadletter":
        return factories.ArchivedJobFactory(dead=True)
    return factories.ArchivedJobFactory(state=max(state for state in states if state.is_finished))


def find_addresses() -> list[Address]:
    """All of them, as the default site has them."""
    found = []
    for model in apps.get_app_config(APP).get_models():
        screen = admin.site._registry.get(model)
        if screen is None or not hasattr(screen, "extra_button_handlers"):
            continue
        screen.get_urls()
        for handler in screen.extra_button_handlers.values():
            name = str(model._meta.model_name)
            found.append(Address(name, handler.config["verb"], handler.url_name, bool(handler.change_form)))
    return found


ADDRESSES = find_addresses()

#: The models with actions on selections, and the verbs of these.
ACTIONS = [each for each in ADDRESSES if not each.is_for_one and each.verb.name != "job.enqueue"]


def list_everything() -> dict[str, list[dict[str, Any]]]:
    """All rows that a verb could change, to be compared with later."""
    names = ("job", "jobpayload", "archivedjob", "queue", "worker", "auditentry")
    return {name: list(apps.get_model(APP, name).objects.order_by("pk").values()) for name in names}
