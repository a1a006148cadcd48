-- Reads every row once, which sets its hint bits, as vacuum would: the first reader should not be the node.
-- in:  none
-- out: bytes int8
SELECT count(octet_length(o.payload)) FROM sluice_outbox o;
