/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/window.h"

#include "unit/unit.h"

static sl_window w;
static sl_str_list chosen;
static sl_id_list ids;
static sl_str_list keys;

static int setup(void **state)
{
    (void)state;
    w = (sl_window){ 0 };
    chosen = (sl_str_list){ 0 };
    ids = (sl_id_list){ 0 };
    keys = (sl_str_list){ 0 };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_window_fini(&w);
    free(chosen.v);
    free(ids.v);
    free(keys.v);
    return 0;
}

static const sl_room plenty = { 1000, 1000000, 1000 };

/* One letter is the key of one message, of ten bytes; large letters are another's. */
static void see(const char *letters)
{
    sl_window_reset(&w);
    for (int64_t i = 0; letters[i]; i++) {
        char key[] = { letters[i], '\0' };
        sl_window_add(&w, sl_str_of(key), i + 1, 10, letters[i] >= 'a');
    }
}

static void choose(const sl_room *room, const char *expected)
{
    char got[64] = "";
    assert_int_equal(sl_window_choose(&w, room, &chosen), *expected != '\0');
    for (size_t i = 0; i < chosen.count; i++)
        strncat(got, chosen.v[i].p, chosen.v[i].n);
    assert_string_equal(got, expected);
}

static void get(const char *letters)
{
    for (; *letters; letters++)
        sl_window_got(&w, (sl_str){ letters, 1 });
}

static void take(const sl_room *room, const char *messages, const char *of)
{
    char got[256] = "";
    ids.count = keys.count = 0;
    sl_window_take(&w, room, &ids, &keys);
    for (size_t i = 0; i < ids.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), i ? " %lld" : "%lld",
                 (long long)ids.v[i]);
    assert_string_equal(got, messages);
    got[0] = '\0';
    for (size_t i = 0; i < keys.count; i++)
        strncat(got, keys.v[i].p, keys.v[i].n);
    assert_string_equal(got, of);
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    see("");
    assert_int_equal(sl_window_first(&w), 0);
    choose(&plenty, "");
    take(&plenty, "", "");
}

static void keys_come_by_their_oldest_and_whole(void **state)
{
    (void)state;
    see("abacb");
    assert_int_equal(sl_window_first(&w), 1);
    choose(&plenty, "abc");
    choose(&plenty, ""); /* each once */
    get("cba");
    take(&plenty, "1 3 2 5 4", "abc");
    assert_int_equal(w.ours, 5);
    assert_int_equal(w.ours_keys, 3);
}

static void no_more_keys_are_chosen_than_fit(void **state)
{
    (void)state;
    see("aabbcc");
    choose(&(sl_room){ 3, 1000, 10 }, "ab"); /* messages: the third is b's */
    see("aabbcc");
    choose(&(sl_room){ 10, 21, 10 }, "ab"); /* bytes */
    see("aabbcc");
    choose(&(sl_room){ 10, 1000, 1 }, "a"); /* keys */
    get("a");
    choose(&(sl_room){ 10, 1000, 1 }, "");
    take(&(sl_room){ 10, 1000, 1 }, "1 2", "a");
}

static void the_last_key_is_cut(void **state)
{
    (void)state;
    sl_room room = { 3, 1000, 10 };
    see("aabbcc");
    choose(&room, "ab");
    get("ab");
    take(&room, "1 2 3", "ab");
    room = (sl_room){ 10, 5, 10 }; /* the first always fits */
    see("aab");
    choose(&room, "a");
    get("a");
    take(&room, "1", "a");
}

static void what_another_has_is_passed_by(void **state)
{
    (void)state;
    sl_room room = { 2, 1000, 10 };
    see("AbAcdAe");
    choose(&room, "bc");
    get("c");
    choose(&room, "d"); /* b turned out to be another's */
    get("d");
    choose(&room, "");
    take(&room, "4 5", "cd");
}

static void a_window_is_used_again(void **state)
{
    (void)state;
    char many[1001];
    for (int i = 0; i < 1000; i++)
        many[i] = (char)('a' + i % 26);
    many[1000] = '\0';
    see(many);
    assert_int_equal(w.nkeys, 26);
    choose(&plenty, "abcdefghijklmnopqrstuvwxyz");
    get("b");
    assert_int_equal(w.ours, 39);
    see("z");
    assert_int_equal(w.ours, 0);
    choose(&plenty, "z");
    get("z");
    take(&plenty, "1", "z");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_nothing),
        TEST(keys_come_by_their_oldest_and_whole),
        TEST(no_more_keys_are_chosen_than_fit),
        TEST(the_last_key_is_cut),
        TEST(what_another_has_is_passed_by),
        TEST(a_window_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
