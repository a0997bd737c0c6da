"""Middleware that is ready to use, as ``django_pgbroker.middleware.<name>`` in ``PGBROKER["MIDDLEWARE"]``."""

from django_pgbroker.middleware.around import AroundMiddleware
from django_pgbroker.middleware.connection_hygiene import ConnectionHygieneMiddleware
from django_pgbroker.middleware.locale import LocaleMiddleware
from django_pgbroker.middleware.log_filter import ContextLogFilter
from django_pgbroker.middleware.logging import LoggingMiddleware

__all__ = [
    "AroundMiddleware",
    "ConnectionHygieneMiddleware",
    "ContextLogFilter",
    "LocaleMiddleware",
    "LoggingMiddleware",
]
