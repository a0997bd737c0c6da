"""Real work for the broker: read a folder of source files into documents, and analyse each in a job."""
