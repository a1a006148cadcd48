-- The inbox of a receiver: which messages each consumer has handled. Made by `sluice init --inbox`, in the database of
-- the receiver, which needs no outbox. The word sluice_inbox is replaced by what is configured.
CREATE TABLE IF NOT EXISTS sluice_inbox (
    consumer   text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    seen_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, message_id)
);
CREATE INDEX IF NOT EXISTS sluice_inbox_ix_seen ON sluice_inbox (seen_at);
