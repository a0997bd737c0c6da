"""The how-to about permissions says what the code does: its matrix, and its hook, which is run as it stands there."""

import re
from pathlib import Path

import pytest

from django_pgbroker.domain.roles import Role
from django_pgbroker.domain.verbs import VERBS
from django_pgbroker.models import AuditEntry, Job
from tests import factories
from tests.management.commands import jobs, make_user, run

PAGE = (Path(__file__).parents[2] / "docs/how-to/permissions.md").read_text(encoding="utf-8")


@pytest.fixture
def hook(monkeypatch, settings):
    """The function of the page, under a name that can be imported."""
    code = re.search(r"# shop/access.py\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code[1], "shop/access.py", "exec"), names)
    monkeypatch.setattr(f"{__name__}.may_operate", names["may_operate"], raising=False)
    settings.PGBROKER = {"PERMISSION_HOOK": f"{__name__}.may_operate"}


def test_the_matrix_has_every_verb_with_its_permission_and_its_roles():
    rows = [re.findall(r"[^|]+", line) for line in PAGE.splitlines() if re.match(r"\| `(job|queue|worker)\.", line)]
    told = [[cell.strip().strip("`") for cell in row] for row in rows]

    assert told == [
        [verb.name, verb.permission, *("yes" if verb.role <= role else "" for role in Role)] for verb in VERBS
    ]


@pytest.mark.django_db(transaction=True)
def test_the_hook_of_the_page_refuses_the_jobs_of_others_and_the_rest_is_done(broker_database, hook):
    mail = factories.JobFactory(queue=factories.QueueFactory(name="mail"))
    other = factories.JobFactory()
    ada = make_user("ada", "cancel_job", "purge_queue")

    ran = jobs("cancel", str(mail.pk), str(other.pk), "--as", "ada", "--yes")

    assert ran.status == 3
    assert ran.rows == [
        [str(other.pk), "changed", ""],
        [str(mail.pk), "refused", "not permitted in queue 'mail' of tenant 'default'"],
    ]
    assert f"1 job cancelled: {other.pk}. 1 refused." in ran.error
    assert [entry.target["jobs"] for entry in AuditEntry.objects.all()] == [[other.pk]]
    alone = jobs("cancel", str(mail.pk), "--as", "ada")
    assert (alone.status, alone.rows[0][1]) == (4, "refused")
    assert run("pgbroker_queues", "purge", "mail", "--as", "ada", "--yes").status == 4

    ada.groups.create(name="mail team")
    assert jobs("cancel", str(mail.pk), "--as", "ada").status == 0
    assert not Job.objects.exists()
