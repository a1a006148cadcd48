/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

#include "bench/scenes.h"

const sl_scene *const sl_scene_all[] = { &sl_scene_drain,      &sl_scene_steady,
                                         &sl_scene_processors, &sl_scene_backlog,
                                         &sl_scene_blocked,    &sl_scene_snapshot,
                                         &sl_scene_hot,        &sl_scene_idle,
                                         &sl_scene_nodes,      NULL };

const sl_scene *sl_scene_named(const char *name)
{
    for (const sl_scene *const *s = sl_scene_all; *s; s++)
        if (!strcmp((*s)->name, name))
            return *s;
    return NULL;
}

sl_rc sl_bench_run(sl_bench *b, const sl_scene *scene, sl_err *err)
{
    sl_rc rc = sl_box_make(&b->box, b->settings, err);
    if (rc == SL_OK && scene->postgres_only && !sl_box_is_postgres(&b->box))
        rc = sl_fail(
            err, SL_REFUSED,
            "scenario %s is for PostgreSQL: here one transaction keeps all others from writing",
            scene->name);
    snprintf(b->database, sizeof b->box.version, "%s", b->box.version);
    if (rc == SL_OK)
        rc = scene->run(b, err);
    sl_box_remove(&b->box);
    return rc;
}
