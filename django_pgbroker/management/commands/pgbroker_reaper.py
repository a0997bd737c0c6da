"""``manage.py pgbroker_reaper``: recovers, expires, measures and tidies, beside workers with ``--no-maintenance``."""

from django_pgbroker.maintenance.duties import REAPER_DUTIES
from django_pgbroker.management.duty_command import DutyCommand


class Command(DutyCommand):
    """The duties that keep the broker tidy, in a process of their own; any number of such processes may run."""

    help = (
        "Takes back jobs of dead workers, expires jobs, keeps partitions, presence and figures. "
        "Workers do this too unless they are started with --no-maintenance."
    )
    label = "reaper"
    duties = REAPER_DUTIES
