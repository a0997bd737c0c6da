"""What the exit status of a command says. Read by scripts, so the numbers never change; told by every ``--help``."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    #: All that was asked for is done, or left to a job of the broker.
    DONE = 0
    #: Something is wrong with what was given, or the database is away.
    ERROR = 1
    #: Options that do not exist, or words that they do not take (argparse).
    USAGE = 2
    #: Some objects were changed; others were refused, and each is told.
    IN_PART = 3
    #: The user of ``--as`` may not do this, or said no when asked.
    NOT_PERMITTED = 4
    #: There was nothing to change, or none of what was named could be.
    NOTHING = 5


EXIT_CODES_HELP = """exit status:
  0  done
  1  an error: impossible values, the database is away
  2  wrong usage
  3  done in part: some were refused, and each is told
  4  not permitted, or not confirmed
  5  nothing was changed: nothing matched, or all were refused
"""

#: What a shell reports of a command whose reader went away: 128 + SIGPIPE.
BROKEN_PIPE = 141

#: And of one that Ctrl-C ended: 128 + SIGINT.
INTERRUPTED = 130
