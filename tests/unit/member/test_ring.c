/* SPDX-License-Identifier: Apache-2.0 */
#include "member/ring.h"

#include "unit/unit.h"

#include <stdio.h>

enum { NODES_MAX = 48, LANES = 1024, MANY_LANES = 32768 };

/* Before and after the number of a node. Names as people and machines choose them, short, long and
 * alike: how even the ring is must not depend on them. */
static const char *const styles[][2] = {
    { "", "" },
    { "n", "" },
    { "node-", "" },
    { "sluice-7d9f8b6c5d-", ".default.svc.cluster.local" },
};

typedef struct names {
    char text[NODES_MAX][64];
    const char *of[NODES_MAX];
} names;

static void name_all(names *n, size_t style)
{
    for (size_t i = 0; i < NODES_MAX; i++) {
        snprintf(n->text[i], sizeof n->text[i], "%s%02zu%s", styles[style][0], i,
                 styles[style][1]);
        n->of[i] = n->text[i];
    }
}

/* owners[lane] = the name of its node. */
static void place(const char *const *live, size_t count, size_t lanes, const char **owners)
{
    sl_ring *r = sl_ring_new(live, count);
    for (size_t lane = 0; lane < lanes; lane++)
        owners[lane] = live[sl_ring_find(r, lane)];
    sl_ring_free(r);
}

static void one_node_has_every_lane(void **state)
{
    (void)state;
    sl_ring *r = sl_ring_new((const char *[]){ "" }, 1); /* an empty name is a name */
    for (size_t lane = 0; lane < MANY_LANES; lane++)
        assert_int_equal(sl_ring_find(r, lane), 0);
    sl_ring_free(r);
}

static void the_order_of_names_makes_no_difference(void **state)
{
    (void)state;
    static names forward, backward;
    static const char *one[LANES], *other[LANES];
    name_all(&forward, 1);
    name_all(&backward, 1);
    for (size_t i = 0; i < 16; i++)
        backward.of[i] = backward.text[15 - i];
    place(forward.of, 16, LANES, one);
    place(backward.of, 16, LANES, other);
    for (size_t lane = 0; lane < LANES; lane++)
        assert_string_equal(one[lane], other[lane]);
}

/* Nodes of two versions, or on two kinds of processors, must agree: these numbers may never
 * change. */
static void places_are_the_same_in_every_build(void **state)
{
    (void)state;
    static const size_t expected[] = { 0, 1, 0, 1, 0, 2, 1, 0, 2, 2, 0, 2,
                                       1, 0, 0, 0, 2, 0, 0, 1, 0, 1, 0, 1 };
    const char *const abc[] = { "a", "b", "c" };
    sl_ring *r = sl_ring_new(abc, COUNT(abc));
    for (size_t lane = 0; lane < COUNT(expected); lane++)
        assert_int_equal(sl_ring_find(r, lane), expected[lane]);
    assert_int_equal(sl_ring_find(r, 32767), 2);
    sl_ring_free(r);
}

/* The last point is one of a's, the first is one of b's, and these lanes lie beyond the last. */
static void after_the_last_point_comes_the_first(void **state)
{
    (void)state;
    const size_t beyond[] = { 343, 2054, 2729, 2913 };
    sl_ring *r = sl_ring_new((const char *[]){ "a", "b" }, 2);
    for (size_t i = 0; i < COUNT(beyond); i++)
        assert_int_equal(sl_ring_find(r, beyond[i]), 1);
    sl_ring_free(r);
}

static void tally(const names *n, size_t count, size_t lanes, size_t *least, size_t *most)
{
    static const char *owners[MANY_LANES];
    place(n->of, count, lanes, owners);
    *least = SIZE_MAX;
    *most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t has = 0;
        for (size_t lane = 0; lane < lanes; lane++)
            has += owners[lane] == n->of[i];
        *least = has < *least ? has : *least;
        *most = has > *most ? has : *most;
    }
}

/* Of 128 lanes a node, 11 more or less are chance, and the points add 8: of eight nodes one may well
 * have a quarter more or less. With many lanes only the points are left. */
static void lanes_are_shared_evenly(void **state)
{
    (void)state;
    static names n;
    for (size_t style = 0; style < COUNT(styles); style++) {
        size_t least, most;
        name_all(&n, style);
        tally(&n, 8, LANES, &least, &most);
        print_message("8 nodes as %s: of 1024 lanes %zu to %zu, fair is 128, max/min %.2f\n",
                      n.of[0], least, most, (double)most / (double)least);
        assert_true(least >= 90 && most <= 170 && most * 10 <= least * 17);
        tally(&n, 8, MANY_LANES, &least, &most);
        print_message("    of 32768 lanes %zu to %zu, fair is 4096, max/min %.2f\n", least,
                      most, (double)most / (double)least);
        assert_true(least >= 3400 && most <= 4800 && most * 10 <= least * 14);
    }
}

/* Lanes that another node has in `after`; all of them must go to or come from `mover`. */
static size_t moved(const char **before, const char **after, const char *mover)
{
    size_t count = 0;
    for (size_t lane = 0; lane < LANES; lane++) {
        if (before[lane] == after[lane])
            continue;
        assert_true(before[lane] == mover || after[lane] == mover);
        count++;
    }
    return count;
}

/* N - 1 nodes, and another one joins them, as a part of N; and leaves again. */
static double share_of_joiner(const names *n, size_t count, size_t joiner)
{
    static const char *without[LANES], *with[LANES];
    const char *live[NODES_MAX];

    memcpy(live, n->of, count * sizeof live[0]);
    live[count - 1] = n->of[joiner];
    place(live, count - 1, LANES, without);
    place(live, count, LANES, with);
    size_t joined = moved(without, with, n->of[joiner]);
    assert_int_equal(moved(with, without, n->of[joiner]), joined);
    return (double)(joined * count) / LANES;
}

/*
 * Lanes move to the node that joins, or from the one that leaves; between nodes that stay, none
 * does, ever. How many move varies with the name, about 1/N: 32 nodes of each style are tried for
 * every N. At most 1.10/N on average and 1.60/N in the worst case is what this test asks for.
 */
static void a_node_that_joins_or_leaves_moves_its_share_only(void **state)
{
    (void)state;
    enum { TRIES = 32 };
    static names n;
    for (size_t count = 2; count <= 16; count++) {
        double sum = 0, worst = 0;
        for (size_t i = 0; i < COUNT(styles) * TRIES; i++) {
            name_all(&n, i / TRIES);
            double share = share_of_joiner(&n, count, count - 1 + i % TRIES);
            sum += share;
            worst = share > worst ? share : worst;
        }
        double average = sum / (double)(COUNT(styles) * TRIES);
        print_message("one of %zu nodes joins or leaves: %.2f/N of the lanes move on average, "
                      "%.2f/N at worst, 0 between nodes that stay\n",
                      count, average, worst);
        assert_true(average <= 1.10);
        assert_true(worst <= 1.60);
    }
}

static void find_in_nothing(void)
{
    sl_ring *r = sl_ring_new(NULL, 0);
    (void)sl_ring_find(r, 0);
}

static void an_empty_ring_can_be_made_but_not_asked(void **state)
{
    (void)state;
    sl_ring_free(sl_ring_new(NULL, 0));
    sl_ring_free(NULL);
    assert_true(aborts(find_in_nothing));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_has_every_lane),
        cmocka_unit_test(the_order_of_names_makes_no_difference),
        cmocka_unit_test(places_are_the_same_in_every_build),
        cmocka_unit_test(after_the_last_point_comes_the_first),
        cmocka_unit_test(lanes_are_shared_evenly),
        cmocka_unit_test(a_node_that_joins_or_leaves_moves_its_share_only),
        cmocka_unit_test(an_empty_ring_can_be_made_but_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
