"""Other versions beside today's: migrations while workers run, an earlier release on today's schema."""
