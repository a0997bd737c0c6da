"""Duties that keep the broker tidy, and the runner that keeps each of them to one process at a time."""
