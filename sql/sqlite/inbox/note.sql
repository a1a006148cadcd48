-- In the receiver's transaction: note that this consumer handles this message. No row is affected if it has done so
-- before.
-- in:  consumer text, message_id text
-- out: none
INSERT INTO sluice_inbox (consumer, message_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING;
