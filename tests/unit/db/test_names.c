/* SPDX-License-Identifier: Apache-2.0 */
#include "db/names.h"

#include "support/testdb.h"

#include <ctype.h>

static sl_err err;

static void init(sl_names *n, const char *table, const sl_opt_map *columns)
{
    err = (sl_err){ 0 };
    if (sl_names_init(n, table, columns, &err) != SL_OK)
        fail_msg("%s", err.text);
}

/* What becomes of `sql`; good until the next call. */
static const char *applied(const sl_names *n, const char *sql)
{
    static char text[2048];
    sl_buf out = { 0 };
    sl_names_apply(n, sql, &out);
    snprintf(text, sizeof text, "%s", sl_buf_text(&out));
    sl_buf_fini(&out);
    return text;
}

#define expect(n, sql, want) assert_string_equal(applied(n, sql), want)

/* ---- What is a name ---- */

#define LETTERS47 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstu"
#define LETTERS63 LETTERS47 "abcdefghijklmnop"

static void good_tables_are_taken(void **state)
{
    (void)state;
    static const char *const good[] = {
        "outbox", "o",   "_", "_1",      "Outbox_2", "a$b",           "shop.outbox",
        "s.t",    "_._", "x", LETTERS47, "select",   "sluice_outbox", LETTERS63 "." LETTERS47,
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        sl_names n;
        init(&n, good[i], NULL);
        const char *dot = strchr(good[i], '.');
        assert_string_equal(n.table, dot ? dot + 1 : good[i]);
        assert_true((n.schema != NULL) == (dot != NULL));
        sl_names_fini(&n);
    }
}

static void bad_tables_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "1a",
        "$a",
        "a b",
        "a-b",
        "a.b.c",
        ".a",
        "a.",
        ".",
        "a;b",
        "a\"b",
        "a'b",
        "a\nb",
        "out\xc3\xa9",
        "a--b",
        "\"a\"",
        "a.1b",
        LETTERS47 "x",
        LETTERS63 "x.t",
        "t\\",
        "a%sb",
        "a/*b",
        "outbox;DROP TABLE outbox",
        " outbox",
        "outbox ",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        sl_names n;
        err = (sl_err){ 0 };
        if (sl_names_init(&n, bad[i], NULL, &err) != SL_REFUSED)
            fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(err.text, "is not a name\nhint: NAME or SCHEMA.NAME"));
        sl_names_fini(&n);
    }
}

static void bad_columns_are_refused(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        { "payloads", "p", "'payloads' is not a column of the outbox" },
        { "ID", "p", "'ID' is not a column of the outbox" },
        { "", "p", "'' is not a column" },
        { "topic", "", "'' (for topic) is not a name" },
        { "topic", "a b", "'a b' (for topic) is not a name" },
        { "topic", "a.b", "'a.b' (for topic) is not a name" },
        { "topic", "a\"; --", "is not a name" },
        { "topic", LETTERS63 "x", "is not a name" },
        { "topic", "payload", "topic and payload are both 'payload'" },
        { "id", "worker", "id and worker are both 'worker'" },
        { "entity_key", "head", "'head' (for entity_key) is a column of the side tables" },
        { "id", "dead_id", "'dead_id' (for id) is a column of the side tables" },
        { "payload", "unknown", "is a column of the side tables" },
        { "worker", "journal", "is a column of the side tables" },
        { "created_at", "consumed_at", "is a column of the side tables" },
        { "attempts", "synced_to", "is a column of the side tables" },
        { "epoch", "opened_by", "is a column of the side tables" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sl_names n;
        sl_opt_map map = { 0 };
        sl_opt_map_put(&map, rows[i][0], rows[i][1]);
        err = (sl_err){ 0 };
        assert_int_equal(sl_names_init(&n, "outbox", &map, &err), SL_REFUSED);
        if (!strstr(err.text, rows[i][2]))
            fail_msg("%s", err.text);
        sl_names_fini(&n);
        testdb_map_fini(&map);
    }
}

static void columns_may_change_places(void **state)
{
    (void)state;
    sl_names n;
    sl_opt_map map = { 0 };
    sl_opt_map_put(&map, "topic", "payload");
    sl_opt_map_put(&map, "payload", "topic");
    sl_opt_map_put(&map, "worker", LETTERS63);
    init(&n, "outbox", &map);
    testdb_map_fini(&map); /* init has made copies */
    expect(&n, "SELECT topic, o.payload, worker, id FROM x o",
           "SELECT \"payload\", o.\"topic\", \"" LETTERS63 "\", id FROM x o");
    assert_string_equal(sl_names_column(&n, "topic"), "payload");
    assert_string_equal(sl_names_column(&n, "id"), "id");
    sl_names_fini(&n);
    sl_names_fini(&n); /* harmless */
}

static void two_columns_of_one_name_are_refused(void **state)
{
    (void)state;
    sl_names n;
    sl_opt_map map = { 0 };
    sl_opt_map_put(&map, "topic", "x");
    sl_opt_map_put(&map, "payload", "x");
    assert_int_equal(sl_names_init(&n, "outbox", &map, &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "topic and payload are both 'x'"));
    assert_null(n.table);
    testdb_map_fini(&map);
}

/* ---- What is replaced, and what is not ---- */

static void table_words_are_replaced(void **state)
{
    (void)state;
    sl_names plain, in_schema;
    init(&plain, "box", NULL);
    init(&in_schema, "shop.box", NULL);
    static const char *const rows[][3] = {
        { "sluice_outbox", "\"box\"", "\"shop\".\"box\"" },
        { "sluice_outbox_dead", "\"box_dead\"", "\"shop\".\"box_dead\"" },
        { "sluice_outbox_meta m", "\"box_meta\" m", "\"shop\".\"box_meta\" m" },
        /* Indexes and constraints live where their table does, and are named without it. */
        { "sluice_outbox_ix_idempotency", "\"box_ix_idempotency\"", "\"box_ix_idempotency\"" },
        { "sluice_outbox_ck_topic", "\"box_ck_topic\"", "\"box_ck_topic\"" },
        { "(sluice_outbox)", "(\"box\")", "(\"shop\".\"box\")" },
        { "sluice_outbox.id", "\"box\".id", "\"shop\".\"box\".id" },
        { "a_sluice_outbox", "a_sluice_outbox", "a_sluice_outbox" },
        { "sluice_push", "sluice_push", "sluice_push" },
        { "SLUICE_OUTBOX", "SLUICE_OUTBOX", "SLUICE_OUTBOX" },
        { "", "", "" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect(&plain, rows[i][0], rows[i][1]);
        expect(&in_schema, rows[i][0], rows[i][2]);
    }
    sl_names_fini(&plain);
    sl_names_fini(&in_schema);
}

/* Layout debezium: their table, and ours beside it. */
static void the_source_word_is_the_table_that_is_captured(void **state)
{
    (void)state;
    sl_names n;
    assert_int_equal(sl_names_beside(&n, "App.Box", "options", &err), SL_OK);
    expect(&n, "sluice_source", "\"App\".\"Box\"");
    expect(&n, "'sluice_source' 'sluice_sources'", "'\"App\".\"Box\"' 'sluice_sources'");
    expect(&n, "sluice_outbox sluice_outbox_dead sluice_outbox_tr_capture",
           "\"App\".\"Box_sluice\" \"App\".\"Box_sluice_dead\" \"Box_sluice_tr_capture\"");
    assert_string_equal(n.source, "Box");
    assert_string_equal(n.layout, "options");
    sl_names_fini(&n);
    init(&n, "box", NULL);
    expect(&n, "sluice_source 'sluice_source'", "sluice_source 'sluice_source'");
    sl_names_fini(&n);
    assert_int_equal(sl_names_beside(&n, "no name", "", &err), SL_REFUSED);
    assert_int_equal(
        sl_names_beside(&n, "a_name_of_41_bytes_which_is_one_too_many_x", "", &err),
        SL_REFUSED);
}

static void the_lanes_word_is_a_number(void **state)
{
    (void)state;
    sl_names n;
    init(&n, "box", NULL);
    expect(&n, "x % sluice_lanes)", "x % 64)");
    n.lanes = 32768;
    expect(&n, "sluice_lanes sluice_lanes_2 xsluice_lanes 'sluice_lanes'",
           "32768 sluice_lanes_2 xsluice_lanes 'sluice_lanes'");
    sl_names_fini(&n);
}

static void every_column_can_be_renamed(void **state)
{
    (void)state;
    sl_names n;
    sl_opt_map map = { 0 };
    testdb_map_all(&map, "x_");
    assert_int_equal(map.count, 18);
    init(&n, "box", &map);
    for (const char *const *c = sl_columns; *c; c++) {
        char sql[128], want[128];
        snprintf(sql, sizeof sql, "o.%s = excluded.%s+%s", *c, *c, *c);
        snprintf(want, sizeof want, "o.\"x_%s\" = excluded.\"x_%s\"+\"x_%s\"", *c, *c, *c);
        expect(&n, sql, want);
        snprintf(sql, sizeof sql, "%s_2 my_%s %c%s", *c, *c, toupper((unsigned char)**c),
                 *c + 1);
        expect(&n, sql, sql); /* other words, if alike */
    }
    sl_names_fini(&n);
    testdb_map_fini(&map);
}

static void strings_comments_and_quoted_names_stay(void **state)
{
    (void)state;
    sl_names n;
    sl_opt_map map = { 0 };
    testdb_map_all(&map, "x_");
    init(&n, "shop.box", &map);
    static const char *const same[] = {
        "'sluice_outbox id'",
        "'it''s an id' || 'topic'",
        "\"id\" \"sluice_outbox\" \"a\"\"id\"",
        "-- the id of sluice_outbox\n",
        "-- it's the id\n",
        "-- to the end: id",
        "'-- id' || 'topic'",
        "'an open string: id",
        "\"an open name: id",
        "1id 1e6 0x1fid $1 $2::int8 12345678901234567890id",
        "'' \"\" --",
        "'a\nid\nb'",
    };
    for (size_t i = 0; i < COUNT(same); i++)
        expect(&n, same[i], same[i]);
    expect(&n, "'x'id'y'", "'x'\"x_id\"'y'");
    expect(&n, "-- id\nid", "-- id\n\"x_id\"");
    expect(&n, "a-id -id - -id", "a-\"x_id\" -\"x_id\" - -\"x_id\"");
    expect(&n, "id", "\"x_id\"");
    sl_names_fini(&n);
    testdb_map_fini(&map);
}

static void other_bytes_pass(void **state)
{
    (void)state;
    sl_names n;
    init(&n, "box", NULL);
    char all[256];
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = '\0';
    expect(&n, all, all); /* the quotes in it open strings that never end */
    expect(&n, "h\xc3\xa9 \xff", "h\xc3\xa9 \xff");
    sl_names_fini(&n);
}

/* All SQL of the project: nothing in it needs more than skip_quoted knows. */
static void the_files_hold_nothing_that_is_not_understood(void **state)
{
    (void)state;
    for (int i = 0; i < sl_stmts_count + sl_scripts_count; i++) {
        const char *text =
            i < sl_stmts_count ? sl_stmts[i].text : sl_scripts[i - sl_stmts_count].text;
        assert_null(strstr(text, "/*"));
        assert_null(strstr(text, "E'"));
        /* What stands between $$ is SQL as any other: names are replaced there, too. */
        int dollars = 0;
        for (const char *at = strstr(text, "$$"); at; at = strstr(at + 2, "$$"))
            dollars++;
        assert_int_equal(dollars % 2, 0);
    }
}

/* ---- Fuzz ---- */

/* A piece of SQL; in half of them, words that must be replaced. */
static const char *random_piece(void)
{
    static const char *const pieces[] = {
        "id",
        "topic",
        "sluice_outbox",
        "sluice_outbox_dead",
        "epoch",
        "worker",
        "payload",
        "(",
        ")",
        " ",
        "\n",
        ".",
        ",",
        "'id'",
        "\"id\"",
        "1",
        "x",
        "_",
        "$1",
        "::int8",
        "-",
        "--",
        "'",
        "\"",
        "''",
        "=",
        "sluice_lanes",
        "-- id\n",
        "\t",
        ";",
        "lane",
        "e",
    };
    return pieces[sl_random() % COUNT(pieces)];
}

/* Is `name` in `sql` outside of quotes and comments? Looks by itself, in another way. */
static bool bare(const char *sql, const char *name)
{
    char quote = 0;
    size_t n = strlen(name);
    for (const char *p = sql; *p; p++) {
        if (quote) {
            if (*p == quote)
                quote = 0;
        } else if (*p == '\'' || *p == '"') {
            quote = *p;
        } else if (p[0] == '-' && p[1] == '-') {
            quote = '\n';
        } else if (!strncmp(p, name, n)) {
            return true;
        }
    }
    return false;
}

static void configured_names_are_always_quoted(void **state)
{
    (void)state;
    sl_names n;
    sl_opt_map map = { 0 };
    testdb_map_all(&map, "ZQ");
    init(&n, "ZQs.ZQt", &map);
    size_t replaced = 0;
    for (int round = 0; round < 20000; round++) {
        sl_buf sql = { 0 }, out = { 0 };
        for (uint64_t i = sl_random() % 40; i > 0; i--)
            sl_buf_puts(&sql, random_piece());
        sl_names_apply(&n, sl_buf_text(&sql), &out);
        if (bare(sl_buf_text(&out), "ZQ"))
            fail_msg("%s\nbecame\n%s", sl_buf_text(&sql), sl_buf_text(&out));
        replaced += strstr(sl_buf_text(&out), "\"ZQ") != NULL;
        sl_buf_fini(&sql);
        sl_buf_fini(&out);
    }
    assert_true(replaced > 5000);
    sl_names_fini(&n);
    testdb_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_tables_are_taken),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(bad_columns_are_refused),
        cmocka_unit_test(columns_may_change_places),
        cmocka_unit_test(two_columns_of_one_name_are_refused),
        cmocka_unit_test(table_words_are_replaced),
        cmocka_unit_test(the_source_word_is_the_table_that_is_captured),
        cmocka_unit_test(the_lanes_word_is_a_number),
        cmocka_unit_test(every_column_can_be_renamed),
        cmocka_unit_test(strings_comments_and_quoted_names_stay),
        cmocka_unit_test(other_bytes_pass),
        cmocka_unit_test(the_files_hold_nothing_that_is_not_understood),
        cmocka_unit_test(configured_names_are_always_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
