#!/usr/bin/python3
"""For Meson, at setup: one line per C test with its further suites, `unit/core/test_arena.c threads`. A
test is a file test_*.c below unit/, contract/ or sql/; it counts as threaded if it starts threads, or if
it is a contract, which is what threads rely on. Those that are about the database's sessions and take
long are `races`: no sanitizer sees more in them than in the others. `lone` ones start no threads.
`brokers` are those that wait for Kafka's, most of a minute: whatever else is missing from a build, they are the same."""
import pathlib
import re

here = pathlib.Path(__file__).parent
for folder in ("unit", "contract", "sql"):
    for path in sorted((here / folder).rglob("test_*.c")):
        suites = []
        if folder == "contract" or "pthread_create" in path.read_text(encoding="utf-8"):
            suites.append("threads")
        if re.match(r"test_(races|permuter)", path.name):
            suites.append("races")
        if re.match(r"test_claims_(order|lost)", path.name):
            suites.append("lone")
        if re.match(r"test_kafka(_bad|_doctor)?\.c", path.name):
            suites.append("brokers")
        print(path.relative_to(here), *suites)
