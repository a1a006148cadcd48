-- Until then no node may own a lane: each gives up what it owns at its next beat, and acquires none.
-- It ends by itself. In a form that does not depend on a session's settings; 0 lifts it.
-- in:  pause_us int8
-- out: none
INSERT INTO sluice_outbox_meta AS m (name, value)
SELECT 'lanes_pause', to_char((clock_timestamp() + $1 * interval '1 microsecond') AT TIME ZONE 'UTC',
                              'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
