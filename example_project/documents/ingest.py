"""Read a folder into documents and enqueue their jobs, a hundred files in one transaction. Used by the commands."""

import sysconfig
from collections.abc import Iterator
from itertools import batched
from pathlib import Path

from django.db import transaction

from example_project.documents.jobs import analyse_document, list_in_catalogue
from example_project.documents.models import Batch, CatalogueEntry, Document

FILES_PER_TRANSACTION = 100
#: One document in ten, counted in each transaction, goes to the catalogue as well.
CATALOGUED_EVERY = 10

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
BROKEN_SOURCES = Path(__file__).parent / "broken"
_NOT_SOURCES = {"site-packages", "dist-packages", "__pycache__"}


class UnusableFolder(Exception):
    """The folder that was asked for cannot be read into documents."""


def find_sources(folder: Path, limit: int | None = None) -> list[Path]:
    """Return the Python files below ``folder`` in a fixed order, ``limit`` at most; installed packages are left out.

    A file whose name is not valid text has no place in a text column and is left out too.

    Raises:
        UnusableFolder: there is no such folder, or its name is not valid text.
    """
    if not folder.is_dir():
        raise UnusableFolder(f"{str(folder)!a} is not a folder. Next: name one that holds Python files.")
    if not is_text(folder.resolve()):
        raise UnusableFolder(f"the name of {str(folder)!a} is not valid UTF-8. Next: rename the folder.")
    found = [path for path in sorted(folder.resolve().rglob("*.py")) if is_source(path, folder.resolve())]
    return found[:limit]


def is_source(path: Path, folder: Path) -> bool:
    """Whether ``path`` is a file of its own below ``folder`` that a document can name."""
    return not _NOT_SOURCES & set(path.relative_to(folder).parts) and path.is_file() and is_text(path)


def is_text(path: Path) -> bool:
    """Whether the name of ``path`` can be stored as text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def broken_sources() -> list[Path]:
    """Return the files shipped with the example that no tokenizer accepts: their jobs become dead letters."""
    return sorted(BROKEN_SOURCES.glob("*.py.txt"))


def jobs_for(file_count: int) -> int:
    """Return how many jobs the ingest of that many files enqueues."""
    return file_count + len(range(0, file_count, CATALOGUED_EVERY))


def ingest(batch: Batch, paths: list[Path]) -> Iterator[list[int]]:
    """Save and enqueue ``paths``, a hundred in a transaction; yield the ids of the jobs of each once committed."""
    for hundred in batched(paths, FILES_PER_TRANSACTION):
        yield ingest_hundred(batch, hundred)


@transaction.atomic
def ingest_hundred(batch: Batch, paths: tuple[Path, ...]) -> list[int]:
    """Save a document for each of ``paths`` and enqueue its jobs, all or nothing; return the ids of the jobs."""
    documents = Document.objects.bulk_create([Document(batch=batch, path=str(path)) for path in paths])
    analyse = analyse_document.using(correlation_id=f"batch-{batch.pk}")
    for document in documents:
        document.job_id = analyse.enqueue(document_id=document.pk).id
    Document.objects.bulk_update(documents, ["job_id"])

    entries = CatalogueEntry.objects.bulk_create(
        [CatalogueEntry(document=document) for document in documents[::CATALOGUED_EVERY]]
    )
    listing = list_in_catalogue.using(correlation_id=f"batch-{batch.pk}")
    for entry in entries:
        entry.job_id = listing.enqueue(document_id=entry.document_id).id
    CatalogueEntry.objects.bulk_update(entries, ["job_id"])
    rows: list[Document | CatalogueEntry] = [*documents, *entries]
    return [row.job_id for row in rows if row.job_id is not None]
