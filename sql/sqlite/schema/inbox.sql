-- The inbox of a receiver: which messages each consumer has handled. Made by `sluice init --inbox`, in the database of
-- the receiver, which needs no outbox. The word sluice_inbox is replaced by what is configured.
CREATE TABLE IF NOT EXISTS sluice_inbox (
    consumer   TEXT NOT NULL,
    message_id TEXT NOT NULL,
    seen_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    PRIMARY KEY (consumer, message_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sluice_inbox_ix_seen ON sluice_inbox (seen_at);
