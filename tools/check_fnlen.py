#!/usr/bin/python3
"""Functions over 70 lines and files over 700 fail: check_fnlen.py [--self-test] FILE...

A function begins at its opening brace, alone in the first column, and ends at the closing one,
which is how clang-format leaves them.
"""
import re
import sys

MAX_FUNCTION, MAX_FILE = 70, 700


def too_long(lines):
    """(line number, name, length) of each function that is too long; name '' for the file."""
    if len(lines) > MAX_FILE:
        yield 1, "", len(lines)
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            length = number - start - 1  # what stands between the braces
            if length > MAX_FUNCTION:
                head = " ".join(lines[max(0, start - 8):start - 1])
                names = re.findall(r"(\w+)\s*\(", re.sub(r".*[;}/]", "", head))
                yield start, names[0] if names else "?", length
            start = None


def self_test():
    def function(n):
        return ["", "static int f(int a,", "             int b)", "{", *["    g();"] * n, "}"]
    assert list(too_long(function(MAX_FUNCTION))) == []
    assert list(too_long(function(MAX_FUNCTION + 1))) == [(4, "f", MAX_FUNCTION + 1)]
    assert list(too_long(function(3) * 3 + function(80))) == [(28, "f", 80)]
    assert list(too_long([""] * 700)) == []
    assert [name for _, name, _ in too_long([""] * 701)] == [""]


def main():
    if sys.argv[1:2] == ["--self-test"]:
        return self_test()
    failed = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            lines = f.read().rstrip("\n").split("\n")
        for number, name, length in too_long(lines):
            limit = f"{name}() has {length} lines, at most {MAX_FUNCTION}" if name else \
                f"{length} lines in one file, at most {MAX_FILE}"
            print(f"{path}:{number}: {limit}")
            failed = True
    return 1 if failed else 0


sys.exit(main())
