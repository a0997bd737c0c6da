"""Who may reach which verb: every address and every action, found in the screens, for every kind of visitor (B082)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from django_pgbroker.domain.verbs import VERBS
from django_pgbroker.models import AuditEntry
from tests.admin.addresses import ACTIONS, ADDRESSES, APP, VALUES, Address, list_everything
from tests.admin.screens import list_url

pytestmark = pytest.mark.django_db

each_address = pytest.mark.parametrize("address", ADDRESSES, ids=str)
each_action = pytest.mark.parametrize("address", ACTIONS, ids=str)


def sent_for(address: Address) -> dict[str, Any]:
    """What a confirmation sends."""
    return {"confirmed": "1", "reason": "a good one", **VALUES.get(address.verb.name, {})}


def filter_for(address: Address, row: Any) -> str:
    """The filter of a list that leaves this row."""
    return f"?queue={row.queue_id}" if not address.is_for_one and hasattr(row, "queue_id") else ""


def sent_as_action(address: Address, row: Any) -> dict[str, Any]:
    """What the confirmation of an action on a selection sends."""
    name = address.verb.name.partition(".")[2]
    return {"action": name, "index": "0", "_selected_action": [row.pk], **sent_for(address)}


def test_every_verb_has_an_address_on_a_screen():
    assert {address.verb for address in ADDRESSES} == set(VERBS)


@each_address
def test_a_get_does_nothing(operator: Client, address: Address):
    row = address.make_row()
    before = list_everything()
    response = operator.get(address.of(row), sent_for(address))
    assert response.status_code == 405
    page = f"{list_url(address.model)}{row.pk}/change/" if address.is_for_one else list_url(address.model)
    assert f'href="{page}">Go to where the button is' in response.content.decode()
    assert list_everything() == before


@each_address
def test_a_post_without_its_token_does_nothing(address: Address):
    row = address.make_row()
    before = list_everything()
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(get_user_model().objects.create_superuser("root"))
    assert browser.post(address.of(row), sent_for(address)).status_code == 403
    assert list_everything() == before


@each_address
def test_a_stranger_is_sent_to_the_login(client: Client, address: Address):
    row = address.make_row()
    before = list_everything()
    response = client.post(address.of(row), sent_for(address))
    assert response.status_code == 302
    assert response.url.startswith(reverse("admin:login"))
    assert list_everything() == before


@each_address
def test_who_is_no_staff_is_sent_to_the_login_whatever_the_permissions(client: Client, address: Address):
    row = address.make_row()
    user = get_user_model().objects.create_user("customer")
    user.user_permissions.set(Permission.objects.filter(content_type__app_label=APP))
    client.force_login(user)
    before = list_everything()
    response = client.post(address.of(row), sent_for(address))
    assert response.status_code == 302
    assert response.url.startswith(reverse("admin:login"))
    assert list_everything() == before


@each_address
def test_staff_with_all_permissions_but_the_verbs_may_not(staff_with: Callable[..., Client], address: Address):
    row = address.make_row()
    others = {verb.permission for verb in VERBS} - {address.verb.permission}
    browser = staff_with(f"view_{address.model}", *others)
    before = list_everything()
    for sent in (sent_for(address), {}):
        assert browser.post(address.of(row), sent).status_code == 403
    assert list_everything() == before


@each_address
def test_the_permission_of_the_verb_opens_no_screen(staff_with: Callable[..., Client], address: Address):
    row = address.make_row()
    browser = staff_with(address.verb.permission)
    before = list_everything()
    assert browser.post(address.of(row), sent_for(address)).status_code == 403
    assert list_everything() == before


@each_address
@pytest.mark.usefixtures("receipts")
def test_exactly_the_two_permissions_do_it_and_the_audit_names_the_user(
    staff_with: Callable[..., Client], address: Address
):
    row = address.make_row()
    permissions = (f"view_{address.model}", address.verb.permission)
    browser = staff_with(*permissions)

    response = browser.post(f"{address.of(row)}{filter_for(address, row)}", sent_for(address))

    assert response.status_code == 302, response.context["form"].errors
    entry = AuditEntry.objects.order_by("-pk").first()
    assert entry is not None
    assert (entry.action, entry.source, entry.reason) == (address.verb.name, "ui", "a good one")
    assert entry.actor == f"staff-{'-'.join(permissions)}"


@each_address
@pytest.mark.usefixtures("receipts")
def test_a_button_stands_where_the_verb_may_be_done_and_only_there(staff_with: Callable[..., Client], address: Address):
    row = address.make_row()
    page = f"{list_url(address.model)}{row.pk}/change/" if address.is_for_one else list_url(address.model)
    target = f'action="{address.of(row)}'

    allowed = (
        staff_with(f"view_{address.model}", address.verb.permission)
        .get(page + filter_for(address, row))
        .content.decode()
    )
    other = staff_with(f"view_{address.model}").get(page + filter_for(address, row)).content.decode()

    assert target in allowed
    assert target not in other


@each_action
def test_an_action_of_view_only_staff_changes_nothing(staff_with: Callable[..., Client], address: Address):
    row = address.make_row()
    browser = staff_with(f"view_{address.model}")
    before = list_everything()
    for sent in (sent_as_action(address, row), sent_as_action(address, row) | {"select_across": "1"}):
        browser.post(list_url(address.model), sent)
    assert list_everything() == before
    assert "action-select" not in browser.get(list_url(address.model)).content.decode()


@each_action
def test_an_action_is_done_with_exactly_its_permission(staff_with: Callable[..., Client], address: Address):
    row = address.make_row()
    browser = staff_with(f"view_{address.model}", address.verb.permission)

    response = browser.post(list_url(address.model), sent_as_action(address, row))

    assert response.status_code == 302
    assert AuditEntry.objects.filter(action=address.verb.name, target__jobs=[row.pk]).count() == 1


@each_action
def test_all_of_a_list_cannot_be_chosen_by_a_forged_post(operator: Client, address: Address):
    row, other = address.make_row(), address.make_row()
    sent = sent_as_action(address, row) | {"select_across": "1"}

    operator.post(list_url(address.model), sent)

    [entry] = AuditEntry.objects.all()
    assert entry.target["jobs"] == [row.pk]
    assert other.pk != row.pk


@each_address
def test_who_may_not_hears_nothing_of_what_there_is(staff_with: Callable[..., Client], address: Address):
    row = address.make_row()
    if address.is_for_one:
        type(row).objects.filter(pk=row.pk).delete()
    assert staff_with(f"view_{address.model}").post(address.of(row)).status_code == 403
