#!/usr/bin/env python
"""Django's command line for the example project. Works alone, from any folder."""

import os
import sys

#: What a shell reports for a process that Ctrl-C ended.
STOPPED = 130


def main() -> None:
    """Run one management command; a wrong environment and Ctrl-C end it with a line, not a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 - Ctrl-C may fall into the import
        from django.core.management import execute_from_command_line  # noqa: PLC0415 - needs the settings above
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"manage.py: {error}")
    except KeyboardInterrupt:
        sys.exit(STOPPED)


if __name__ == "__main__":
    main()
