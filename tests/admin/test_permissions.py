"""Who may see the screens, and that nobody can change anything through them."""

from collections.abc import Callable

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from tests.admin.screens import MODELS, address_of, list_url, make_row

pytestmark = pytest.mark.django_db


def rows_of(model: str) -> list[dict[str, object]]:
    """Everything stored for ``model``, to be compared with later."""
    return list(apps.get_model("django_pgbroker", model).objects.order_by("pk").values())


@pytest.mark.parametrize("model", MODELS)
def test_strangers_are_sent_to_the_login(client: Client, model: str):
    address = address_of(model, make_row(model))

    for url in (list_url(model), address):
        response = client.get(url)
        assert response.status_code == 302
        assert response.url.startswith(reverse("admin:login"))


@pytest.mark.parametrize("model", MODELS)
def test_staff_without_the_view_permission_see_nothing(staff_with: Callable[..., Client], model: str):
    other = "view_worker" if model != "worker" else "view_queue"
    browser = staff_with(other)
    address = address_of(model, make_row(model))

    assert browser.get(list_url(model)).status_code == 403
    assert browser.get(address).status_code == 403


@pytest.mark.parametrize("model", MODELS)
def test_the_view_permission_of_a_model_opens_its_list_and_its_details(staff_with: Callable[..., Client], model: str):
    browser = staff_with(f"view_{model}")
    address = address_of(model, make_row(model))

    listing = browser.get(list_url(model))

    assert listing.status_code == 200
    assert f'href="{address}' in listing.content.decode() or address.split("/")[-3] in listing.content.decode()
    assert browser.get(address).status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_holders_of_every_permission_of_a_model_still_change_nothing(staff_with: Callable[..., Client], model: str):
    browser = staff_with(*[f"{verb}_{model}" for verb in ("view", "add", "change", "delete")])
    refuse_all_writing(browser, model)


@pytest.mark.parametrize("model", MODELS)
def test_a_superuser_changes_nothing_either(operator: Client, model: str):
    refuse_all_writing(operator, model)


def refuse_all_writing(browser: Client, model: str) -> None:
    row = make_row(model)
    address = address_of(model, row)
    before = rows_of(model)
    forged = {"state": "10", "lease_token": "0", "attempt": "-1", "name": "x", "paused_at": "", "queue": "99"}

    assert browser.post(address, forged).status_code == 403
    assert browser.get(reverse(f"admin:django_pgbroker_{model}_add")).status_code == 403
    assert browser.post(reverse(f"admin:django_pgbroker_{model}_add"), forged).status_code == 403
    delete = address.replace("/change/", "/delete/")
    assert browser.get(delete).status_code == 403
    assert browser.post(delete, {"post": "yes"}).status_code == 403
    bulk = {"action": "delete_selected", "_selected_action": [row.pk], "index": "0", "post": "yes"}
    assert browser.post(list_url(model), bulk).status_code in {200, 302, 403}

    assert rows_of(model) == before
    assert before, "the comparison saw a row"


def test_pages_offer_no_way_to_write(operator: Client):
    job = make_row("job")

    page = operator.get(address_of("job", job)).content.decode()

    for control in ("_save", "_continue", "deletelink", "addlink", "<select", "<textarea"):
        assert control not in page.partition('id="content-main"')[2]


def test_a_job_page_hides_executions_from_those_who_may_not_see_them(staff_with: Callable[..., Client]):
    execution = make_row("execution")
    job = make_row("archivedjob")
    type(execution).objects.filter(pk=execution.pk).update(job_id=job.pk)
    address = address_of("archivedjob", job)

    without = staff_with("view_archivedjob").get(address).content.decode()
    with_them = staff_with("view_archivedjob", "view_execution").get(address).content.decode()

    assert "no such order" not in without
    assert "no such order" in with_them
