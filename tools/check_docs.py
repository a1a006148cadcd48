#!/usr/bin/python3
"""What the documentation says is so: check_docs.py [--self-test] [ROOT]

Links lead somewhere; files, tests and functions that are named exist; every line of a table of
promises names its test; README.md is short. With a program (SLUICE_BIN, else ROOT/build/sluice) also:
every flag that is named exists and every flag is in the man page, etc/sluice.yaml is what the program
prints, and the quick start works. Prints each complaint. The self-test runs before every check.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

README_LINES = 120

# Flags of other programs that the documentation may name.
FOREIGN = {"--only", "--full", "--reconfigure", "--suite", "--cflags", "--libs", "--self-test",
           "--wrapper", "--decode"}

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w./-])((?:src|sql|tests|tools|docs|etc|examples|include|bench)/[\w./-]*\w)")
TEST = re.compile(r"(tests/[\w./-]+\.(?:py|c))::(\w+)")
BLANK = re.compile(r"NAME|FOLDER|VERB|NNN")  # to be filled in by the reader
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
COMMAND = re.compile(r"\bsluice\*? ([a-z]+)\b([^\n;|`]*)")
FUNCTION = re.compile(r"\bsl_[a-z_]+\b")


def read(path):
    return path.read_text(encoding="utf-8")


def pages(root):
    """The Markdown files of the project."""
    return sorted(p for p in root.rglob("*.md")
                  if not p.relative_to(root).parts[0].startswith((".", "build")))


def own_pages(root):
    """Those about the program itself: bench/ has flags and files of its own."""
    return [p for p in pages(root) if p.relative_to(root).parts[0] in ("docs", p.name)]


def slug(heading):
    """GitHub's name for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(path):
    return {slug(h) for h in re.findall(r"^#+ (.*)$", FENCE.sub("", read(path)), re.M)}


# -- Without the program ---------------------------------------------------------------------------

def check_links(root):
    for page in pages(root):
        for target in LINK.findall(CODE.sub("", FENCE.sub("", read(page)))):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            to = (page.parent / file) if file else page
            if not to.exists():
                yield f"{page.relative_to(root)}: the link to {target} leads nowhere"
            elif anchor and anchor not in anchors(to):
                yield f"{page.relative_to(root)}: {to.name} has no heading #{anchor}"


def check_paths(root):
    """Names of our files in running text and pictures."""
    for page in own_pages(root):
        for name in sorted(set(PATH.findall(read(page)))):
            if not (root / name).exists() and not BLANK.search(name):
                yield f"{page.relative_to(root)}: there is no {name}"


def has_test(root, file, name):
    path = root / file
    pattern = rf"^def {name}\(" if file.endswith(".py") else rf"^static void {name}\("
    return path.exists() and re.search(pattern, read(path), re.M)


def check_tests(root):
    for page in pages(root):
        for file, name in sorted(set(TEST.findall(read(page)))):
            if not has_test(root, file, name):
                yield f"{page.relative_to(root)}: there is no test {file}::{name}"


def check_promises(root):
    """In docs/guarantees.md every row of a table with a column `test` names one."""
    page = root / "docs" / "guarantees.md"
    if not page.exists():
        return
    wanted = False
    for number, line in enumerate(read(page).split("\n"), 1):
        if not line.startswith("|"):
            wanted = False
        elif re.search(r"\| test \|$", line):
            wanted = True
        elif wanted and not line.startswith("|--") and not TEST.search(line):
            yield f"docs/guarantees.md:{number}: this promise names no test"


def check_functions(root):
    """Functions and types that users are told of are in the public header."""
    header = set(FUNCTION.findall(read(root / "include" / "sluice" / "sluice.h")))
    for page in (root / "docs" / "libsluice.md", root / "docs" / "man" / "libsluice.3.scd", root / "README.md"):
        text = read(page).replace("\\_", "_") if page.exists() else ""
        for name in sorted(set(FUNCTION.findall(text)) - header):
            yield f"{page.relative_to(root)}: {name} is not in sluice.h"


def check_length(root):
    lines = read(root / "README.md").count("\n")
    if lines > README_LINES:
        yield f"README.md: {lines} lines, at most {README_LINES}"


# -- With the program ------------------------------------------------------------------------------

def ask(sluice, *args):
    done = subprocess.run([sluice, *args], capture_output=True, text=True, env=clean_env())
    if done.returncode:
        raise RuntimeError(f"sluice {' '.join(args)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def clean_env(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_") and k != "DATABASE_URL"}
    return {**env, **more}


def flags_of(sluice):
    """Command -> (the flags that it has, those of them that are no settings)."""
    commands = re.findall(r"^  ([a-z]+)  ", ask(sluice, "--help"), re.M)
    helps = {c: ask(sluice, c, "--help") for c in commands}

    def of(text):
        return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M))
    return {c: (of(h), of(h.partition("\nSettings")[0])) for c, h in helps.items()}


def flag_pages(root):
    """Pages that name flags, without scdoc's escapes."""
    for page in [*own_pages(root), *sorted((root / "docs" / "man").glob("*.scd"))]:
        text = read(page)
        yield page.relative_to(root), text.replace("\\", "").replace("*", "") if page.suffix == ".scd" else text


def check_flags(root, sluice):
    flags = flags_of(sluice)
    known = {f for every, _ in flags.values() for f in every} | FOREIGN | {"--version"}
    for page, text in flag_pages(root):
        for flag in sorted(set(FLAG.findall(text)) - known):
            yield f"{page}: no command has {flag}"
        for command, rest in COMMAND.findall(text):
            if command in flags:
                for flag in sorted(set(FLAG.findall(rest)) & known - FOREIGN - flags[command][0]):
                    yield f"{page}: sluice {command} has no {flag}"


def check_man(root, sluice):
    """Every command, and every flag of its own, is in sluice(1)."""
    text = dict((p.name, t) for p, t in flag_pages(root))["sluice.1.scd"]
    parts = dict.fromkeys(flags_of(sluice), "")
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        command = part.split()[1]
        if command in parts:
            parts[command] += part
    for command, (_, own) in flags_of(sluice).items():
        if not parts[command]:
            yield f"docs/man/sluice.1.scd: no section about sluice {command}"
            continue
        for flag in sorted(own - {"--help", "--config"} - set(FLAG.findall(parts[command]))):
            yield f"docs/man/sluice.1.scd: sluice {command} has {flag}, too"


def check_sample(root, sluice):
    if read(root / "etc" / "sluice.yaml") != ask(sluice, "config", "docs", "yaml"):
        yield "etc/sluice.yaml is not what 'sluice config docs yaml' prints\nhint: print it there"


def check_quick_start(root, sluice):
    """Runs the block, and looks for the JSON that README.md shows, whoever the worker was."""
    section = read(root / "README.md").partition("\n## Quick start\n")[2].partition("\n## ")[0]
    script = re.search(r"^```sh\n(.*?)^```$", section, re.M | re.S)
    shown = re.search(r"^```json\n(.*?)^```$", section, re.M | re.S)
    if not script:
        yield "README.md: no block ```sh after 'Quick start'"
        return
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(sluice, os.path.join(folder, "sluice"))
        os.mkdir(os.path.join(folder, "here"))
        done = subprocess.run(["sh", "-eu", "-c", script.group(1)], cwd=os.path.join(folder, "here"),
                              env=clean_env(PATH=f"{folder}:{os.environ['PATH']}"), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = re.sub(r'"worker":"[^"]*"', '"worker":"n1/2"', done.stdout)
    if done.returncode:
        yield f"README.md: the quick start ends with status {done.returncode}\n{done.stdout}"
    elif shown and shown.group(1) not in output:
        yield f"README.md: the quick start does not print what is shown, but\n{done.stdout}"


# -- All of it -------------------------------------------------------------------------------------

def check(root, sluice):
    for part in (check_links, check_paths, check_tests, check_promises, check_functions, check_length):
        yield from part(root)
    if sluice:
        for part in (check_flags, check_man, check_sample, check_quick_start):
            yield from part(root, sluice)


FAKE = """#!/bin/sh
case "$*" in
--help) echo "  run  the node" ;;
"run --help") printf 'Flags:\\n  --drain  x\\n  -h, --help  x\\n  --new  x\\n\\nSettings:\\n  --sink URL  x\\n' ;;
"config docs yaml") echo "#db: x" ;;
*) echo '{"worker":"a/1"}' ;;
esac
"""

GOOD = {
    "README.md": "# A\n\n[a](docs/guarantees.md#heres-one) [b](#a) `src/a.c` sl_run\n\n## Quick start\n\n"
                 "```sh\nsluice run --sink x\n```\n\n```json\n{\"worker\":\"n1/2\"}\n```\n",
    "docs/guarantees.md": "# Here's one\n\n| what | test |\n|---|---|\n| x | `tests/a.py::test_a` |\n",
    "docs/libsluice.md": "sl_run\n",
    "docs/man/sluice.1.scd": "## sluice run\n\n*--drain* and *--new*\n",
    "etc/sluice.yaml": "#db: x\n",
    "include/sluice/sluice.h": "void sl_run(void);\n",
    "src/a.c": "",
    "tests/a.py": "def test_a():\n    pass\n",
    "tests/a.c": "static void test_b(void **state)\n",
}

BAD = {  # what is changed in GOOD -> a word of the complaint
    ("docs/libsluice.md", "[x](nowhere.md)\n"): "leads nowhere",
    ("docs/libsluice.md", "[x](../README.md#b)\n"): "no heading",
    ("docs/libsluice.md", "sl_walk\n"): "not in sluice.h",
    ("docs/libsluice.md", "`src/b.c`\n"): "there is no src/b.c",
    ("docs/libsluice.md", "`--sinc`\n"): "no command has --sinc",
    ("docs/libsluice.md", "`tests/a.py::test_b`\n"): "no test",
    ("docs/libsluice.md", "`tests/a.c::test_a`\n"): "no test",
    ("docs/guarantees.md", "# Here's one\n\n| what | test |\n|---|---|\n| x | y |\n"): "names no test",
    ("README.md", GOOD["README.md"] + "\n" * 200): "at most 120",
    ("README.md", GOOD["README.md"].replace("sluice run", "false")): "status 1",
    ("README.md", GOOD["README.md"].replace("n1/2", "n1/3")): "does not print",
    ("README.md", GOOD["README.md"].replace("```sh", "```")): "no block",
    ("docs/man/sluice.1.scd", "## sluice run\n\n*--drain*\n"): "has --new, too",
    ("docs/man/sluice.1.scd", "## sluice runs\n"): "no section about sluice run",
    ("etc/sluice.yaml", "#db: y\n"): "is not what",
}


def complaints_about(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "root")
        for file, text in files.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        fake = pathlib.Path(folder, "fake")
        fake.write_text(FAKE, encoding="utf-8")
        fake.chmod(0o755)
        return list(check(root, str(fake)))


def self_test():
    """Proves that each kind of mistake is noticed, and that what is right is left alone."""
    got = complaints_about(GOOD)
    if got:
        sys.exit(f"check_docs.py complains about what is right: {got}")
    for (file, text), word in BAD.items():
        got = complaints_about({**GOOD, file: text})
        if len(got) != 1 or word not in got[0]:
            sys.exit(f"check_docs.py should have one complaint about '{word}', but has {got}")


def main():
    args = sys.argv[1:]
    self_test()
    if args[:1] == ["--self-test"]:
        return 0
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    sluice = os.environ.get("SLUICE_BIN") or shutil.which(str(root / "build" / "sluice"))
    if not sluice:
        print("no program (SLUICE_BIN, build/sluice): flags, etc/sluice.yaml and quick start were not checked")
    wrong = list(check(root, os.path.abspath(sluice) if sluice else None))
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
