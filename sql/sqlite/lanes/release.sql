-- Give a lane up, once nothing of it is in flight.
-- in:  lane int8[], session int8
-- out: none
UPDATE sluice_outbox_lanes SET owner = NULL, since = strftime('%Y-%m-%d %H:%M:%f', 'now')
 WHERE lane = ?1 AND owner = ?2;
