"""The verbs that people use: enqueue a job, follow it, pause a queue. Admin, commands and user code call these."""
