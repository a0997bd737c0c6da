"""``manage.py pgbroker_scheduler``: makes jobs due, beside workers with ``--no-maintenance``."""

from django_pgbroker.maintenance.duties import SCHEDULER_DUTIES
from django_pgbroker.management.duty_command import DutyCommand


class Command(DutyCommand):
    """The duties that make jobs due, in a process of their own; any number of such processes may run."""

    help = (
        "Makes scheduled jobs pending when their time has come. "
        "Workers do this too unless they are started with --no-maintenance."
    )
    label = "scheduler"
    duties = SCHEDULER_DUTIES
