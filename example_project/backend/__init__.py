"""PostgreSQL backend that starts this clone's embedded server on the first connection, never at settings import."""
