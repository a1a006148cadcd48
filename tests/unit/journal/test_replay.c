/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are torn, damaged, old or foreign, byte by byte and bit by bit. */
#include "journal/replay.h"

#include "core/crc32c.h"
#include "unit/journal/journals.h"

/*
 * The blocks of the file that most tests begin with: 0 head; 1 opened; 2 sending 1 to 3; 3 sent 1; 4 failed 2;
 * 5 and 6 sending 100 to 139; 7 sent 100; 8 and 9 sending 200 to 239, the last. Those from 10 on are empty.
 */
enum { FIRST_EMPTY = 10, LAST_RECORD = 8, MIDDLE_RECORD = 5, SESSION = 11 };

static image base;
static sl_journal_stamp stamp;

static int make_base(void **state)
{
    make_folder(state);
    sl_journal *j = open_small(SESSION);
    stamp = sl_journal_stamp_now(j);
    must_send(j, 1, 3);
    say(j, 1, 1, SL_JOURNAL_SENT);
    say(j, 2, 1, SL_JOURNAL_FAILED);
    must_send(j, 100, 40);
    say(j, 100, 1, SL_JOURNAL_SENT);
    must_send(j, 200, 40);
    assert_int_equal(sl_journal_count(j).used_bytes, FIRST_EMPTY * SL_JB_BYTES);
    sl_journal_close(j);
    base = load(path);
    return 0;
}

static int drop_base(void **state)
{
    free(base.p);
    return remove_folder(state);
}

static image copy(void)
{
    image im = base;
    im.p = sl_alloc(base.n + 1);
    memcpy(im.p, base.p, base.n);
    return im;
}

/* Which records there are, if only the blocks below `blocks` count. */
static void expect_up_to(const sl_replay *r, size_t blocks)
{
    bool first = blocks > 2, sent = blocks > 3, failed = blocks > 4, middle = blocks > 6,
         sent100 = blocks > 7, last = blocks > 9;
    assert_int_equal(state_of(r, 1), sent ? SL_JOURNAL_SENT : first ? SL_JOURNAL_SENDING : 0);
    assert_int_equal(state_of(r, 2), failed  ? SL_JOURNAL_FAILED
                                     : first ? SL_JOURNAL_SENDING
                                             : 0);
    assert_int_equal(state_of(r, 3), first ? SL_JOURNAL_SENDING : 0);
    for (int64_t i = 101; i < 140; i++)
        assert_int_equal(state_of(r, i), middle ? SL_JOURNAL_SENDING : 0);
    assert_int_equal(state_of(r, 100), sent100  ? SL_JOURNAL_SENT
                                       : middle ? SL_JOURNAL_SENDING
                                                : 0);
    for (int64_t i = 200; i < 240; i++)
        assert_int_equal(state_of(r, i), last ? SL_JOURNAL_SENDING : 0);
    assert_int_equal(r->ids.count, 3 * first + 40 * middle + 40 * last);
    assert_int_equal(r->opened_count, blocks > 1);
}

/* Whatever the rest of the file is: nothing that nobody wrote. */
static void expect_nothing_invented(const sl_replay *r)
{
    for (size_t i = 0; i < r->ids.cap; i++) {
        const sl_idmap_slot *s = &r->ids.slots[i];
        if (!s->state)
            continue;
        assert_true((s->id >= 1 && s->id <= 3) || (s->id >= 100 && s->id < 140) ||
                    (s->id >= 200 && s->id < 240));
        assert_int_equal(s->epoch, s->id + EPOCH);
        assert_true(s->state == SL_JOURNAL_SENDING ||
                    (s->state == SL_JOURNAL_SENT && (s->id == 1 || s->id == 100)) ||
                    (s->state == SL_JOURNAL_FAILED && s->id == 2));
    }
}

/* A journal that is not whole says "never sent" of nothing. */
static void expect_no_trust(const sl_replay *r)
{
    assert_false(r->whole);
    assert_true(strlen(r->why) > 0);
    expect_nothing_invented(r);
    for (int64_t i = 0; i < 300; i++) {
        sl_fate f = fate(r, i, stamp);
        assert_true(f == SL_FATE_UNKNOWN || (f == SL_FATE_SENT && (i == 1 || i == 100)));
    }
}

static void all_of_it_comes_back(void **state)
{
    (void)state;
    sl_replay r = read_back();
    assert_true(r.whole && !r.torn && !r.fresh && !r.in_use);
    assert_int_equal(r.records, 7);
    assert_int_equal(r.head.identity, stamp.journal);
    assert_string_equal(r.head.node, "n1");
    assert_int_equal(r.opened[0].id, SESSION);
    expect_up_to(&r, FIRST_EMPTY);
    assert_int_equal(sl_replay_count(&r, SL_JOURNAL_SENDING), 80);
    assert_int_equal(sl_replay_count(&r, SL_JOURNAL_SENT), 2);
    assert_int_equal(sl_replay_count(&r, SL_JOURNAL_FAILED), 1);
    sl_replay_fini(&r);
}

static void what_follows_from_it(void **state)
{
    (void)state;
    sl_replay r = read_back();
    assert_int_equal(fate(&r, 1, stamp), SL_FATE_SENT);
    assert_int_equal(fate(&r, 2, stamp), SL_FATE_FAILED);
    assert_int_equal(fate(&r, 3, stamp), SL_FATE_UNKNOWN);
    assert_int_equal(fate(&r, 4, stamp), SL_FATE_NEVER_SENT);
    /* Consumed once more, with another epoch, and not named since. */
    assert_int_equal(sl_replay_fate(&r, 1, 999, &stamp), SL_FATE_UNKNOWN);
    assert_int_equal(sl_replay_fate(&r, 2, 999, &stamp), SL_FATE_NEVER_SENT);
    assert_int_equal(sl_replay_fate(&r, 3, 999, &stamp), SL_FATE_UNKNOWN);

    const sl_journal_stamp others[] = {
        { 0, SESSION, 0 },                              /* consumed without a journal */
        { stamp.journal + 1, SESSION, stamp.position }, /* with another one */
        { stamp.journal, SESSION + 1, stamp.position }, /* by a session that it does not know */
    };
    for (size_t i = 0; i < COUNT(others); i++)
        for (int64_t id = 1; id <= 4; id++)
            assert_int_equal(fate(&r, id, others[i]), SL_FATE_UNKNOWN);
    sl_replay_fini(&r);
}

static void a_journal_that_ends_before_a_consumption_is_not_believed(void **state)
{
    (void)state;
    sl_replay r = read_back();
    sl_journal_stamp at_end = stamp, beyond = stamp, foreign = stamp;
    at_end.position = (int64_t)r.end;
    beyond.position = (int64_t)r.end + 1;
    foreign.position = beyond.position;
    foreign.journal++;
    assert_int_equal(fate(&r, 4, at_end), SL_FATE_NEVER_SENT);
    assert_int_equal(fate(&r, 4, beyond), SL_FATE_UNKNOWN);
    assert_int_equal(fate(&r, 1, beyond), SL_FATE_SENT);
    sl_replay_expect(&r, &at_end);
    sl_replay_expect(&r, &foreign);
    assert_true(r.whole);
    sl_replay_expect(&r, &beyond);
    expect_no_trust(&r);
    sl_replay_fini(&r);
}

/* As after a crash at any byte: what comes behind was never written. */
static void torn_at_every_byte(void **state)
{
    (void)state;
    image im = copy();
    for (size_t cut = FIRST_EMPTY * SL_JB_BYTES; cut >= 2 * SL_JB_BYTES; cut--) {
        memset(im.p + cut, 0, base.n - cut);
        sl_replay r = replay_of(&im);
        if (!r.whole)
            fail_msg("cut at %zu: %s", cut, r.why);
        expect_up_to(&r, cut / SL_JB_BYTES);
        assert_int_equal(fate(&r, 239, stamp), cut == FIRST_EMPTY * SL_JB_BYTES
                                                   ? SL_FATE_UNKNOWN
                                                   : SL_FATE_NEVER_SENT);
        sl_replay_fini(&r);
    }
    free(im.p);
}

/* The session was synced before the file got its name: no crash takes it away. */
static void what_the_file_was_born_with_is_never_torn(void **state)
{
    (void)state;
    image im = copy();
    for (size_t cut = 2 * SL_JB_BYTES - 1; cut >= SL_JB_BYTES; cut--) {
        memset(im.p + cut, 0, base.n - cut);
        sl_replay r = replay_of(&im);
        expect_no_trust(&r);
        sl_replay_fini(&r);
    }
    free(im.p);
}

/* No crash makes it shorter: someone cut it. */
static void truncated_at_every_byte(void **state)
{
    (void)state;
    for (size_t n = 0; n < base.n; n++) {
        image im = { sl_alloc(n + 1), n, base.st };
        memcpy(im.p, base.p, n);
        im.st.st_size = (off_t)n;
        sl_replay r;
        sl_jb_found found = sl_replay_bytes(&r, im.p, im.n, &im.st);
        assert_int_equal(found, n < 8 ? SL_JB_ALIEN : SL_JB_GOOD);
        if (found == SL_JB_GOOD) {
            expect_no_trust(&r);
            if (n >= SL_JB_BYTES)
                expect_up_to(&r, n / SL_JB_BYTES);
        }
        sl_replay_fini(&r);
        free(im.p);
    }
}

static void damage_every_bit(size_t from_block, size_t to_block)
{
    image im = copy();
    for (size_t bit = from_block * SL_JB_BYTES * 8; bit < to_block * SL_JB_BYTES * 8; bit++) {
        im.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sl_replay r = replay_of(&im);
        expect_no_trust(&r);
        sl_replay_fini(&r);
        im.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(im.p);
}

static void every_bit_of_the_last_record(void **state)
{
    (void)state;
    damage_every_bit(LAST_RECORD, FIRST_EMPTY);
}

static void every_bit_of_a_record_in_the_middle(void **state)
{
    (void)state;
    damage_every_bit(MIDDLE_RECORD, MIDDLE_RECORD + 2);
}

/* The others are still found, before and behind. */
static void a_damaged_record_takes_no_other_with_it(void **state)
{
    (void)state;
    image im = copy();
    im.p[MIDDLE_RECORD * SL_JB_BYTES + 100] ^= 1;
    sl_replay r = replay_of(&im);
    expect_no_trust(&r);
    assert_int_equal(state_of(&r, 1), SL_JOURNAL_SENT);
    assert_int_equal(state_of(&r, 101), 0);
    assert_int_equal(state_of(&r, 139), 0);
    assert_int_equal(state_of(&r, 100), SL_JOURNAL_SENT);
    assert_int_equal(state_of(&r, 239), SL_JOURNAL_SENDING);
    sl_replay_fini(&r);
    free(im.p);
}

static void every_byte_of_the_head(void **state)
{
    (void)state;
    image im = copy();
    for (size_t i = 0; i < SL_JB_BYTES; i++) {
        im.p[i] ^= 0xff;
        sl_replay r;
        sl_jb_found found = sl_replay_bytes(&r, im.p, im.n, &im.st);
        assert_int_equal(found, i < 8 ? SL_JB_ALIEN : SL_JB_GOOD);
        if (found == SL_JB_GOOD)
            expect_no_trust(&r);
        assert_int_equal(r.ids.count, 0);
        sl_replay_fini(&r);
        im.p[i] ^= 0xff;
    }
    free(im.p);
}

/* From every byte on, to the end of the file or for a few bytes only. */
static void garbage_from_every_byte(void **state)
{
    (void)state;
    for (size_t cut = SL_JB_BYTES; cut < base.n; cut += cut % 7 + 1) {
        image im = copy();
        size_t n = cut % 2 ? base.n - cut : 8;
        for (size_t i = cut; i < cut + n && i < base.n; i++)
            im.p[i] = (uint8_t)(sl_random() | 1);
        sl_replay r = replay_of(&im);
        expect_nothing_invented(&r);
        if (n > 8)
            expect_no_trust(
                &r); /* eight bytes within an empty block look like one that was begun */
        if (cut < FIRST_EMPTY * SL_JB_BYTES)
            expect_no_trust(&r);
        sl_replay_fini(&r);
        free(im.p);
    }
}

static void a_gap_that_was_synced_is_damage(void **state)
{
    (void)state;
    for (size_t at = 1; at < LAST_RECORD; at++) {
        image im = copy();
        memset(im.p + at * SL_JB_BYTES, 0, SL_JB_BYTES);
        sl_replay r = replay_of(&im);
        if (at ==
            LAST_RECORD - 1) /* not synced when the last record was written, for all we know */
            assert_true(r.whole && r.torn);
        else
            expect_no_trust(&r);
        expect_nothing_invented(&r);
        assert_int_equal(state_of(&r, 239), SL_JOURNAL_SENDING);
        sl_replay_fini(&r);
        free(im.p);
    }
}

/* A record of many blocks counts with all of them or not at all. */
static void a_record_with_a_hole_does_not_count(void **state)
{
    (void)state;
    for (size_t at = LAST_RECORD; at < FIRST_EMPTY; at++) {
        image im = copy();
        memset(im.p + at * SL_JB_BYTES, 0, SL_JB_BYTES);
        sl_replay r = replay_of(&im);
        assert_true(r.whole && r.torn);
        expect_up_to(&r, LAST_RECORD);
        assert_int_equal(fate(&r, 200, stamp), SL_FATE_NEVER_SENT);
        sl_replay_fini(&r);
        free(im.p);
    }
}

/* A good block in another place: its number is wrong there. */
static void a_block_that_moved_is_damage(void **state)
{
    (void)state;
    image im = copy();
    memcpy(im.p + FIRST_EMPTY * SL_JB_BYTES, im.p + 3 * SL_JB_BYTES, SL_JB_BYTES);
    sl_replay r = replay_of(&im);
    expect_no_trust(&r);
    sl_replay_fini(&r);
    free(im.p);
}

/* Behind the end, with the very number that comes next: a block of the file that was here before. */
static void a_block_of_an_older_file_is_not_taken(void **state)
{
    (void)state;
    image im = copy();
    sl_jb_head head;
    assert_int_equal(sl_jb_get_head(im.p, &head), SL_JB_GOOD);
    sl_jb b = { .type = SL_JB_SENT, .count = 1, .parts = 1, .session = SESSION };
    b.number = head.first + FIRST_EMPTY;
    b.pairs[0] = (sl_jb_pair){ 200, 200 + EPOCH };
    sl_jb_put(im.p + FIRST_EMPTY * SL_JB_BYTES, head.salt + 1, &b);
    sl_replay r = replay_of(&im);
    expect_no_trust(&r);
    assert_int_equal(state_of(&r, 200), SL_JOURNAL_SENDING);
    sl_replay_fini(&r);

    sl_jb_put(im.p + FIRST_EMPTY * SL_JB_BYTES, head.salt,
              &b); /* as a check: this one counts */
    r = replay_of(&im);
    assert_true(r.whole);
    assert_int_equal(state_of(&r, 200), SL_JOURNAL_SENT);
    sl_replay_fini(&r);
    free(im.p);
}

/* More parts than the file has blocks: begun at its very end. */
static void a_record_across_the_end_of_the_file(void **state)
{
    (void)state;
    image im = copy();
    sl_jb_head head;
    assert_int_equal(sl_jb_get_head(im.p, &head), SL_JB_GOOD);
    size_t at = im.n / SL_JB_BYTES - 1;
    sl_jb b = { .type = SL_JB_SENDING, .count = 1, .parts = 2, .session = SESSION };
    b.number = head.first + at;
    b.pairs[0] = (sl_jb_pair){ 5000, 5000 + EPOCH };
    sl_jb_put(im.p + at * SL_JB_BYTES, head.salt, &b);
    sl_replay r = replay_of(&im);
    assert_int_equal(state_of(&r, 5000), 0);
    expect_up_to(&r, FIRST_EMPTY);
    assert_true(r.torn);
    sl_replay_fini(&r);
    free(im.p);
}

static void a_copy_is_not_believed(void **state)
{
    (void)state;
    char *name = sl_asprintf("%s.copy", path);
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, base.p, base.n), base.n);
    close(fd);
    sl_replay r;
    sl_err err;
    assert_int_equal(sl_replay_read(&r, name, &err), SL_OK);
    expect_no_trust(&r);
    assert_non_null(strstr(r.why, "copy"));
    expect_up_to(&r, FIRST_EMPTY);
    sl_replay_fini(&r);
    free(name);
}

static void a_longer_file_is_damage(void **state)
{
    (void)state;
    assert_int_equal(truncate(path, (off_t)base.n + SL_JB_BYTES), 0);
    sl_replay r = read_back();
    expect_no_trust(&r);
    expect_up_to(&r, FIRST_EMPTY);
    sl_replay_fini(&r);
}

static void refuse(const char *name, sl_rc rc, const char *text)
{
    sl_replay r;
    sl_err err = { 0 };
    assert_int_equal(sl_replay_read(&r, name, &err), rc);
    assert_non_null(strstr(err.text, text));
    assert_int_equal(r.ids.count, 0);
    sl_replay_fini(&r);
}

static void what_is_no_journal(void **state)
{
    (void)state;
    refuse("/dev/null", SL_OPERATOR, "not a file");
    refuse("/", SL_OPERATOR, "not a file");
    refuse("/no/such/file", SL_OPERATOR, "No such file");
    memcpy(base.p, "#!/bin/sh", 9);
    store(&base);
    refuse(path, SL_OPERATOR, "is no journal");
    base.n = 0;
    store(&base);
    refuse(path, SL_OPERATOR, "is no journal");
}

static void a_newer_one_is_left_alone(void **state)
{
    (void)state;
    base.p[12] = 2;
    uint32_t crc = sl_crc32c(0, base.p + 12, SL_JB_BYTES - 12);
    for (int i = 0; i < 4; i++)
        base.p[8 + i] = (uint8_t)(crc >> 8 * i);
    store(&base);
    refuse(path, SL_NEWER, "newer version");
    refuse_open("n1", SL_NEWER, "newer version");
    image after = load(path);
    assert_int_equal(after.n, base.n);
    assert_memory_equal(after.p, base.p, base.n);
    free(after.p);
}

/* While a node has it. */
static void it_can_be_read_while_it_is_written(void **state)
{
    (void)state;
    sl_journal *j = open_small(SESSION + 1);
    must_send(j, 300, 1);
    sl_replay r = read_back();
    assert_true(r.in_use && r.whole);
    assert_int_equal(state_of(&r, 300), SL_JOURNAL_SENDING);
    sl_replay_fini(&r);
    must_send(j, 301, 1); /* it was not disturbed */
    sl_journal_close(j);
    r = read_back();
    assert_false(r.in_use);
    sl_replay_fini(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_base, drop_base)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_of_it_comes_back),
        TEST(what_follows_from_it),
        TEST(a_journal_that_ends_before_a_consumption_is_not_believed),
        TEST(torn_at_every_byte),
        TEST(what_the_file_was_born_with_is_never_torn),
        TEST(truncated_at_every_byte),
        TEST(every_bit_of_the_last_record),
        TEST(every_bit_of_a_record_in_the_middle),
        TEST(a_damaged_record_takes_no_other_with_it),
        TEST(every_byte_of_the_head),
        TEST(garbage_from_every_byte),
        TEST(a_gap_that_was_synced_is_damage),
        TEST(a_record_with_a_hole_does_not_count),
        TEST(a_block_that_moved_is_damage),
        TEST(a_block_of_an_older_file_is_not_taken),
        TEST(a_record_across_the_end_of_the_file),
        TEST(a_copy_is_not_believed),
        TEST(a_longer_file_is_damage),
        TEST(what_is_no_journal),
        TEST(a_newer_one_is_left_alone),
        TEST(it_can_be_read_while_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
