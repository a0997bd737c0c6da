"""``pgbroker_roles`` makes the groups, completes them, takes nothing away, and is quiet the second time."""

import threading

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection

from django_pgbroker.domain.roles import Role
from django_pgbroker.domain.verbs import VERBS
from django_pgbroker.operations.roles import create_roles, list_permissions
from tests.management.commands import make_user, run

NAMES = ["pgbroker viewer", "pgbroker operator", "pgbroker admin"]


def permissions_of(name: str) -> set[str]:
    return set(Group.objects.get(name=name).permissions.values_list("codename", flat=True))


@pytest.mark.django_db
def test_each_role_includes_the_one_before_and_its_own_verbs():
    assert run("pgbroker_roles").status == 0

    viewer, operator, admin = map(permissions_of, NAMES)
    assert viewer < operator < admin
    assert "view_job" in viewer
    assert "view_auditentry" in viewer
    assert all(codename.startswith("view_") for codename in viewer)
    assert operator - viewer == {verb.permission for verb in VERBS if verb.role is Role.OPERATOR}
    assert admin == viewer | {verb.permission for verb in VERBS}


@pytest.mark.django_db
def test_it_tells_what_it_added_and_nothing_the_second_time():
    first, second = run("pgbroker_roles", "--json").json, run("pgbroker_roles", "--json").json

    assert [role["group"] for role in first["roles"]] == NAMES
    assert all(role["is_new"] and set(role["added"]) == permissions_of(role["group"]) for role in first["roles"])
    assert [(role["is_new"], role["added"]) for role in second["roles"]] == [(False, [])] * 3
    assert second["roles"][0]["had"] == len(list_permissions(Role.VIEWER))


@pytest.mark.django_db
def test_a_dry_run_makes_no_group():
    ran = run("pgbroker_roles", "--dry-run", "--json").json

    assert ran["is_dry_run"] is True
    assert [role["group"] for role in ran["roles"]] == NAMES
    assert "cancel_job" in ran["roles"][1]["added"]
    assert not Group.objects.exists()


@pytest.mark.django_db
def test_what_people_added_or_took_away_is_respected_and_completed():
    run("pgbroker_roles")
    viewer = Group.objects.get(name="pgbroker viewer")
    viewer.permissions.add(Permission.objects.get(codename="cancel_job"), Permission.objects.get(codename="add_user"))
    viewer.permissions.remove(Permission.objects.get(codename="view_job"))

    rows = {row[0]: row for row in run("pgbroker_roles").rows}

    assert rows["pgbroker viewer"][4] == "view_job"
    assert {"cancel_job", "add_user", "view_job"} <= permissions_of("pgbroker viewer")


@pytest.mark.django_db
def test_a_member_of_a_group_may_do_what_its_role_may():
    run("pgbroker_roles")
    user = make_user("ada")
    user.groups.add(Group.objects.get(name="pgbroker operator"))

    assert user.has_perm("django_pgbroker.cancel_job")
    assert not user.has_perm("django_pgbroker.redrive_job")


@pytest.mark.django_db
def test_without_the_permissions_it_says_migrate():
    Permission.objects.filter(codename="cancel_job").delete()

    ran = run("pgbroker_roles")

    assert ran.status == 1
    assert "cancel_job" in ran.error
    assert "migrate" in ran.error
    assert not Group.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_at_once_make_each_group_once():
    barrier, failures = threading.Barrier(2), []

    def create() -> None:
        barrier.wait()
        try:
            create_roles()
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert failures == []
    assert sorted(Group.objects.values_list("name", flat=True)) == sorted(NAMES)
    assert permissions_of("pgbroker admin") == list_permissions(Role.ADMIN)
