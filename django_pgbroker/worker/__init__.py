"""The process that runs jobs: claim, execute, acknowledge, in turns of one short transaction."""
