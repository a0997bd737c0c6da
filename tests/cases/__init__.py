"""Bugs that other job queues have had, each tried against this one under its id (see table.py); also a Django app."""
