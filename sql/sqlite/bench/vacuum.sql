-- A table that lay still for a while: bench/checkpoint is enough.
-- in:  none
-- out: none
PRAGMA shrink_memory;
