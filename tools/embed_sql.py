#!/usr/bin/python3
"""Makes one C file of all SQL: embed_sql.py SQL_DIR OUT.c FILE...

A statement file, <dialect>/<folder>/<verb>.sql, holds one statement and says in its head comment
what goes in and what comes out:

    -- in:  worker text, take int8
    -- out: id int8, payload bytea

("none" where there is nothing). Arrays of integers that a statement of SQLite wants whole, for json_each, and not one by
one, are `json`. Migrations (schema/NNN, schema/adopt, schema/inbox, schema/rotated, schema/relane_...), debezium/table,
capture and existing, bench/make, drop and checkpoint, and session/pragmas are
scripts: many statements, no parameters. Comments are dropped from what is sent to the server.
"""
import os
import re
import sys

TYPES = {
    "int8": "SL_T_INT8", "int4": "SL_T_INT8", "text": "SL_T_TEXT", "bytea": "SL_T_BYTES",
    "blob": "SL_T_BYTES", "jsonb": "SL_T_TEXT", "timestamptz": "SL_T_TIME", "bool": "SL_T_BOOL",
    "int8[]": "SL_T_INT8S", "text[]": "SL_T_TEXTS", "bytea[]": "SL_T_BYTESS", "blob[]": "SL_T_BYTESS",
    "json": "SL_T_INT8S",
}


def declared(path, text, word):
    """The types of an `in:` or `out:` list as they are written; it may go on over several comment lines."""
    m = re.search(rf"^--\s*{word}:((?:.*\n)(?:--\s{{5,}}\S.*\n)*)", text, re.M)
    if not m:
        sys.exit(f"{path}: no '-- {word}:' line")
    flat = re.sub(r"\n--", " ", m.group(1)).strip()
    if flat == "none":
        return []
    types = []
    for item in flat.split(","):
        words = item.split()
        if len(words) != 2 or words[1] not in TYPES:
            sys.exit(f"{path}: '{item.strip()}' in '{word}:' is not NAME TYPE; types: {', '.join(TYPES)}")
        types.append(words[1])
    return types


def shape(path, text, word):
    return [TYPES[t] for t in declared(path, text, word)]


def is_whole(path, text):
    """It runs once for whole arrays, or once for each element of them: there is nothing in between."""
    types = declared(path, text, "in")
    if "json" in types and any(t.endswith("[]") for t in types):
        sys.exit(f"{path}: some arrays are whole, and others are not")
    return "json" in types


def literal(text):
    lines = [line.rstrip() for line in text.split("\n")]
    return "\n".join('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for line in lines if line)


def without_comments(text):
    return re.sub(r"^--.*\n", "", text, flags=re.M).strip().rstrip(";")


def main():
    root, out, *files = sys.argv[1:]
    stmts, scripts = [], []
    for path in sorted(files):
        dialect, name = os.path.relpath(path, root)[:-4].split(os.sep, 1)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if re.match(r"(schema/(\d+|adopt|inbox|rotated|relane_\w+)|debezium/(table|capture|existing)|bench/(make|drop|checkpoint)|session/pragmas)$", name):
            scripts.append((dialect, name, text))
        else:
            stmts.append((dialect, name, text, shape(path, text, "in"), shape(path, text, "out"),
                          is_whole(path, text)))
    with open(out, "w", encoding="utf-8") as f:
        # ISO C promises 4,095 bytes; both our compilers take any length.
        print('#pragma GCC diagnostic ignored "-Woverlength-strings"', file=f)
        print('#include "db/db.h"\n\nconst sl_stmt sl_stmts[] = {', file=f)
        for i, (dialect, name, text, ins, outs, whole) in enumerate(stmts):
            print(f'{{ .dialect = "{dialect}", .name = "{name}", .index = {i}, .whole = {int(whole)},', file=f)
            print(f"  .nparams = {len(ins)}, .ncols = {len(outs)},", file=f)
            print(f"  .params = {{ {', '.join(ins) or '0'} }}, .cols = {{ {', '.join(outs) or '0'} }},", file=f)
            print(f"  .text =\n{literal(without_comments(text))} }},", file=f)
        print(f"}};\nconst int sl_stmts_count = {len(stmts)};\n\nconst sl_script sl_scripts[] = {{", file=f)
        for dialect, name, text in scripts:
            print(f'{{ .dialect = "{dialect}", .name = "{name}", .text =\n{literal(text)} }},', file=f)
        print(f"}};\nconst int sl_scripts_count = {len(scripts)};", file=f)


main()
