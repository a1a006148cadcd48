"""What the parts do with their figures."""
import statistics
import sys


def say(text):
    print(text, file=sys.stderr, flush=True)


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def whole(s):
    """As 'median (min..max)'."""
    return f"{s['median']:,.0f} ({s['min']:,.0f}..{s['max']:,.0f})"


def share(s):
    return f"{s['median']:.2f} ({s['min']:.2f}..{s['max']:.2f})"


def markdown(head, rows):
    """A table; all columns but the first are aligned to the right."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]

    def line(cells):
        return "| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))) + " |"

    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def least(bound, value):
    return {"least": bound, "good": value >= bound}


def most(bound, value):
    return {"most": bound, "good": value <= bound}


def bound_text(result):
    """'0.7: good' and the like; empty where nothing is demanded."""
    bound = result.get("bound")
    if not bound:
        return ""
    text = f">= {bound['least']}" if "least" in bound else f"<= {bound['most']}"
    return text + (" good" if bound["good"] else " MISSED")
