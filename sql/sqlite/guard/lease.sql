-- A row for this key, unless another turn has it. guard/draw has run before. A row is found by its name:
-- there is nothing that would have to be passed by, and `turns` is not needed. Run once for each key, and guard/leased counts
-- them: RETURNING would open a table of its own each time, ten times as much as all the rest.
-- in:  claim text[], turns int8, lease_us int8, holder int8, held_by text
-- out: none
INSERT INTO sluice_outbox_claims (claim, epoch, ends_at, holder, held_by)
SELECT ?1, (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch'),
       strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3 / 1000000.0)), ?4, ?5
 WHERE ?2 IS NOT NULL
    ON CONFLICT (claim) DO NOTHING;
