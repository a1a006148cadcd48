#!/bin/sh
# Inserts orders for as long as it runs: what changes, and the message that tells of it, in one transaction.
set -eu
n=0
while :; do
    n=$((n + 1))
    order=$((n % 50))
    psql -q -v ON_ERROR_STOP=1 -v "order=$order" <<'SQL'
BEGIN;
INSERT INTO orders (id, paid) VALUES (:order, 1) ON CONFLICT (id) DO UPDATE SET paid = orders.paid + 1;
INSERT INTO outbox (topic, entity_key, event_type, payload)
SELECT 'orders', 'order:' || id, 'paid', convert_to(json_build_object('order', id, 'paid', paid)::text, 'UTF8')
  FROM orders WHERE id = :order;
COMMIT;
SQL
    sleep 0.1
done
