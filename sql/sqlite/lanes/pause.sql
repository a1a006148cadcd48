-- Until then no node may own a lane: each gives up what it owns at its next beat, and acquires none.
-- It ends by itself; 0 lifts it.
-- in:  pause_us int8
-- out: none
INSERT INTO sluice_outbox_meta (name, value)
VALUES ('lanes_pause', strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?1 / 1000000.0)))
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
