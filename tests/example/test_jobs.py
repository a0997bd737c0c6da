"""What the handlers do, called as plain functions."""

from pathlib import Path

import pytest

from example_project.documents.analysis import analyse_file
from example_project.documents.catalogue import CatalogueBusy
from example_project.documents.jobs import analyse_document, list_in_catalogue
from example_project.documents.models import Batch, CatalogueEntry, Document

pytestmark = pytest.mark.django_db


def document_of(path: Path) -> Document:
    return Document.objects.create(batch=Batch.objects.create(folder=str(path.parent)), path=str(path))


def test_an_analysis_is_saved_and_answered(folder: Path) -> None:
    document = document_of(folder / "western.py")

    answer = analyse_document(document.pk)

    document.refresh_from_db()
    expected = analyse_file(folder / "western.py")
    assert (document.encoding, document.line_count, document.token_count, document.sha256) == expected
    assert document.analysed_at is not None
    assert answer == expected._asdict()


def test_an_analysis_that_runs_twice_leaves_the_same_row(folder: Path) -> None:
    document = document_of(folder / "plain.py")

    assert analyse_document(document.pk) == analyse_document(document.pk)

    assert Document.objects.filter(analysed_at__isnull=False).count() == 1


def test_a_broken_file_fails_and_leaves_the_document_unanalysed(folder: Path) -> None:
    document = document_of(folder / "torn.py")

    with pytest.raises(Exception, match="EOF"):
        analyse_document(document.pk)

    document.refresh_from_db()
    assert document.analysed_at is None
    assert document.sha256 == ""


def test_the_catalogue_refuses_the_first_contact_and_lists_on_the_second(folder: Path) -> None:
    entry = CatalogueEntry.objects.create(document=document_of(folder / "plain.py"))

    with pytest.raises(CatalogueBusy):
        list_in_catalogue(entry.document_id)
    entry.refresh_from_db()
    assert (entry.contact_count, entry.listed_at) == (1, None)

    assert list_in_catalogue(entry.document_id) == {"contacts": 2}
    entry.refresh_from_db()
    assert entry.listed_at is not None
