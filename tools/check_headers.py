#!/usr/bin/python3
"""Compiles each header of include/, src/ and tests/ alone, twice included: it must bring what it
needs, and have a guard."""
import concurrent.futures
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBPQ = subprocess.run(["pkg-config", "--cflags", "libpq"], stdout=subprocess.PIPE, text=True).stdout.split()
COMMAND = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
           "-Iinclude", "-Isrc", "-Itests", *LIBPQ, "-x", "c", "-"]


def compiles(header):
    source = f'#include "{header}"\n#include "{header}"\nextern int not_empty;\n'
    done = subprocess.run(COMMAND, input=source, cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


headers = sorted(str(p.relative_to(ROOT)) for folder in ("include", "src", "tests")
                 for p in (ROOT / folder).rglob("*.h"))
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(compiles, headers))
for header, (status, output) in zip(headers, results):
    if status:
        print(f"{header} does not compile alone:\n{output}")
sys.exit(1 if any(status for status, _ in results) or not headers else 0)
