"""Names work exactly as they are or are refused: none can reach SQL, a channel or a command line as anything else."""

import pytest

from django_pgbroker.domain.errors import InvalidName
from django_pgbroker.domain.names import check_job_type_name, check_queue_name, check_tenant_name, suggest

HOSTILE = [
    "a'b",
    'a"b',
    "x; DROP TABLE y--",
    "%s",
    "%(x)s",
    "two words",
    "🚀",
    "\\",
    "",
    "a\x00",
    "a\n",
    "-x",
    None,
    7,
    "é",
]


@pytest.mark.parametrize("name", [*HOSTILE, "a" * 101, "a:5", "a,b"])
def test_a_queue_cannot_have_a_name_that_means_something_elsewhere(name):
    with pytest.raises(InvalidName, match="cannot be the name of a queue"):
        check_queue_name(name)


@pytest.mark.parametrize("name", [*HOSTILE, "a" * 201])
def test_a_job_type_cannot_have_a_name_that_means_something_elsewhere(name):
    with pytest.raises(InvalidName, match="cannot be the name of a job type"):
        check_job_type_name(name)


@pytest.mark.parametrize("name", ["", " a", "a ", "a\x00", "a\n", "\ud800", "a" * 101, None, 7])
def test_a_tenant_cannot_have_a_name_that_cannot_be_shown_or_stored(name):
    with pytest.raises(InvalidName, match="cannot be the name of a tenant"):
        check_tenant_name(name)


@pytest.mark.parametrize("name", ["default", "a.b-c_9", "0", "a" * 100])
def test_ordinary_names_are_kept(name):
    assert check_queue_name(name) == check_job_type_name(name) == check_tenant_name(name) == name


def test_a_job_type_may_have_a_colon_and_two_hundred_characters():
    assert check_job_type_name("shop:send." + "x" * 190)


@pytest.mark.parametrize("name", ["a'b", 'a"b', "x; DROP TABLE y--", "%s", "two words", "🚀", "\\"])
def test_a_tenant_may_be_called_anything_that_can_be_shown(name):
    assert check_tenant_name(name) == name


def test_a_suggestion_names_the_closest_known_names():
    assert suggest("shop.send_reciept", ["shop.send_receipt", "shop.other"]) == "Did you mean 'shop.send_receipt'?"


def test_a_suggestion_minds_no_case():
    assert suggest("queues", ["QUEUES", "LISTEN"]) == "Did you mean 'QUEUES'?"


def test_without_a_close_name_a_short_list_is_shown_and_a_long_one_is_not():
    assert suggest("zzz", ["b", "a"]) == "Known: 'a', 'b'."
    assert suggest("zzz", map(str, range(11))) == ""
