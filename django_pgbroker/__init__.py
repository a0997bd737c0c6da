"""PostgreSQL as a job broker for Django."""
