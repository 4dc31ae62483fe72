"""The picture of accuracy over texts per second, from the results of benchmarks/classifier.py."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _peers import EXAMPLES, NAMES, OURS, PEERS, POOL
from _tables import TIMING, Result, read_results

from handful.analysis.figures import COLOURS, INK, MARKERS, Figure, panels

DATA, QUERIES = "banking77", 1000
SHOTS = (1, 5)
RATES = (100, 1_000, 10_000, 100_000)
FILLED = {EXAMPLES: "none", NAMES: "full", POOL: "full"}


def rows_of(results: Sequence[Result], peers: Sequence[str]) -> list[dict[str, Any]]:
    """Accuracy and speed of each peer in each setting; a peer whose speed was not measured is left out."""
    rows = []
    for peer in peers:
        mine = [one for one in results if one.peer == peer and one.data == DATA and one.queries == QUERIES]
        rates = [one.texts_per_second for one in mine if one.texts_per_second]
        for setting in (EXAMPLES, NAMES, POOL):
            for shots in SHOTS:
                same = [one for one in mine if (one.setting, one.shots) == (setting, shots) and one.kind != TIMING]
                found = [one.accuracy for one in same if not one.per_class]
                if rates and found:
                    accuracy = round(100 * statistics.mean(found), 1)
                    rows.append(
                        {
                            "peer": peer,
                            "setting": setting,
                            "shots": shots,
                            "accuracy": accuracy,
                            "rate": statistics.median(rates),
                        }
                    )
    return rows


def speed_picture(path: Path) -> str:
    """The picture as SVG."""
    results = read_results(path)
    peers = [*OURS, "tfidf", "potion", "minilm", "bge", "setfit"]
    rows = rows_of(results, peers)
    shown = [peer for peer in peers if any(row["peer"] == peer for row in rows)]
    alt = "Accuracy over texts per second: " + "; ".join(
        f"{PEERS[row['peer']].title.replace('`', '')}, {row['setting']}, {row['shots']}-shot: {row['accuracy']} % at "
        f"{row['rate']:,.0f} per second"
        for row in rows
    )
    return Figure("speed", "Accuracy and speed", "", alt, rows, lambda: _draw(rows, shown)).svg


def _draw(rows: Sequence[dict[str, Any]], peers: Sequence[str]) -> Any:
    drawing, axes = panels(8.4, 4.2, columns=len(SHOTS), sharey=True)
    for axis, shots in zip(axes, SHOTS, strict=True):
        axis.set(
            xscale="log",
            xlim=(100, 200_000),
            title=f"{shots} example{'s' * (shots > 1)} per class",
            xlabel="texts per second, two cores",
        )
        axis.set_xticks(RATES, [f"{rate:,}" for rate in RATES])
        axis.minorticks_off()
        for number, peer in enumerate(peers):
            _draw_peer(axis, [row for row in rows if row["peer"] == peer and row["shots"] == shots], number, peer)
    axes[0].set_ylabel("accuracy on BANKING77, 77 classes, in %")
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8.5)
    drawing.suptitle("○ examples alone   ● with label words   ★ and unlabelled texts", fontsize=8.5)
    return drawing


def _draw_peer(axis: Any, rows: Sequence[dict[str, Any]], number: int, peer: str) -> None:
    colour = COLOURS[number % len(COLOURS)] if number < len(COLOURS) else INK
    marker = MARKERS[number % len(MARKERS)]
    title = PEERS[peer].title.replace("`", "")
    axis.plot([row["rate"] for row in rows], [row["accuracy"] for row in rows], color=colour, linewidth=1, alpha=0.5)
    axis.plot([], [], marker, color=colour, label=title)
    for row in rows:
        size, own = (11, "*") if row["setting"] == POOL else (7, marker)
        axis.plot(row["rate"], row["accuracy"], own, color=colour, markersize=size, fillstyle=FILLED[row["setting"]])
