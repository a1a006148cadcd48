"""Ratios, what is demanded of them, and the table."""
import statistics

from parts.figures import bound_text, least, markdown, spread, whole

TITLES = {"ordered": "per-key order", "unordered": "no order"}
DEMANDED = {("graphile-worker", "ordered"): 50, ("graphile-worker", "unordered"): 3, ("pg-boss", "unordered"): 10}
AHEAD = 1  # of every peer that keeps an order


def sluice_rates(results, mode):
    """Of each round, the better of one and two workers into null:."""
    own = [r["rates"] for r in results if r["peer"] == "sluice" and r["mode"] == mode and r.get("counts") and r.get("rates")]
    return [max(rates) for rates in zip(*own)]


def best(results, peer, mode):
    """The configuration of a peer that counts."""
    found = [r for r in results if r["peer"] == peer and r["mode"] == mode and r.get("rates")]
    return max(found, key=lambda r: (len(r["rates"]), statistics.median(r["rates"])), default=None)


def judge(results):
    """Adds rate, ratio and bound to each result that has rates. A ratio is that of a round; its median counts."""
    for r in results:
        if not r.get("rates"):
            continue
        r["rate"] = spread(r["rates"])
        ours = sluice_rates(results, r["mode"])
        if r["peer"] == "sluice" or not ours:
            continue
        r["ratio"] = spread([own / theirs for own, theirs in zip(ours, r["rates"])])
        demand = DEMANDED.get((r["peer"], r["mode"]), AHEAD if r["mode"] == "ordered" else None)
        if demand and r is best(results, r["peer"], r["mode"]):
            r["bound"] = least(demand, r["ratio"]["median"])
    return results


def times(ratio):
    return f"{ratio:,.0f}" if ratio >= 20 else f"{ratio:.1f}" if ratio >= 2 else f"{ratio:.2f}"


def cells(r):
    name = f"{r['peer']} {r['version']}".strip()
    if "unavailable" in r:
        return name, "", f"not available: {r['unavailable']}", "", "", "", ""
    order = f"{TITLES[r['mode']]}: {r['order']}" if r["mode"] == "ordered" else TITLES[r["mode"]]
    if "absent" in r:
        return name, TITLES[r["mode"]], f"not measured: {r['absent']}", "", "", "", ""
    if "failed" in r:
        return name, order, r["config"], f"{r['rows']:,}", f"FAILED: {r['failed'].splitlines()[0]}", "", ""
    ratio = times(r["ratio"]["median"]) if "ratio" in r else ""
    return name, order, r["config"], f"{r['rows']:,}", whole(r["rate"]), ratio, bound_text(r)


def table(results):
    """One line for each peer, mode and configuration; the best one of a peer has what is demanded."""
    return markdown(("peer", "order", "configuration", "messages", "per second (min..max)", "sluice is x times as fast",
                     "demanded"), [cells(r) for r in results])


def verdict(results):
    """Whether all that is demanded holds, and a sentence on it."""
    broken = [r["config"] for r in results if r["peer"] == "sluice" and "failed" in r]
    bound = [r for r in results if r.get("bound")]
    missed = [f"{r['peer']} ({TITLES[r['mode']]})" for r in bound if not r["bound"]["good"]]
    away = [r["peer"] for r in results if "unavailable" in r]
    rest = f" Not available: {', '.join(away)}." if away else ""
    if broken:
        return False, f"FAILED: sluice did not pass the check with {', '.join(broken)}.{rest}"
    if missed:
        return False, f"FAILED: less than demanded against {', '.join(missed)}.{rest}"
    if not bound:
        return True, f"Nothing was measured for which there is a demand.{rest}"
    return True, f"Good: all that is demanded of what was measured holds.{rest}"
