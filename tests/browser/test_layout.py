"""What fits on a screen: lists on a desk, pages on a phone."""

import pytest
from playwright.sync_api import Page, expect

from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def width_beyond(page: Page, selector: str) -> int:
    """How many pixels of it are out of sight."""
    return int(page.locator(selector).first.evaluate("each => each.scrollWidth - each.clientWidth"))


def make_jobs() -> None:
    kind = factories.JobTypeFactory(name="example_project.reports.tasks.build_monthly_report")
    factories.JobFactory.create_batch(3, job_type=kind, running=True)
    factories.ArchivedJobFactory.create_batch(
        3, job_type=kind, dead=True, error_class="shop.errors.PaymentRefused",
        error_message="The bank refused the payment of order 7001 for the third time today",
    )  # fmt: skip


@pytest.mark.parametrize("model", ["job", "archivedjob", "deadletter"])
def test_a_list_fits_a_desk_with_all_its_columns(page: Page, model: str):
    make_jobs()
    page.set_viewport_size(DESK)
    page.goto(f"{model}/")
    expect(page.locator("#result_list")).to_be_visible()
    assert width_beyond(page, ".results") == 0


def test_a_question_about_a_long_name_fits_a_phone(page: Page):
    queue = factories.QueueFactory(name="q" * 100)
    page.set_viewport_size(PHONE)
    page.goto(f"queue/{queue.pk}/change/")
    page.get_by_role("button", name="Purge").click()
    expect(page.locator("#content h1")).to_contain_text("Purge queue q")
    assert width_beyond(page, "html") == 0
    assert page.locator(".pgb-main").bounding_box()["height"] >= 44  # type: ignore[index]


def test_headings_stand_over_their_cells(page: Page):
    make_jobs()
    page.set_viewport_size(DESK)
    page.goto("job/")
    starts = page.evaluate("""() => ["thead th.column-queue .text > *", "tbody td.field-queue"].map(selector => {
        const range = document.createRange();
        range.selectNodeContents(document.querySelector("#result_list " + selector));
        return range.getBoundingClientRect().left;
    })""")
    assert abs(starts[0] - starts[1]) < 1
