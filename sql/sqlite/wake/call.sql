-- Wake all that sleep: any commit changes the file.
-- in:  none
-- out: told text
INSERT INTO sluice_outbox_meta (name, value) VALUES ('woken', strftime('%Y-%m-%d %H:%M:%f', 'now'))
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
RETURNING '';
