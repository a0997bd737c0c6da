"""The base of the commands that change the jobs of a selection: ``pgbroker_jobs`` and ``pgbroker_redrive``."""

from argparse import Namespace
from collections.abc import Callable
from functools import partial

from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.management.job_selection import MOST_COUNTED, ROWS_COUNTED, read_selection
from django_pgbroker.management.verb_command import VerbCommand
from django_pgbroker.operations.job_changes import Asking, count_matching


class BulkVerbCommand(VerbCommand):
    """A command whose verbs take ids or a filter."""

    def change_selected(self, options: Namespace, verb: Verb, act: Callable[..., VerbReport]) -> None:
        """Carry out a verb on the selection of the command line.

        Args:
            options: with those of ``add_selection`` and ``add_verb_options``.
            verb: which one.
            act: the function of ``job_verbs``, its own options given.

        Raises:
            CommandError: as ``carry_out`` and ``read_selection``.
        """
        chosen, asking = read_selection(options), self.read_asking(options)
        once = partial(act, chosen, **asking)
        if not isinstance(chosen, JobFilter):
            self.carry_out(options, once, is_many=len(chosen) > 1)
            return
        wholly = Asking(**asking, in_background=False) if options.foreground else asking
        self.carry_out(
            options,
            partial(act, chosen, **wholly),
            is_many=True,
            trial=once,
            matches=partial(count_matching, verb, chosen, most=MOST_COUNTED, rows=ROWS_COUNTED, using=options.database),
        )
