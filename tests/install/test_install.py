"""What `make install` leaves behind is enough for others: the program starts, and a C program
finds the library by pkg-config."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = ROOT / "include" / "sluice" / "sluice.h"

PROGRAM = r"""
#include <sluice/sluice.h>
#include <stdio.h>
int main(void)
{
    sl_conf *conf = sl_conf_new();
    sl_err err;
    if (sl_conf_set(conf, "table", "inbox", &err) != SL_OK)
        return 1;
    sl_conf_free(conf);
    puts(sl_version());
    return 0;
}
"""


def run(*argv, **kw):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, **kw)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def find(folder, pattern):
    found = sorted(folder.rglob(pattern))
    assert found, f"no {pattern} was installed"
    return found[0]


@pytest.fixture(scope="module")
def dest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dest")
    run("make", "install", "DEPS=true", f"DESTDIR={folder}", cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def pkg_config(dest):
    """pkg-config as if DESTDIR/PREFIX were the prefix."""
    pc = find(dest, "sluice.pc")
    prefix = re.search(r"^prefix=(.*)$", pc.read_text(), re.M).group(1)

    def ask(*args):
        return run("pkg-config", f"--define-variable=prefix={dest}{prefix}", *args, "sluice",
                   env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}).split()
    return ask


def test_installed_where_others_look(dest):
    searched = run("pkg-config", "--variable=pc_path", "pkg-config").split(":")
    assert str(find(dest, "sluice.pc").parent)[len(str(dest)):] in searched
    linker = run("/sbin/ldconfig", "-v", "-N", env={"LC_ALL": "C"}) + "\n"
    library = str(find(dest, "libsluice.so").parent)[len(str(dest)):]
    assert f"\n{library}: " in "\n" + linker, f"the linker does not look in {library}"


def test_program_starts(dest, pkg_config):
    version = pkg_config("--modversion")[0]
    assert version in run(find(dest, "bin/sluice"), "--version")


def test_c_program_finds_the_library(dest, pkg_config, tmp_path):
    source = tmp_path / "tiny.c"
    source.write_text(PROGRAM)
    run("gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-o", tmp_path / "tiny",
        *pkg_config("--cflags", "--libs"))
    library = find(dest, "libsluice.so.?").parent
    assert run(tmp_path / "tiny", env={"LD_LIBRARY_PATH": str(library)}) == pkg_config("--modversion")[0]


def test_header_is_good_for_cpp():
    run("clang", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", HEADER)


def test_exported_symbols_are_the_public_functions(dest):
    """No more (they would have to stay for ever), no less. The header is the list."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    public = set(re.findall(r"\bSL_API\b[^;(]*?\b(sl_\w+)\s*\(", text))
    assert len(public) == text.count("SL_API") - 1, "not every SL_API was understood"  # 1: its #define
    exported = {line.split()[-1] for line in
                run("nm", "-D", "--defined-only", find(dest, "libsluice.so")).splitlines()}
    assert exported == public
