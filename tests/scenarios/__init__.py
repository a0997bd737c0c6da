"""Whole processes: killed, frozen, cut off and stopped. Also the Django app whose jobs they run."""
