#!/usr/bin/python3
"""Every src/X/Y.c has its tests in tests/unit/X/test_Y.c (and, where that would be too long, in
test_Y_PART.c), or a line `X/Y.c: why not` in tests/unit/NO_TWIN.txt; and no test or line is left
over."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC, UNIT = ROOT / "src", ROOT / "tests" / "unit"


def excused():
    """File -> reason."""
    lines = (UNIT / "NO_TWIN.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.partition(":") for line in lines if line.strip() and not line.startswith("#")]
    return {file.strip(): reason.strip() for file, _, reason in rows}


def complaints():
    reasons = excused()
    sources = {p.relative_to(SRC).as_posix() for p in SRC.rglob("*.c")}
    for file in sorted(sources):
        folder, name = file.rsplit("/", 1)
        twin = UNIT / folder / f"test_{name}"
        if twin.exists() and file in reasons:
            yield f"tests/unit/NO_TWIN.txt: {file} has a test after all"
        if not twin.exists() and not reasons.get(file):
            yield f"src/{file}: no {twin.relative_to(ROOT)}, and no reason in tests/unit/NO_TWIN.txt"
    for file in sorted(reasons.keys() - sources):
        yield f"tests/unit/NO_TWIN.txt: there is no src/{file}"
    for test in sorted(UNIT.rglob("test_*.c")):
        folder = SRC / test.parent.relative_to(UNIT)
        words = test.stem.split("_")[1:]
        stems = ["_".join(words[:n]) for n in range(1, len(words) + 1)]
        if not any((folder / f"{stem}{end}").exists() for stem in stems for end in (".c", ".h")):
            yield f"{test.relative_to(ROOT)}: tests no file of src/"


wrong = list(complaints())
print("\n".join(wrong), end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
