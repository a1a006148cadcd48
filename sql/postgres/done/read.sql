-- Where each lane goes on: all below is done, or held. In the transaction that acquires them: whoever had them before can
-- write no more.
-- in:  none
-- out: lane int8, floor int8
SELECT p.lane::bigint, p.floor FROM sluice_outbox_positions p;
