"""What the drivers in Python have in common: see bench/peers/peer.py for how they are called."""
import array
import json
import sys
import time

now = time.monotonic


def messages(s):
    """(n, key, payload) of all messages, in order. The payload is a dict."""
    for n in range(1, s["rows"] + 1):
        yield n, f"order:{n % s['keys']}", {"n": n, "pad": "x" * (s["pad"] - len(str(n)))}


class Record:
    """Notes each message, in memory."""

    def __init__(self):
        self.numbers = array.array("d")
        self.handled = 0

    def note(self, n, start, end):
        self.numbers.extend((n, start, end))
        self.handled += 1

    def write(self, path, started, ended):
        with open(path, "wb") as f:
            self.numbers.tofile(f)
        print(json.dumps({"started": started, "ended": ended}))


def arguments():
    """The verb, and the settings."""
    return sys.argv[1], json.loads(sys.argv[2])
