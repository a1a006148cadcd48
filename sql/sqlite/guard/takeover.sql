-- A key is taken from a turn whose time is over.
-- in:  claim text[], turns int8
-- out: none
DELETE FROM sluice_outbox_claims
 WHERE claim = ?1 AND epoch >= ?2 AND ends_at <= strftime('%Y-%m-%d %H:%M:%f', 'now');
