"""The duties, each on a real PostgreSQL and beside rivals on connections of their own."""
