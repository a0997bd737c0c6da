"""The jobs of the example. Both may run twice: they write what they find, whatever was there before."""

from pathlib import Path
from typing import Any

from django.utils import timezone

from django_pgbroker import Exponential, job
from example_project.documents.analysis import analyse_file
from example_project.documents.catalogue import ask_catalogue
from example_project.documents.models import CatalogueEntry, Document

SOON = Exponential(base_seconds=0.2, cap_seconds=2)


@job("documents.analyse_document", max_attempts=3, retry=SOON)
def analyse_document(document_id: int) -> dict[str, Any]:
    """Analyse a document's file and save what it holds. Fails on a file that is no Python source."""
    document = Document.objects.get(pk=document_id)
    analysis = analyse_file(Path(document.path))
    Document.objects.filter(pk=document_id).update(**analysis._asdict(), analysed_at=timezone.now())
    return analysis._asdict()


@job("documents.list_in_catalogue", max_attempts=5, retry=SOON)
def list_in_catalogue(document_id: int) -> dict[str, Any]:
    """Have the catalogue list a document. Its first refusal is an ordinary failure, and the retry succeeds."""
    contacts = ask_catalogue(document_id)
    CatalogueEntry.objects.filter(document_id=document_id).update(listed_at=timezone.now())
    return {"contacts": contacts}
