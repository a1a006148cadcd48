-- One message for each of so many keys that has failed, and is tried again in an hour.
-- in:  first int8, keys int8, prefix text
-- out: none
INSERT INTO sluice_outbox (id, topic, entity_key, payload, attempts, last_error, available_at) OVERRIDING SYSTEM VALUE
SELECT g, 'bench', $3 || g % $2, '{}', 1, 'bench: refused', now() + interval '1 hour'
  FROM generate_series($1, $1 + $2 - 1) g;
