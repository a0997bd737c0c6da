"""The doctor: looks at the server, the tables and the workers, and says what is wrong and what to do about it."""
