"""The inbox of a receiver: by the SQL of docs/inbox.md, and by `sluice init --inbox`. The library's: tests/unit/lib/test_inbox.c."""
import pathlib
import re
import threading

import pytest

from harness import connect, is_postgres, query, wait_until

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "inbox.md"


def recipe(db):
    """The page's three pieces of SQL for this kind of database: table, note, clean-up."""
    name = "PostgreSQL" if is_postgres(db) else "SQLite"
    section, = re.findall(rf"^## {name}$(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return re.findall(r"^```sql\n(.*?)^```$", section, re.M | re.S)


def run_all(db, script):
    for statement in filter(str.strip, script.split(";\n")):
        query(db, statement)


def affected(db, statement, times=1):
    conn = connect(db)
    try:
        cur, counts = conn.cursor(), []
        for _ in range(times):
            cur.execute(statement)
            counts.append(cur.rowcount)
        return counts
    finally:
        conn.close()


def test_the_recipe(sluice, db):
    make, note, clean = recipe(db)
    for _ in range(2):
        run_all(db, make)
    assert affected(db, note, 3) == [1, 0, 0]
    assert affected(db, note.replace("billing", "mails"), 2) == [1, 0]
    assert affected(db, note.replace("9182", "9183")) == [1]
    conn = connect(db)
    cur = conn.cursor()
    cur.execute("BEGIN" if is_postgres(db) else "BEGIN IMMEDIATE")
    cur.execute(note.replace("9182", "9184"))
    assert cur.rowcount == 1
    cur.execute("ROLLBACK")
    conn.close()
    assert affected(db, note.replace("9182", "9184")) == [1]
    assert affected(db, clean) == [0]
    past = "now() - interval '31 days'" if is_postgres(db) else "strftime('%Y-%m-%d %H:%M:%f', 'now', '-31 days')"
    query(db, f"UPDATE inbox_seen SET seen_at = {past} WHERE message_id LIKE '%9182'")
    assert affected(db, clean, 2) == [2, 0]
    assert query(db, "SELECT message_id FROM inbox_seen ORDER BY 1") == [("shop/outbox/9183",), ("shop/outbox/9184",)]
    assert affected(db, note) == [1]


def test_the_page_has_the_table_of_init(sluice, db):
    """Word for word, but for the name and the comments."""
    printed = sluice.run("init", "--inbox", "--print", db=db).stdout.replace('"inbox_seen', "inbox_seen").replace('seen"', "seen")
    printed = re.sub(r"^--.*\n", "", printed, flags=re.M)
    assert printed == recipe(db)[0]


def test_init_inbox(sluice, db):
    make, note, _ = recipe(db)
    assert sluice.run("init", "--inbox", db=db).stdout == "created inbox inbox_seen\n"
    assert sluice.run("init", "--inbox", db=db).stdout == "the inbox inbox_seen is there already\n"
    assert affected(db, note, 2) == [1, 0]
    run_all(db, make)  # harmless
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'" if is_postgres(db) else \
        "SELECT name FROM sqlite_master WHERE type = 'table'"
    assert query(db, tables) == [("inbox_seen",)]
    assert sluice.run("init", "--inbox", "--inbox-table", "other", db=db).stdout == "created inbox other\n"
    assert query(db, "SELECT count(*) FROM other") == [(0,)]


def test_a_table_that_is_no_inbox(sluice, db):
    sluice.run("init", db=db)
    done = sluice.run("init", "--inbox", "--inbox-table", "outbox", db=db, check=1)
    assert "it is no inbox" in done.stderr and "\nhint: " in done.stderr
    done = sluice.run("init", "--inbox", "--inbox-table", "no name", db=db, check=2)
    assert "'no name' is not a name" in done.stderr


def test_a_schema(sluice, pgdb):
    query(pgdb, "CREATE SCHEMA app")
    sluice.run("init", "--inbox", "--inbox-table", "app.seen", db=pgdb)
    assert query(pgdb, "SELECT count(*) FROM app.seen") == [(0,)]


@pytest.mark.parametrize("end,rows", [("COMMIT", 0), ("ROLLBACK", 1)])
def test_the_second_waits_for_the_first(sluice, pgdb, end, rows):
    """SQLite has one writer at a time."""
    make, note, _ = recipe(pgdb)
    run_all(pgdb, make)
    first, got = connect(pgdb), []
    first.cursor().execute("BEGIN; " + note)
    thread = threading.Thread(target=lambda: got.append(affected(pgdb, note)))
    thread.start()
    wait_until(lambda: query(pgdb, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                   " AND datname = current_database()"), 10, "a receiver that waits")
    assert not got
    first.cursor().execute(end)
    thread.join()
    first.close()
    assert got == [[rows]]
