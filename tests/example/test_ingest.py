"""Documents and their jobs are one transaction."""

import os
from itertools import chain
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction

from django_pgbroker.models import Job, JobPayload
from example_project.documents.ingest import UnusableFolder, find_sources, ingest, ingest_hundred, jobs_for
from example_project.documents.models import Batch, CatalogueEntry, Document

pytestmark = pytest.mark.django_db


@pytest.fixture
def batch() -> Batch:
    return Batch.objects.create(folder="/somewhere")


def numbered(count: int) -> list[Path]:
    return [Path(f"/somewhere/{number}.py") for number in range(count)]


def test_each_document_has_a_job_that_names_it(batch: Batch) -> None:
    ingest_hundred(batch, tuple(numbered(3)))

    for document in Document.objects.all():
        assert document.job_id is not None
        assert Job.objects.get(pk=document.job_id).job_type.name == "documents.analyse_document"
        assert JobPayload.objects.get(pk=document.job_id).arguments == {"document_id": document.pk}


def test_one_document_in_ten_goes_to_the_catalogue_too(batch: Batch) -> None:
    job_ids = list(chain.from_iterable(ingest(batch, numbered(123))))

    assert CatalogueEntry.objects.count() == 13
    assert len(set(job_ids)) == 136 == jobs_for(123)
    assert set(job_ids) == set(Job.objects.values_list("id", flat=True))


def test_a_rolled_back_ingest_leaves_neither_documents_nor_jobs(batch: Batch) -> None:
    def ingest_and_fail() -> None:
        with transaction.atomic():
            ingest_hundred(batch, tuple(numbered(20)))
            assert Job.objects.count() == 22
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ingest_and_fail()

    assert not Document.objects.exists()
    assert not CatalogueEntry.objects.exists()
    assert not Job.objects.exists()
    assert not JobPayload.objects.exists()


def test_an_ingest_that_fails_half_way_leaves_neither_documents_nor_jobs(batch: Batch) -> None:
    with connection.cursor() as cursor:
        # the entries come last: by then the documents and their jobs are written
        cursor.execute("alter table documents_catalogueentry add constraint full_catalogue check (contact_count > 0)")

    with pytest.raises(IntegrityError, match="full_catalogue"):
        ingest_hundred(batch, tuple(numbered(20)))

    assert not Document.objects.exists()
    assert not Job.objects.exists()


def test_a_hundred_that_fails_leaves_the_hundred_before_it_whole(batch: Batch) -> None:
    paths = [*numbered(150), Path("/somewhere/149.py")]

    with pytest.raises(IntegrityError):
        list(ingest(batch, paths))

    assert Document.objects.count() == 100
    assert Job.objects.count() == 110


def test_sources_are_found_in_a_fixed_order_without_installed_packages(folder: Path) -> None:
    for other in ("site-packages/installed.py", "__pycache__/cached.py", "notes.txt"):
        (folder / other).parent.mkdir(exist_ok=True)
        (folder / other).touch()
    (folder / "folder.py").mkdir()
    Path(os.fsdecode(os.fsencode(folder) + b"/b\xe9.py")).touch()

    found = [path.name for path in find_sources(folder)]

    assert " ".join(found) == (
        "cyrillic.py empty.py marked.py module.py plain.py torn.py unended.py western.py windows.py"
    )
    assert [path.name for path in find_sources(folder, limit=2)] == found[:2]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableFolder, match=r"nowhere.*Next:"):
        find_sources(tmp_path / "nowhere")


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xe9"))
    odd.mkdir()

    with pytest.raises(UnusableFolder, match="not valid UTF-8"):
        find_sources(odd)
