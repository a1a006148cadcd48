"""The machine, the report as Markdown and as JSON, and the files in bench/results/."""
import datetime
import json
import os
import platform
import re
import subprocess
import tempfile

from .figures import say
from .tables import KEYS, PAYLOAD_BYTES, ROOT


def git(*args):
    done = subprocess.run(["git", "-C", ROOT, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def build_kind(folder):
    """Build type and sanitizers of a Meson build folder: what makes figures comparable."""
    try:
        with open(os.path.join(folder, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as f:
            known = {o["name"]: o["value"] for o in json.load(f)}
    except OSError:
        return "unknown"
    sanitize = known.get("b_sanitize", "none")
    return known["buildtype"] + (f" with sanitizers ({sanitize})" if sanitize not in ("none", [], "") else "")


def machine(options):
    """What a reader needs to judge the figures, and nothing that names the machine."""
    with open("/proc/meminfo", encoding="ascii") as f:
        kilobytes = int(re.search(r"MemTotal:\s+(\d+)", f.read()).group(1))
    disk = subprocess.run(["stat", "-f", "-c", "%T", tempfile.gettempdir()], stdout=subprocess.PIPE, text=True)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(kilobytes / 1024 / 1024),
        "kernel": platform.system() + " " + ".".join(platform.release().split(".")[:2]),
        "disk": disk.stdout.strip(),
        "load": round(os.getloadavg()[0], 1),
        "commit": (git("rev-parse", "--short", "HEAD") or "none") + ("+changes" if git("status", "--porcelain", "--", ".", ":!bench/results", ":!docs") else ""),
        "build": build_kind(os.path.dirname(options.sluice)),
    }


def verdict(results):
    """Whether all that is demanded holds, and a sentence on it."""
    bound = [r for r in results if r.get("bound")]
    missed = [r["scenario"] for r in bound if not r["bound"]["good"]]
    if missed:
        return False, f"FAILED: less than demanded in {', '.join(missed)}."
    if not bound:
        return True, "Nothing was measured for which there is a demand."
    return True, f"Good: all that is demanded holds ({', '.join(r['scenario'] for r in bound)})."


def text(options, facts, settings, measured):
    """`measured`: pairs of a part and its results."""
    lines = [f"# {facts['commit']}, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", "",
             f"{options.rows:,} messages of {PAYLOAD_BYTES} bytes, {KEYS:,} keys, batch {options.batch} where no other is said, medians.",
             " ".join(f"{k}={v}" for k, v in facts.items()), *dict.fromkeys(settings), ""]
    for part, results in measured:
        lines += [f"## {part.NAME}", "", part.WHAT, "", part.table(results), ""]
    lines.append("Every run sent each message once and left the table empty, or as it should be. "
                 + verdict([r for _, results in measured for r in results])[1])
    return "\n".join(lines) + "\n"


def unused(folder, base):
    """A second run of the same does not write over the first."""
    names = [base, *(f"{base}-{n}" for n in range(2, 100))]
    return next(n for n in names if not os.path.exists(os.path.join(folder, f"{n}.md")))


def save(facts, parts, markdown, data):
    folder = os.path.join(ROOT, "bench", "results")
    os.makedirs(folder, exist_ok=True)
    base = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}-{facts['commit']}-{'-'.join(parts)}"
    base = unused(folder, base)
    for ending, content in (("md", markdown), ("json", json.dumps(data, indent=1) + "\n")):
        with open(os.path.join(folder, f"{base}.{ending}"), "w", encoding="utf-8") as f:
            f.write(content)
        say(f"saved as bench/results/{base}.{ending}")
