-- As ordered/sent, where they are nearly all between the first id and the last. `which` is as in lanes/sent_stretch.
-- in:  which bytea, first int8
-- out: none
DELETE FROM sluice_outbox o
 WHERE o.id >= $2 AND o.id <= $2 + (octet_length($1) - 1)
   AND CASE WHEN o.id - $2 BETWEEN 0 AND octet_length($1) - 1 THEN get_byte($1, (o.id - $2)::int) = 1 END;
