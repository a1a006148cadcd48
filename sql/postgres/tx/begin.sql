-- in:  none
-- out: none
BEGIN;
