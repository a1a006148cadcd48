#!/usr/bin/python3
"""For Meson, at setup: one line per C test, `unit/core/test_arena.c threads`. A test is a file
test_*.c below unit/, contract/ or sql/; it counts as threaded if it starts threads, or if it is a
contract, which is what threads rely on."""
import pathlib

here = pathlib.Path(__file__).parent
for folder in ("unit", "contract", "sql"):
    for path in sorted((here / folder).rglob("test_*.c")):
        threads = folder == "contract" or "pthread_create" in path.read_text(encoding="utf-8")
        print(path.relative_to(here), "threads" if threads else "plain")
