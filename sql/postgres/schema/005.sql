-- Version 5: positions. In a table of layout `rotated` (schema/rotated) delivered messages stay where they are, and a
-- row here says so of many at once: of each of these lanes, all below its floor is done, or held. The highest counts.
-- Rows are inserted and, after a while, folded into one, never changed: one that is changed again and again is found more
-- and more slowly beside an old snapshot. Empty for any other layout.
CREATE TABLE IF NOT EXISTS sluice_outbox_done (
    seq    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lanes  bigint[] NOT NULL,
    floors bigint[] NOT NULL
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

CREATE OR REPLACE VIEW sluice_outbox_positions AS
SELECT u.lane::integer AS lane, max(u.floor) AS floor
  FROM sluice_outbox_done d
 CROSS JOIN LATERAL unnest(d.lanes, d.floors) AS u (lane, floor)
 GROUP BY u.lane;

-- Empties a segment if nothing in it is left to do: all below the positions of its lanes, and nothing held. Looked at
-- before it is locked, since producers may wait for that lock, and again when it is: then nobody is about to
-- commit a message into it. Whoever reads the segment at this moment is not waited for: false, and another time.
CREATE OR REPLACE FUNCTION sluice_outbox_clear(segment regclass) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET lock_timeout = '50ms' AS $$
DECLARE
    look constant text := format($look$
SELECT EXISTS (SELECT FROM %1$s o WHERE o.held AND NOT o.delayed AND o.entity_key >= '')
    OR EXISTS (SELECT FROM %1$s o WHERE o.held AND o.entity_key IS NULL AND o.available_at >= '-infinity')
    OR EXISTS (SELECT FROM %1$s o WHERE o.delayed AND o.available_at >= '-infinity')
    OR EXISTS (SELECT FROM sluice_outbox_lanes l LEFT JOIN sluice_outbox_positions p ON p.lane = l.lane
                WHERE EXISTS (SELECT FROM %1$s o
                               WHERE o.lane = l.lane AND NOT o.held AND o.id >= coalesce(p.floor, 0)))
$look$, segment);
    busy boolean;
BEGIN
    EXECUTE look INTO busy;
    IF busy THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', segment);
    EXECUTE look INTO busy;
    IF NOT busy THEN
        EXECUTE format('TRUNCATE %s', segment);
    END IF;
    RETURN NOT busy;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN false;
END
$$;

UPDATE sluice_outbox_meta SET value = '5' WHERE name = 'schema_version';
