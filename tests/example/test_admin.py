"""The example's own screens in the admin."""

from pathlib import Path

import pytest
from django.test import Client

from example_project.documents.ingest import ingest_hundred
from example_project.documents.models import Batch, Document


@pytest.mark.parametrize("model", ["batch", "document", "catalogueentry"])
def test_a_screen_lists_and_shows_what_the_jobs_wrote_and_changes_nothing(admin_client: Client, model: str) -> None:
    ingest_hundred(Batch.objects.create(folder="/somewhere"), (Path("/somewhere/<b>one</b>.py"),))
    place = f"/admin/documents/{model}/"

    listed = admin_client.get(place)

    assert listed.status_code == 200
    assert "<b>one" not in listed.content.decode()
    row = listed.context["cl"].result_list[0]
    assert admin_client.get(f"{place}{row.pk}/change/").status_code == 200
    assert admin_client.post(f"{place}{row.pk}/change/", {"path": "changed"}).status_code == 403
    assert admin_client.post(f"{place}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin_client.get(f"{place}add/").status_code == 403
    assert Document.objects.get().path == "/somewhere/<b>one</b>.py"
