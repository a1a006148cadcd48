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
-- commit a message into it. Whoever reads the segment at this moment is waited for no longer than others can wait for us;
-- one node tries at a time, since two that have looked would wait for each other.
-- 1: it is empty; 2: it would be, but for what is held; 3: somebody reads it; 0: there is more in it.
CREATE OR REPLACE FUNCTION sluice_outbox_clear(segment regclass) RETURNS integer LANGUAGE plpgsql
SET enable_seqscan = off SET lock_timeout = '50ms' AS $$
DECLARE
    look constant text := format($look$
SELECT EXISTS (SELECT FROM sluice_outbox_lanes l LEFT JOIN sluice_outbox_positions p ON p.lane = l.lane
                WHERE EXISTS (SELECT FROM %1$s o
                               WHERE o.lane = l.lane AND NOT o.held AND o.id >= coalesce(p.floor, 0))),
       EXISTS (SELECT FROM %1$s o WHERE o.held AND NOT o.delayed AND o.entity_key >= '')
    OR EXISTS (SELECT FROM %1$s o WHERE o.held AND o.entity_key IS NULL AND o.available_at >= '-infinity')
    OR EXISTS (SELECT FROM %1$s o WHERE o.delayed AND o.available_at >= '-infinity')
$look$, segment);
    waits boolean;
    holds boolean;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('clear', segment::oid::bigint)) THEN
        RETURN 0;
    END IF;
    EXECUTE look INTO waits, holds;
    IF NOT waits AND NOT holds THEN
        EXECUTE format('LOCK TABLE %s', segment); -- for itself alone
        EXECUTE look INTO waits, holds;
        IF NOT waits AND NOT holds THEN
            EXECUTE format('TRUNCATE %s', segment);
            RETURN 1;
        END IF;
    END IF;
    RETURN CASE WHEN waits THEN 0 ELSE 2 END;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN 3;
END
$$;

-- Of a segment that cannot be emptied, since something in it is held, perhaps for weeks: deletes what is done, so many rows at
-- a time. Returns how many it were.
CREATE OR REPLACE FUNCTION sluice_outbox_sweep(segment regclass, most bigint) RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    swept bigint;
BEGIN
    EXECUTE format($sweep$
WITH p AS MATERIALIZED (SELECT q.lane AS sluice_lane, q.floor FROM sluice_outbox_positions q)
DELETE FROM %1$s o
 WHERE o.id = ANY (ARRAY(SELECT m.id FROM %1$s m JOIN p ON p.sluice_lane = m.lane
                          WHERE m.id > 0 AND NOT m.held AND m.id < p.floor LIMIT $1))
$sweep$, segment) USING most;
    GET DIAGNOSTICS swept = ROW_COUNT;
    RETURN swept;
END
$$;

UPDATE sluice_outbox_meta SET value = '5' WHERE name = 'schema_version';
