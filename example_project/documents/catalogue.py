"""The unreliable outside service of the example: it refuses everybody's first contact. Called by a job."""

from django.db.models import F

from example_project.documents.models import CatalogueEntry


class CatalogueBusy(Exception):
    """The catalogue has no time now. Ask again later."""


def ask_catalogue(document_id: int) -> int:
    """Ask the catalogue to list a document, and return how often it was asked.

    The count is committed before the refusal, as a real service would remember its callers.

    Raises:
        CatalogueBusy: this was the first contact.
        CatalogueEntry.DoesNotExist: nobody made an entry for this document.
    """
    CatalogueEntry.objects.filter(document_id=document_id).update(contact_count=F("contact_count") + 1)
    contacts = CatalogueEntry.objects.get(document_id=document_id).contact_count
    if contacts == 1:
        raise CatalogueBusy(f"the catalogue is busy and did not list document {document_id}")
    return contacts
