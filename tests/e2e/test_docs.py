"""What docs/operating.md tells an operator to type works as it stands there."""
import json
import os
import re
import shlex
import urllib.parse

import pytest

from harness import ROOT, query

CLAIMS = [["--strategy", "lanes"], ["--strategy", "guard"], ["--strategy", "advisory"],
          ["--strategy", "skip-locked", "--hold", "lease"], ["--strategy", "skip-locked", "--hold", "transaction"]]
INSERT = "INSERT INTO outbox (topic, entity_key, payload) VALUES ('orders', 'order:1', '{}')"


def section(heading):
    with open(os.path.join(ROOT, "docs", "operating.md"), encoding="utf-8") as f:
        return f.read().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def block(heading, language, nth=0):
    return re.findall(rf"^```{language}\n(.*?)^```$", section(heading), re.M | re.S)[nth]


def grants(nth=0):
    """The statements of the page, without comments: the first block is for everybody, the second for at most once,
    the third for a fence, the fourth for layout rotated."""
    text = re.sub(r"--.*", "", block("Roles and grants", "sql", nth))
    return [line.strip() for line in text.split(";") if line.strip()]


class Roles:
    """A database with the roles of the page, whose names are made unique: roles are the server's."""

    def __init__(self, pg, url, sluice):
        self.url, self.sluice = url, sluice
        self.suffix = urllib.parse.urlsplit(url).path.lstrip("/")
        for role in ("outbox_owner", "producer", "relay", "viewer", "operator"):
            pg.sql(f"CREATE ROLE {self.name(role)} LOGIN")
        query(url, f"GRANT CREATE ON SCHEMA public TO {self.name('outbox_owner')}")
        self.run("outbox_owner", "init")

    def name(self, role):
        return f"{role}_{self.suffix}"

    def url_of(self, role):
        return self.url.replace("postgres@", f"{self.name(role)}@")

    def execute(self, statement):
        query(self.url, re.sub(r"\b(producer|relay|viewer|operator)$", lambda m: self.name(m.group(1)), statement))

    def run(self, role, *args, **kw):
        return self.sluice.run(*args, db=self.url_of(role), **kw)

    def refused(self, role, sql):
        """By the server, for want of a grant."""
        psycopg2 = pytest.importorskip("psycopg2")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            query(self.url_of(role), sql)


@pytest.fixture
def roles(pg, pgdb, sluice):
    return Roles(pg, pgdb, sluice)


def receipt_of(done):
    return json.loads(done.stdout.splitlines()[0])["receipt"]


def test_grants_are_enough(roles):
    for statement in grants():
        roles.execute(statement)
    for verdict in ("--ack", "--retry", "--bury"):
        query(roles.url_of("producer"), INSERT)
        receipt = receipt_of(roles.run("relay", "pull", "--batch", 1))
        roles.run("relay", "pull", verdict, receipt)
    roles.run("producer", "push", "--topic", "t", "x")
    for flags in CLAIMS:
        roles.run("relay", "run", "--sink", "null:", "--drain", *flags)
        query(roles.url_of("producer"), INSERT)
    roles.run("relay", "run", "--sink", "null:", "--drain", "--retention", "1h")
    query(roles.url_of("producer"), INSERT)
    status = json.loads(roles.run("viewer", "status", "--json").stdout)
    assert (status["total"], status["dead"]) == (1, 1)
    for args in (["park", "--key", "k"], ["resume", "--all"], ["park", "--key", "k"], ["retry", "--all"]):
        roles.run("relay", "keys", *args, "--yes")
    query(roles.url, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'k', '')")
    roles.run("relay", "keys", "skip-head", "--key", "k", "--yes")
    roles.run("viewer", "keys")
    for role in ("viewer", "operator"):
        roles.run(role, "dead", "list")
        roles.run(role, "dead", "show", 1)
    roles.run("operator", "dead", "resend", "--all", "--yes")
    roles.run("operator", "resend", "--topic", "*", "--yes")


def test_grants_give_no_more(roles):
    for statement in grants():
        roles.execute(statement)
    for sql in ("SELECT payload FROM outbox", "DELETE FROM outbox", "UPDATE outbox SET payload = ''",
                "SELECT payload FROM outbox_dead", "UPDATE outbox_meta SET value = '9'"):
        roles.refused("producer", sql)
    for sql in (INSERT, "DELETE FROM outbox_dead", "UPDATE outbox_meta SET value = '9'", "DROP TABLE outbox",
                "SELECT payload FROM outbox_dead"):
        roles.refused("relay", sql)
    for sql in (INSERT, "DELETE FROM outbox", "UPDATE outbox SET payload = ''", "DELETE FROM outbox_dead"):
        roles.refused("viewer", sql)
    for sql in ("DELETE FROM outbox", "UPDATE outbox SET payload = ''", "DROP TABLE outbox_dead"):
        roles.refused("operator", sql)


def relay_works(roles):
    good = True
    for flags in [*CLAIMS, ["--retention", "1h"]]:
        good = good and not roles.run("relay", "run", "--sink", "null:", "--drain", *flags, check=False).returncode
    if not good:
        return False
    findings = json.loads(roles.run("relay", "doctor", "--json", check=False).stdout)["findings"]
    return [f["state"] for f in findings if f["check"] == "grants"] == ["ok"]


def operator_works(roles):
    query(roles.url, "INSERT INTO outbox_dead (id, topic, event_type, payload, content_type, attempts, epoch)"
                     " VALUES (1, 't', '', '', '', 1, 0)")
    query(roles.url, "INSERT INTO outbox_sent (id, topic, event_type, payload, content_type, attempts, epoch)"
                     " VALUES (1, 't', '', '', '', 1, 0)")
    return not any(roles.run("operator", *args, check=False).returncode for args in
                   (["dead", "list"], ["dead", "resend", "--all", "--yes"], ["resend", "--topic", "*", "--yes"]))


WORKS = {"producer": lambda roles: not roles.run("producer", "push", "--topic", "t", "x", check=False).returncode,
         "relay": relay_works, "operator": operator_works,
         "viewer": lambda roles: not roles.run("viewer", "status", check=False).returncode}


def works(roles):
    """Does everything still work that the page promises to the roles?"""
    return all(one(roles) for one in WORKS.values())


def single_grants(nth=0):
    """Each privilege on each table for each role, one by one."""
    for statement in grants(nth):
        privileges, tables, role = re.fullmatch(r"GRANT (.*) ON (.*) TO (\w+)", statement).groups()
        for privilege in privileges.split(", "):
            for table in tables.split(", "):
                yield f"{privilege} ON {table}", role


def test_grants_are_the_least(roles):
    """Without any one of them something does not work; a node notices that at its start."""
    for statement in grants():
        roles.execute(statement)
    assert works(roles)
    for what, role in single_grants():
        roles.execute(f"REVOKE {what} FROM {role}")
        assert not WORKS[role](roles), f"{what} is not needed by {role}"
        roles.execute(f"GRANT {what} TO {role}")
    assert works(roles)


def orphan(url):
    """What a node that is gone has left behind."""
    query(url, "INSERT INTO outbox_consumed (id, topic, event_type, payload, content_type, attempts, epoch, worker)"
               " VALUES (1, 't', '', '', '', 0, 1, 'gone/0')")


def once_works(roles):
    """At most once: a node runs and takes care of what another has left, the viewer is told of it, and so does the
    operator; sluice doctor sees the same."""
    good = True
    for flags in CLAIMS:
        if not good:
            return False
        query(roles.url, INSERT)
        orphan(roles.url)
        done = roles.run("relay", "run", "--sink", "null:", "--drain", "--delivery", "at-most-once", *flags, check=False)
        good = good and not done.returncode and query(roles.url, "SELECT count(*) FROM outbox_consumed") == [(0,)]
        query(roles.url, "DELETE FROM outbox_consumed")
    with open(os.path.join(roles.sluice.cwd, "once.yaml"), "w", encoding="utf-8") as f:
        f.write("delivery: at-most-once\n")
    findings = json.loads(roles.run("relay", "doctor", "-c", "once.yaml", "--json", check=False).stdout)["findings"]
    good = good and [f["state"] for f in findings if f["check"] == "grants"] == ["ok"]
    orphan(roles.url)
    query(roles.url, "DELETE FROM outbox_dead")
    seen = roles.run("viewer", "dead", "list", "--unknown")
    good = good and "1 messages of nodes that are gone" in seen.stderr and "hint: " in seen.stderr
    seen = roles.run("operator", "dead", "list", "--unknown", "--json")
    good = good and not seen.stderr and json.loads(seen.stdout)["matching"] == 1
    query(roles.url, "DELETE FROM outbox_consumed")
    return good


def test_grants_for_at_most_once(roles):
    """Enough, and the least. Without them nobody fails who only looks."""
    for statement in grants():
        roles.execute(statement)
    assert not once_works(roles)
    for role in ("viewer", "operator"):
        assert "hint: " in roles.run(role, "dead", "list", "--unknown").stderr
        assert roles.run(role, "dead", "list").stderr == ""
    for statement in grants(1):
        roles.execute(statement)
    assert once_works(roles)
    for what, role in single_grants(1):
        roles.execute(f"REVOKE {what} FROM {role}")
        for statement in grants():  # to take away SELECT takes it from each column, too
            roles.execute(statement)
        assert not once_works(roles), f"{what} is not needed by {role}"
        roles.execute(f"GRANT {what} TO {role}")
    assert once_works(roles)


def fence_works(roles, kafka, topic):
    """A node starts, and sluice doctor sees the same."""
    query(roles.url, INSERT)
    done = roles.run("relay", "run", "--sink", f"kafka://{kafka.bootstrap()}/{topic}", "--delivery", "exactly-once",
                     "--drain", check=False)
    with open(os.path.join(roles.sluice.cwd, "fence.yaml"), "w", encoding="utf-8") as f:
        f.write(f"delivery: exactly-once\nsink: kafka://{kafka.bootstrap()}/{topic}\n")
    findings = json.loads(roles.run("relay", "doctor", "-c", "fence.yaml", "--json", check=False).stdout)["findings"]
    states = [f["state"] for f in findings if f["check"] == "grants"]
    assert (states == ["ok"]) == (done.returncode == 0), (states, done.stderr)
    return done.returncode == 0


def test_grants_for_a_fence(roles, real_kafka):
    topic = real_kafka.new_topic()
    for statement in grants():
        roles.execute(statement)
    assert not fence_works(roles, real_kafka, topic)
    for statement in grants(2):
        roles.execute(statement)
    assert fence_works(roles, real_kafka, topic)
    for what, role in single_grants(2):
        roles.execute(f"REVOKE {what} FROM {role}")
        assert not fence_works(roles, real_kafka, topic), f"{what} is not needed by {role}"
        roles.execute(f"GRANT {what} TO {role}")


def test_a_producer_may_be_held_to_some_columns(roles):
    columns = re.search(r"`(INSERT \([^)]*\))`", section("Roles and grants")).group(1)
    roles.execute(f"GRANT {columns} ON outbox TO producer")
    query(roles.url_of("producer"), INSERT)
    roles.refused("producer", "INSERT INTO outbox (id, topic, payload) VALUES (7, 't', '')")


def test_a_dead_letter_is_delivered_again(sluice, db):
    """By the commands of the page, as they stand there."""
    sluice.run("init", db=db)
    sluice.run("push", "--topic", "orders.new", "--key", "k", "--type", "T", "--headers", "a=1", "x", db=db)
    sluice.run("pull", "--bury", "--reason", "connection refused: 10.0.0.7", receipt_of(sluice.run("pull", db=db)), db=db)
    for command in block("Dead letters", "sh").splitlines():
        words = shlex.split(command)[1:]
        sluice.run(*words, *(["--yes"] if words[1] in ("resend", "drop") else []), db=db)
    assert query(db, "SELECT count(*) FROM outbox_dead") == [(0,)]
    line = json.loads(sluice.run("run", "--sink", "stdout:", "--drain", db=db).stdout)
    assert (line["topic"], line["key"], line["type"], line["payload"], line["headers"], line["attempt"]) == \
        ("orders.new", "k", "T", "x", {"a": "1"}, 1)


def test_what_may_have_been_delivered_is_found(sluice, db):
    """By the commands of the page, as they stand there."""
    sluice.run("init", db=db)
    orphan(db)
    for command in block("At most once", "sh").splitlines():
        words = shlex.split(command)[1:]
        done = sluice.run(*words, *(["--yes"] if words[1] in ("resend", "drop") else []), db=db)
        assert words[1] not in ("list", "show") or "maybe" in done.stdout


def test_the_page_s_table_is_adopted(sluice, db, tmp_path):
    """With rows in it, names of its own, and a file of settings for every command."""
    integer = "bigint GENERATED BY DEFAULT AS IDENTITY" if "postgresql" in db else "INTEGER"
    bytea, more = ("bytea", "") if "postgresql" in db else ("BLOB", " AUTOINCREMENT")
    query(db, f"CREATE TABLE outbox_events (id {integer} PRIMARY KEY{more}, aggregate_type text NOT NULL,"
              f" aggregate_id text NOT NULL, payload {bytea} NOT NULL, status text NOT NULL DEFAULT 'NEW',"
              " retry_count integer NOT NULL DEFAULT 0)")
    query(db, "INSERT INTO outbox_events (aggregate_type, aggregate_id, payload) VALUES ('order', '9182', '{\"a\":1}')")
    settings = tmp_path / "sluice.yaml"
    settings.write_text(block("Adopting a table", "yaml"))
    flags = ("-c", settings)
    assert sluice.run("init", *flags, db=db).stdout.startswith("adopted table outbox_events")
    sluice.run("push", "--topic", "order", "--key", "7", "{}", *flags, db=db)
    receipt = receipt_of(sluice.run("pull", "--batch", 1, *flags, db=db))
    sluice.run("pull", "--retry", receipt, *flags, db=db)
    assert query(db, "SELECT id, retry_count, status FROM outbox_events ORDER BY id") == [(1, 1, "NEW"), (2, 0, "NEW")]
    done = sluice.run("run", "--sink", "stdout:", "--drain", *flags, db=db)
    lines = [json.loads(text) for text in done.stdout.splitlines()]
    assert sorted((line["id"], line["topic"], line["key"], line["attempt"]) for line in lines) == \
        [(1, "order", "9182", 2), (2, "order", "7", 1)]
    assert query(db, "SELECT count(*) FROM outbox_events") == [(0,)]
