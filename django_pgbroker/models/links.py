"""Links between the tables of the broker: joins for reading, without a constraint in the database."""

from typing import Any

from django.db import models


def link_to(model: str, **options: Any) -> "models.ForeignKey[Any, Any]":
    """A foreign key for joins only: the hot tables carry no constraint, and deleting a row cascades nowhere.

    Args:
        model: name of a model of this app.
        options: further arguments of ``ForeignKey``, such as ``null`` or ``verbose_name``.
    """
    options.setdefault("related_name", "+")
    return models.ForeignKey(model, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, **options)
