/* SPDX-License-Identifier: Apache-2.0 */
/* The scenarios, each in a file scene_NAME.c; a new one is a file and a line here and in scenes.c. */
#ifndef SL_BENCH_SCENES_H
#define SL_BENCH_SCENES_H

#include "bench/measure.h"

extern const sl_scene sl_scene_drain, sl_scene_steady, sl_scene_processors, sl_scene_backlog,
    sl_scene_blocked, sl_scene_snapshot, sl_scene_hot, sl_scene_idle, sl_scene_nodes;

#endif
