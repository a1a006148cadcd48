-- A turn is nothing but its keys here: without them nothing is left.
-- in:  turns int8
-- out: none
DELETE FROM sluice_outbox_claims WHERE claim = '' AND epoch >= ?1;
