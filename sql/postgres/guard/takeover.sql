-- These keys, which are locked now, are taken from turns whose time is over; those keep their others. The
-- turns are locked in one order: or two workers that take over from the same two would wait for each
-- other. One that is renewed or settled at this moment is passed by: guard/lease then leaves its keys alone.
-- in:  claim text[], turns int8
-- out: none
WITH ended AS MATERIALIZED (
    SELECT c.epoch
      FROM sluice_outbox_claims c
     WHERE c.epoch >= $2 AND c.ends_at <= clock_timestamp() AND c.keys && $1
     ORDER BY c.epoch
       FOR UPDATE SKIP LOCKED
)
UPDATE sluice_outbox_claims c
   SET keys = ARRAY(SELECT k.claim FROM unnest(c.keys) AS k (claim) WHERE k.claim <> ALL ($1))
 WHERE c.epoch = ANY (ARRAY(SELECT e.epoch FROM ended e)) AND c.ends_at <= clock_timestamp();
