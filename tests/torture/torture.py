#!/usr/bin/python3
"""Kills, pauses and restarts everything for a long time, with every ordered strategy in turn, on a real
PostgreSQL with fsync on, and judges the history; `make torture` is this.

    tests/torture/torture.py --minutes 60 --seed 1          all combinations, ten minutes each
    tests/torture/torture.py --only guard,lanes/ring        some of them
    tests/torture/torture.py --json FILE --markdown FILE    the summary, for programs and for docs

In each ten minutes at least 100 kills and 30 pauses beyond the lease must have hit work in flight.
Afterwards the known-bad variants of the strategies are run: tests that pass if they are caught. The
status is 1 if anything is violated, or if a minimum was not reached. See tests/support/nemesis.py for
what is done, and tests/support/history.py for what must hold.
"""
import argparse
import json
import os
import platform
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from harness import Sluice  # noqa: E402
from nemesis import COMBINATIONS, UNORDERED, Pace, Run  # noqa: E402
from servers import Postgres  # noqa: E402

BUILD = os.path.join(ROOT, "build-torture")
KILLS, PAUSES, TRUNCATIONS = 10, 3, 3  # a minute, at least; the last of segments, where a table has them
OVERHEAD = 20.0  # seconds of a combination's time, for healing and judging

COLUMNS = [  # heading, figure, what it means
    ("kills", "kills", "SIGKILL of a node with work in flight"),
    ("in flight", "in flight", "messages in flight at a kill, on average"),
    ("pauses", "pauses", "SIGSTOP of a node with work in flight, for longer than the lease, then SIGCONT"),
    ("restarts", "restarts", "of PostgreSQL, fast or immediate"),
    ("joins", "joins", "nodes that joined"),
    ("leaves", "leaves", "nodes that left by TERM"),
    ("truncations", "truncations", "of segments with delivered messages in them, of layout rotated"),
    ("truncated", "truncated", "messages that stood in those"),
    ("messages", "messages", "committed"),
    ("claims", "claims", "of a message by a worker"),
    ("deliveries", "deliveries", "lines in the sink"),
    ("duplicates", "duplicates", "deliveries beyond the first of a message"),
    ("bound", "bound", "so many duplicates were allowed: messages in flight at a fault"),
    ("lost", "lost", "messages that never arrived"),
    ("disorder", "out of order", "deliveries that break the order of their key"),
    ("overlaps", "overlaps", "claims of a key beside another worker's"),
    ("zombies", "zombie deliveries", "deliveries by a node that was paused, behind those of the next owner"),
    ("late sends", "zombie sends", "sends that a node began after it woke up, with a claim that was lost"),
]


# -- Output --------------------------------------------------------------------------------------

class Screen:
    """Lines; on a terminal, progress overwrites itself, and there is colour."""

    def __init__(self):
        self.terminal = sys.stdout.isatty()

    def progress(self, text):
        if self.terminal:
            width = shutil.get_terminal_size().columns
            print(f"\r\033[K{text[:width - 1]}", end="", flush=True)
        else:
            print(text, flush=True)

    def line(self, text, colour=None):
        code = {"good": "\033[32m", "bad": "\033[31m"}.get(colour)
        if self.terminal:
            print("\r\033[K", end="")
            text = f"{code}{text}\033[0m" if code else text
        print(text, flush=True)


def table(results, sep=" ", edge=""):
    """Rows of a table; as text, or with sep="|" for Markdown."""
    rows = [["", *(heading for heading, _, _ in COLUMNS)]]
    rows += [[name, *(str(figures.get(figure, "-")) for _, figure, _ in COLUMNS)] for name, figures in results.items()]
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [f" {sep} ".join([row[0].ljust(width[0]), *(cell.rjust(w) for cell, w in zip(row[1:], width[1:]))])
             for row in rows]
    return [f"{edge} {line} {edge}" if edge else line for line in lines]


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def markdown(results, facts):
    lines = table(results, "|", "|")
    lines.insert(1, "|---|" + "---:|" * len(COLUMNS))
    lines += ["", "{minutes:g} minutes, seed {seed}, commit {commit}, {machine}.".format(**facts), ""]
    lines += [f"- {heading}: {meaning}" for heading, _, meaning in COLUMNS]
    return "\n".join(lines) + "\n"


# -- The runs ------------------------------------------------------------------------------------

def build(screen):
    """The program with fault points and records."""
    screen.line(f"building {BUILD}")
    again = os.path.exists(os.path.join(BUILD, "build.ninja"))
    for argv in (["meson", "setup", BUILD, *(["--reconfigure"] if again else []), "-Dfault_points=true"],
                 ["ninja", "--quiet", "-C", BUILD, "sluice", "meson-test-prereq"]):
        done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(argv)}\n{done.stdout}")
    os.environ["SLUICE_BIN"] = os.path.join(BUILD, "sluice")


def attack(combination, seconds, options, folder, screen):
    """(figures, wrong) of one combination."""
    least = {"kills": round(KILLS * seconds / 60), "pauses": round(PAUSES * seconds / 60)}
    if combination.init:
        least["truncations"] = round(TRUNCATIONS * seconds / 60)
    if options.no_least:
        least = {}
    sluice = Sluice(folder)
    with Postgres(fsync=True) as pg:
        run = Run(sluice, pg, combination, options.seed, max(seconds - OVERHEAD, seconds / 2), Pace(),
                  say=screen.progress)
        try:
            figures = run.play(least)
            sluice.close()
            sluice.assert_no_reports()
        except Exception:  # the other combinations still count
            run.wrong.append(traceback.format_exc())
            figures = {}
        finally:
            run.close()
            sluice.close()
    return figures, run.wrong


def attack_all(chosen, options, folder, screen):
    results, wrong = {}, {}
    for name, combination in chosen.items():
        started = time.monotonic()
        figures, complaints = attack(combination, options.minutes * 60 / len(chosen), options, folder, screen)
        figures["seconds"] = round(time.monotonic() - started)
        results[name], wrong[name] = figures, complaints
        screen.line(f"{name}: " + (f"{len(complaints)} complaints" if complaints else
                                   f"nothing wrong in {figures['seconds']} s"), "bad" if complaints else "good")
        for text in complaints:
            screen.line(f"  {text}")
    return results, wrong


def known_bad(screen):
    """Runs the tests of variants that are known to be wrong; what is wrong with that, as lines."""
    folder = os.path.dirname(os.path.abspath(os.environ["SLUICE_BIN"]))
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        screen.line(f"known-bad variants: {folder} is no build folder, none was run")
        return []
    listed = subprocess.run(["meson", "test", "-C", folder, "--list"], capture_output=True, text=True).stdout
    names = sorted({line.split(" / ")[-1].strip() for line in listed.split("\n") if re.search(r"bad\b|_bad", line)})
    if not names:
        screen.line("known-bad variants: this build has none")
        return []
    done = subprocess.run(["tests/support/with-servers", "pg", "--", "meson", "test", "-C", folder, "-t", "5", *names],
                          cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    screen.line(f"known-bad variants: {', '.join(names)}: {'caught' if done.returncode == 0 else 'NOT CAUGHT'}",
                "bad" if done.returncode else "good")
    return [done.stdout] if done.returncode else []


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=60, help="for all combinations together (60)")
    p.add_argument("--seed", help="what is done when; random by default, and printed")
    p.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(COMBINATIONS)}, {UNORDERED.name}")
    p.add_argument("--json", metavar="FILE", help="write the summary there")
    p.add_argument("--markdown", metavar="FILE", help="write the table there")
    p.add_argument("--no-least", action="store_true", help="no minimum of kills and pauses, for short runs")
    p.add_argument("--no-bad", action="store_true", help="leave out the known-bad variants")
    p.add_argument("--keep", action="store_true", help="keep the records in any case")
    options = p.parse_args()
    options.seed = options.seed or str(secrets.randbelow(10 ** 9))
    known = {**COMBINATIONS, UNORDERED.name: UNORDERED}
    names = options.only.split(",") if options.only else list(COMBINATIONS)
    if set(names) - known.keys():
        p.error(f"there is no {' '.join(sorted(set(names) - known.keys()))}")
    return options, {name: known[name] for name in names}


def main():
    options, chosen = parse()
    screen = Screen()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if "SLUICE_BIN" not in os.environ:
        build(screen)
    folder = tempfile.mkdtemp(prefix="sluice-torture-")
    facts = {"seed": options.seed, "minutes": options.minutes, "commit": commit(),
             "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release()}"}
    screen.line(f"seed {options.seed}, {options.minutes:g} minutes, {len(chosen)} combinations, records in {folder}")
    results, wrong = attack_all(chosen, options, folder, screen)
    bad = [] if options.no_bad else known_bad(screen)
    for line in ["", *table(results), "", *bad]:
        screen.line(line)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({**facts, "results": results, "wrong": wrong, "known_bad": bad}, f, indent=1)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as f:
            f.write(markdown(results, facts))
    failed = any(wrong.values()) or bool(bad)
    if not failed and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    screen.line(f"seed {options.seed}: " + ("violated, see above" if failed else "nothing was violated"),
                "bad" if failed else "good")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
