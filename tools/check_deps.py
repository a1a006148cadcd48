#!/usr/bin/python3
"""Who may include whom: check_deps.py [--self-test] [ROOT]

A folder of src/ may include only folders below it, and a library's header may appear only in the
file that is there to use that library. Prints each line that breaks this.
"""
import pathlib
import re
import sys
import tempfile

# Each folder and what it may include besides itself.
BELOW = {
    "core": [],
    "db": ["core"],
    "format": ["core"],
    "journal": ["core"],
    "member": ["db", "core"],
    "claim": ["member", "db", "core"],
    "sink": ["format", "core"],
    "relay": ["claim", "member", "sink", "db", "format", "journal", "core"],
    "lib": ["relay", "claim", "member", "sink", "db", "format", "journal", "core"],
    "node": ["lib", "relay", "claim", "member", "sink", "db", "format", "journal", "core"],
    "web": ["lib", "relay", "claim", "member", "sink", "db", "format", "journal", "core"],
    "bench": ["lib", "claim", "sink", "db", "core"],
    "cli": ["bench", "node", "lib", "relay", "claim", "member", "sink", "db", "format", "journal", "core"],
}

# Library headers and the only files or folders (with a slash at the end) that may include them.
LIBRARIES = {
    "libpq-fe.h": ["db/postgres.c", "db/pg_conn.c", "bench/bare_pg.h"],
    "librdkafka/rdkafka.h": ["sink/kafka_conf.h", "sink/kafka_put.h", "sink/kafka_verdict.h"],
    "sqlite3.h": ["db/sqlite.c", "bench/ceiling_sqlite.c"],
    "jansson.h": ["cli/"],
    "yaml.h": ["lib/yaml_nodes.h"],
    "envelope.pb-c.h": ["format/proto.c"],
    "protobuf-c/protobuf-c.h": ["format/proto.c"],
    "xxhash.h": ["core/keymap.c", "member/ring.c"],
}

GENERATED = ["version.h"]  # by Meson, in the build folder

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def complaint(file, ours, system):
    """Why `file` (relative to src/) may not include this, or None."""
    folder = file.split("/")[0]
    if system:
        allowed = LIBRARIES.get(system)
        if allowed and not any(file == a or (a.endswith("/") and file.startswith(a)) for a in allowed):
            return f"<{system}> belongs in {' and '.join(allowed)} only"
        return None
    if ours in GENERATED:
        return None
    if "/" not in ours:
        return f'write "{folder}/{ours}"'
    target = ours.split("/")[0]
    if target != folder and target not in BELOW[folder]:
        return f"{folder}/ may include only {' '.join([folder, *BELOW[folder]])}"
    return None


def check(root):
    """All offending lines below root/src, as text."""
    src = pathlib.Path(root) / "src"
    files = sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h"))
    wrong = []
    for path in files:
        file = path.relative_to(src).as_posix()
        if file.split("/")[0] not in BELOW:
            wrong.append(f"src/{file}: this folder is not in tools/check_deps.py")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            m = INCLUDE.match(line)
            why = m and complaint(file, *m.groups())
            if why:
                wrong.append(f"src/{file}:{number}: {line.strip()}: {why}")
    if not files:
        wrong.append(f"{src}: no C files")
    return wrong


def self_test():
    """Proves that each kind of offence is noticed, and that what is right is left alone."""
    cases = {
        "core/a.c": ['#include "db/db.h"'],
        "format/a.c": ['  #  include "sink/sink.h"', "#include <libpq-fe.h>", "#include <envelope.pb-c.h>"],
        "claim/a.h": ['#include "sink/sink.h"'],
        "sink/a.c": ['#include "db/db.h"', "#include <jansson.h>"],
        "relay/a.c": ['#include "lib/settings.h"'],
        "node/a.c": ['#include "cli/cli.h"'],
        "db/a.c": ["#include <sqlite3.h>", '#include "names.h"'],
        "lib/a.c": ["#include <yaml.h>"],
        "extra/a.c": ["int folder_without_a_rule;"],
    }
    right = {
        "db/sqlite.c": ['#include "db/db.h"', '#include "core/err.h"', "#include <sqlite3.h>"],
        "db/postgres.c": ["#include <libpq-fe.h>"],
        "format/proto.c": ["#include <envelope.pb-c.h>"],
        "cli/b.c": ["#include <jansson.h>"],
        "cli/a.c": ['#include "node/node.h"', '#include "version.h"', "#include <sluice/sluice.h>"],
        "lib/yaml_nodes.h": ["#include <yaml.h>", "#include <stdio.h>"],
    }
    with tempfile.TemporaryDirectory() as root:
        for file, lines in {**cases, **right}.items():
            path = pathlib.Path(root, "src", file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines), encoding="utf-8")
        got = sorted(w.split(": ")[0] for w in check(root))
    want = sorted(f"src/{file}:{i}" if file != "extra/a.c" else f"src/{file}"
                  for file, lines in cases.items() for i in range(1, len(lines) + 1))
    if got != want:
        sys.exit(f"check_deps.py does not notice what it should:\n  got  {got}\n  want {want}")


def main():
    args = sys.argv[1:]
    if args[:1] == ["--self-test"]:
        return self_test()
    wrong = check(args[0] if args else pathlib.Path(__file__).parent.parent)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
