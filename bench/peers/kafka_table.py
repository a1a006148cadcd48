"""What was measured, as Markdown; and whether Sluice is ahead."""
import statistics

from parts.figures import markdown, spread, whole

OURS = "sluice-4"
# name, where its figure is in a round, unit, and whether more is better
MEASURES = [("rate", ("drain", "rate"), "messages/s", True), ("p50", ("latency", "p50"), "ms", False),
            ("p99", ("latency", "p99"), "ms", False), ("p99.9", ("latency", "p99.9"), "ms", False),
            ("memory in the drain", ("drain", "memory_mb"), "MB", False),
            ("memory at the steady rate", ("latency", "memory_mb"), "MB", False),
            ("processor in the drain", ("drain", "processor", "all"), "s/million", False),
            ("of it, the program's", ("drain", "processor", "program"), "s/million", False),
            ("processor at the steady rate", ("latency", "processor", "all"), "s/million", False),
            ("of it, the program's own", ("latency", "processor", "program"), "s/million", False),
            ("rate with start-up", ("drain", "whole_rate"), "messages/s", True)]
DEMANDED = ("rate", "p99", "memory in the drain", "memory at the steady rate")


def at(one_round, path):
    for name in path:
        one_round = one_round[name]
    return one_round


def values(rounds, name, path):
    """Of one program, round by round."""
    return [at(r[name], path) for r in rounds]


def figure(s):
    """Small figures with their decimals."""
    return whole(s) if s["median"] >= 100 else f"{s['median']:.1f} ({s['min']:.1f}..{s['max']:.1f})"


def ratio(rounds, path, other):
    """Ours to another, by round: the median, which a slow moment of the machine disturbs least."""
    return statistics.median(a / max(b, 1e-9) for a, b in zip(values(rounds, OURS, path), values(rounds, other, path)))


def times(value, more_is_better):
    """'2.50 (2.5 times as good)' for a ratio."""
    good = value if more_is_better else 1 / max(value, 1e-9)
    return f"{value:.2f}" + (f" ({good:.1f}x better)" if good > 1 else f" ({1 / max(good, 1e-9):.1f}x WORSE)")


def comparisons(rounds, peers):
    """Every ratio that there is: {measure: {peer: ratio}}."""
    if OURS not in rounds[0]:
        return {}
    return {name: {peer: ratio(rounds, path, peer) for peer in peers} for name, path, _, _ in MEASURES}


def behind(found):
    """Where we are not ahead of every peer, of what is demanded."""
    better = {name: more for name, _, _, more in MEASURES}
    return [f"{name} of {peer}" for name in DEMANDED for peer, r in found.get(name, {}).items()
            if not (r > 1 if better[name] else r < 1)]


def verdict(found, missing):
    """(good, a sentence)."""
    if missing:
        return True, f"Nothing to compare with: Debezium is not available: {missing}"
    if not found:
        return True, "Nothing was compared."
    late = behind(found)
    if late:
        return False, f"FAILED: {OURS} is not ahead in {', '.join(late)}."
    return True, f"Good: {OURS} is ahead in {', '.join(DEMANDED)}."


def table(rounds, names, peers, missing=""):
    """The figures, a column for each program; then the ratios, a column for each peer."""
    if not rounds:
        return f"Debezium: not available: {missing}" if missing else "Nothing was measured."
    rows = [(f"{name}, {unit}", *(figure(spread(values(rounds, n, path))) for n in names),
             *(["not available"] if missing else [])) for name, path, unit, _ in MEASURES]
    rows.append(("duplicates", *(str(sum(r[n][m]["duplicates"] for r in rounds for m in ("drain", "latency"))) for n in names),
                 *([""] if missing else [])))
    lines = [markdown(("", *names, *(["debezium"] if missing else [])), rows)]
    found = comparisons(rounds, peers)
    if missing:
        lines.append(f"Debezium: not available: {missing}")
    elif found and peers:
        lines.append(markdown((f"{OURS} / ...", *peers),
                              [(name, *(times(found[name][p], more) for p in peers)) for name, _, _, more in MEASURES]))
    return "\n\n".join(lines)
