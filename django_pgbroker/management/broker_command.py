"""The base of the commands that read or change the broker: help with examples, subcommands, errors, exit codes."""

import os
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connections

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import JobFinished, JobNotFound, NotPermitted, PgbrokerError, VerbRefused
from django_pgbroker.domain.names import suggest
from django_pgbroker.management.columns import make_printable
from django_pgbroker.management.exit_codes import BROKEN_PIPE, EXIT_CODES_HELP, INTERRUPTED, ExitCode

type Run = Callable[[Namespace], None]


class BrokerCommand(BaseCommand):
    """A command with subcommands, or with a ``run`` of its own.

    Subclasses declare options in ``add_arguments``, by ``add_subcommand`` and ``add_read_options``, and print with the
    functions of ``listing``. Errors of the broker and of the database become ``CommandError`` with an exit code.
    """

    #: What ``--help`` shows below the options.
    examples = ""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add examples and exit codes to ``--help``."""
        parser = super().create_parser(prog_name, subcommand, epilog=_write_epilog(self.examples), **kwargs)
        parser.formatter_class = RawDescriptionHelpFormatter
        return parser

    def add_subcommand(
        self, parser: CommandParser, name: str, run: Run, purpose: str, examples: str = ""
    ) -> CommandParser:
        """Declare one subcommand.

        Args:
            parser: of the command.
            name: as it is typed.
            run: called with the options.
            purpose: one sentence for ``--help``.
            examples: command lines, for its own ``--help``.

        Returns:
            Its parser, for its options.
        """
        if not hasattr(parser, "pgbroker_subcommands"):
            parser.pgbroker_subcommands = parser.add_subparsers(  # type: ignore[attr-defined]
                title="subcommands", metavar="SUBCOMMAND", required=True
            )
        own: CommandParser = parser.pgbroker_subcommands.add_parser(  # type: ignore[attr-defined]
            name,
            help=purpose,
            description=purpose,
            epilog=_write_epilog(examples),
            formatter_class=RawDescriptionHelpFormatter,
        )
        own.set_defaults(run=run)
        return own

    def add_read_options(self, parser: CommandParser) -> None:
        """Declare ``--json`` and ``--database``."""
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        parser.add_argument("--database", help="alias of the database with the jobs (default: PGBROKER['DATABASE'])")

    def run(self, options: Namespace) -> None:
        """What a command without subcommands does."""
        raise NotImplementedError

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the subcommand, or the command itself.

        Raises:
            CommandError: it failed, was refused or changed nothing; ``returncode`` is the exit status.
        """
        run: Run = options.pop("run", self.run)
        try:
            options["database"] = _read_alias(options.get("database"))
            run(Namespace(**options))
        except NotPermitted as error:
            raise CommandError(_write_lines(error), returncode=ExitCode.NOT_PERMITTED) from error
        except (JobNotFound, JobFinished, VerbRefused) as error:
            raise CommandError(_write_lines(error), returncode=ExitCode.NOTHING) from error
        except PgbrokerError as error:
            raise CommandError(_write_lines(error)) from error
        except Error as error:
            alias = options["database"]
            raise CommandError(
                f"the database {alias!r} did not answer ({_write_lines(error)}). Is it up, and has "
                f"`manage.py migrate --database {alias}` been run?"
            ) from error

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as a process; a reader that has seen enough, such as ``head``, ends it quietly."""
        try:
            super().run_from_argv(argv)
            self.stdout.flush()
        except BrokenPipeError:
            # Python flushes once more at the end, and would complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(BROKEN_PIPE)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


def _read_alias(given: str | None) -> str:
    alias = given or get_settings().database
    if alias not in connections.settings:
        raise CommandError(
            f"--database: {alias!r} is no alias in DATABASES. {suggest(alias, connections.settings)}".rstrip()
        )
    if connections[alias].vendor != "postgresql":
        raise CommandError(f"--database: {alias!r} is {connections[alias].vendor}; jobs are stored in PostgreSQL only")
    return alias


def _write_lines(error: Exception) -> str:
    """The message with its own lines, and nothing else that a terminal would obey."""
    return "\n".join(make_printable(line) for line in str(error).strip().split("\n"))


def _write_epilog(examples: str) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in examples.strip().splitlines()), "", EXIT_CODES_HELP])
