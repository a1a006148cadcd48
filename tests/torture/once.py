#!/usr/bin/python3
"""At most once, at length: nodes are killed and PostgreSQL is shut down immediately while messages are in flight, with fsync
on. None may arrive twice, and each that did not arrive must be listed by `sluice dead list --unknown`; `make torture-once`
is this.

    tests/torture/once.py                                             200,000 messages, 100 kills, 20 shutdowns
    tests/torture/once.py --strategy guard --messages 20000 --kills 20 --restarts 4

The status is 1 if anything is violated, or if too few of the faults hit work in flight. See tests/support/once.py.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from harness import Sluice  # noqa: E402
from once import Run  # noqa: E402
from servers import Postgres  # noqa: E402


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--strategy", default="lanes", choices=["lanes", "guard", "advisory", "skip-locked"])
    p.add_argument("--messages", type=int, default=200000)
    p.add_argument("--keys", type=int, default=2000)
    p.add_argument("--kills", type=int, default=100)
    p.add_argument("--restarts", type=int, default=20, help="immediate shutdowns of PostgreSQL")
    p.add_argument("--nodes", type=int, default=3)
    p.add_argument("--batch", type=int, default=50)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--journal", action="store_true", help="the killed come back under their names, with a journal")
    return p.parse_args()


def main():
    o = parse()
    folder = tempfile.mkdtemp(prefix="sluice-once-")
    started = time.monotonic()
    sluice = Sluice(folder)
    with Postgres(fsync=True) as pg:
        try:
            run = Run(sluice, pg, o.strategy, o.messages, o.keys, o.kills, o.restarts, o.nodes, o.batch, o.seed,
                      journal=o.journal, say=lambda text: print(text, flush=True))
            # Each fault that hits is one; what was missed had nothing left to hit.
            least = {"kills that left something": o.kills * 8 // 10, "restarts": o.restarts * 8 // 10}
            figures, wrong = run.play({**least, **({"finished by journals": o.kills} if o.journal else {})})
        finally:
            sluice.close()
    sluice.assert_no_reports()
    for name, n in {**figures, "seconds": round(time.monotonic() - started)}.items():
        print(f"{n:>9}  {name}")
    for text in wrong:
        print(text)
    print("violated, see above" if wrong else "nothing was violated")
    if wrong:
        print(f"records in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
