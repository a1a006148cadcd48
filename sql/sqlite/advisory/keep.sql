-- A key whose transaction is about to be committed, and that stays ours: there is no lock that could outlive it, so a row
-- does, as with guard. No holder: it is of advisory, whose nodes may start beside it. No RETURNING, as in guard/lease.
-- in:  claim text[], epoch int8, lease_us int8, held_by text
-- out: none
INSERT INTO sluice_outbox_claims (claim, epoch, ends_at, holder, held_by)
VALUES (?1, ?2, strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3 / 1000000.0)), 0, ?4)
    ON CONFLICT (claim) DO NOTHING;
