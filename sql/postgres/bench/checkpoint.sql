-- From here on the first change of each page costs the same for everybody. Superusers only, and members of pg_checkpoint.
CHECKPOINT;
