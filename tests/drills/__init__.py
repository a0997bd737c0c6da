"""Crash drills: many jobs, and processes, connections and servers that end at the worst moment. Also a Django app."""
