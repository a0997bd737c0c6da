"""The time of the broker as an expression, for the column defaults of the models."""

from django.db.models import DateTimeField, Func


class Clock(Func):
    """``pgbroker.clock()``: the time of the database's statement, which the testing kit may shift."""

    function = "pgbroker.clock"
    arity = 0
    output_field = DateTimeField()
