-- It could not be done: to be tried again after this time, by whoever comes first.
-- in:  session int8, way int8, pause_us int8
-- out: none
UPDATE sluice_outbox_fences
   SET busy_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3 / 1000000.0))
 WHERE session = ?1 AND way = ?2;
