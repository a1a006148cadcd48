#!/usr/bin/python3
"""Writes the array of the implementations that this build has, so that no other code needs to know."""
import sys

out, header, ops, array, *tables = sys.argv[1:]
with open(out, "w", encoding="utf-8") as f:
    print(f'#include "{header}"\n', file=f)
    for t in tables:
        print(f"extern const {ops} {t};", file=f)
    print(f"\nconst {ops} *const {array}[] = {{", file=f)
    for t in tables:
        print(f"    &{t},", file=f)
    print("    NULL,\n};", file=f)
