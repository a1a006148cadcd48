-- Is it of layout `rotated`?
-- in:  none
-- out: rotated bool
SELECT EXISTS (SELECT FROM sluice_outbox_meta m WHERE m.name = 'layout' AND m.value = 'rotated');
