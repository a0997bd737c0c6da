"""The worker: its rules alone, and whole workers in threads of this process on a real PostgreSQL."""
