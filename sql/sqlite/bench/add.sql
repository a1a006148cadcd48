-- A message of a producer; run once for each.
-- in:  entity_key text[], payload blob[]
-- out: id int8
INSERT INTO sluice_outbox (topic, entity_key, payload) VALUES ('bench', ?1, ?2) RETURNING id;
