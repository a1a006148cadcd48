-- With skip-locked: is the row still ours? The transaction is the lock.
-- in:  id int8[], epoch int8[]
-- out: id int8
SELECT o.id FROM sluice_outbox o WHERE o.id = ?1 AND o.epoch = ?2;
