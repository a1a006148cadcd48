-- A vacuum of this session pauses for a millisecond after every few pages: all at once it takes a processor from those
-- who work, for as long as they need for several batches.
-- in:  none
-- out: delay text
SELECT set_config('vacuum_cost_delay', '1', false);
