"""Two ways to show the demo: a screen that is redrawn on a terminal, plain lines elsewhere.

A line is a list of pieces, each a string or a (style, string) pair. Only ASCII is printed: it looks
the same everywhere.
"""
import os
import shutil

STYLES = {"bold": "1", "dim": "2", "red": "1;31", "green": "32", "yellow": "33", "cyan": "36"}
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # the other page; no cursor; long lines do not wrap
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"


def text_of(line):
    return "".join(piece if isinstance(piece, str) else piece[1] for piece in line)


def fill(line, width):
    """Pads a line so that more can follow at a fixed column."""
    return line + [" " * max(0, width - len(text_of(line)))]


def paint(line, width, colour):
    """A line as the terminal wants it, cut at the terminal's edge."""
    out = []
    for piece in line:
        style, text = (None, piece) if isinstance(piece, str) else piece
        text = text[:width]
        width -= len(text)
        out.append(f"\x1b[{STYLES[style]}m{text}\x1b[0m" if style and colour else text)
    return "".join(out)


class Terminal:
    """Redraws the whole screen from the top, which does not flicker, on the terminal's other page,
    so that what stood there before comes back at the end."""

    period = 0.2

    def __init__(self, out):
        self.out = out
        self.colour = "NO_COLOR" not in os.environ
        self.open = False

    def begin(self):
        self.open = True
        self.out.write(ENTER)

    def draw(self, view):
        size = shutil.get_terminal_size((80, 24))
        lines = view.screen()[:size.lines]
        body = "\r\n".join(paint(line, size.columns, self.colour) + "\x1b[K" for line in lines)
        self.out.write("\x1b[H" + body + "\x1b[J")
        self.out.flush()

    def event(self, text):
        """On the screen the caption says it; the summary repeats it."""

    def end(self):
        if not self.open:
            return
        self.open = False
        self.out.write(LEAVE)
        self.out.flush()

    def close(self):
        """Also when the terminal is gone."""
        try:
            self.end()
        except OSError:
            pass

    def say(self, line=()):
        self.out.write(paint(list(line), 10000, self.colour) + "\n")
        self.out.flush()


class Plain:
    """For a pipe or a file: a line every few seconds, and one for each event."""

    period = 3.0

    def __init__(self, out):
        self.out = out

    def begin(self):
        pass

    def draw(self, view):
        self.say([view.progress()])

    def event(self, text):
        self.say([text])

    def end(self):
        pass

    def close(self):
        pass

    def say(self, line=()):
        self.out.write(text_of(line) + "\n")
        self.out.flush()


def for_output(out):
    smart = out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return Terminal(out) if smart else Plain(out)
