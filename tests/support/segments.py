"""The segments of a table of layout rotated: producers are sent on to the next one, and what is emptied is counted.

    audit(url)
    next_segment(url)         # as after half a million messages
    truncations(url)          # (how many took messages with them, how many messages those were)
"""
from harness import query

SEGMENT = 524288  # ids
SEGMENTS = 4

AUDIT = """
CREATE TABLE truncations (segment text NOT NULL, messages bigint NOT NULL);
CREATE FUNCTION note_truncation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO truncations SELECT %L, count(*) FROM %I', TG_TABLE_NAME, TG_TABLE_NAME);
    RETURN NULL;
END $$;
""" + "".join(f"CREATE TRIGGER note BEFORE TRUNCATE ON outbox_s{n} EXECUTE FUNCTION note_truncation();"
              for n in range(SEGMENTS))


def audit(url):
    """From now on each truncation leaves a row, if it is committed."""
    query(url, AUDIT)


def next_segment(url):
    """Ids go forward, which is always legal."""
    query(url, "SELECT setval('outbox_ids', nextval('outbox_ids') + ?)", SEGMENT)


def truncations(url):
    return query(url, "SELECT count(*), coalesce(sum(messages), 0)::bigint FROM truncations WHERE messages > 0")[0]


def segment_of(id):
    return id // SEGMENT % SEGMENTS
