-- Messages of a producer. Their ids are drawn here, when the table is locked already, as those of anybody: nodes rely on that.
-- in:  entity_key text[], payload bytea[]
-- out: id int8
INSERT INTO sluice_outbox (topic, entity_key, payload)
SELECT 'bench', u.a, u.b FROM unnest($1, $2) AS u (a, b)
RETURNING id;
