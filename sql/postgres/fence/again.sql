-- It could not be done: to be tried again after this time, by whoever comes first.
-- in:  session int8, way int8, pause_us int8
-- out: none
UPDATE sluice_outbox_fences f
   SET busy_until = clock_timestamp() + $3 * interval '1 microsecond'
 WHERE f.session = $1 AND f.way = $2;
