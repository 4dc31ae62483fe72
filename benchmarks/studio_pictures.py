"""Take pictures of each step in the studio, in light, in dark and on a phone, for the docs.

python benchmarks/studio_pictures.py --out docs/images       (extra browser, and Chromium)

The example project is labelled as two people would, with a few slips, so that every view has something to show.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import httpx
from studio import ask, server

from handful.utils.paths import resource

LABELLED = 44  # texts of the example that anna labels
SLIPS = {9: 3, 30: 6}  # texts that get a wrong class
SECOND = 10  # texts that bert labels too, two of them differently
SIZES = {"": (1280, 800), "-phone": (390, 844)}
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"


def prepare(client: httpx.Client) -> str:
    """The example project with labels of two people."""
    project = str(ask(client, "POST", "/projects/example")["id"])
    truth = {row["text"]: row["label"].replace("_", " ") for row in map(json.loads, resource("demo.jsonl").open())}
    numbers = {one["name"]: one["number"] for one in ask(client, "GET", f"/projects/{project}")["classes"]}
    texts = ask(client, "GET", f"/projects/{project}/texts", params={"limit": 200})["texts"]
    rights = {one["id"]: numbers[truth[one["text"]]] for one in texts}
    for number in range(8, 8 + LABELLED):
        label(client, project, number, SLIPS.get(number, rights[number]), "anna")
    for number in range(8, 8 + SECOND):
        wrong = number in (12, 15)
        label(client, project, number, rights[number] % 8 + 1 if wrong else rights[number], "bert")
    for kind in ("accuracy", "curve", "map", "cleaning/mistakes", "cleaning/duplicates"):
        ask(client, "GET", f"/projects/{project}/{kind}", params={"wait": True})
    ask(client, "GET", f"/projects/{project}/texts", params={"wait": True})
    return project


def label(client: httpx.Client, project: str, text: int, number: int, name: str) -> None:
    """Give a text a class under a name."""
    headers = {"x-handful-annotator": name}
    ask(client, "POST", f"/projects/{project}/labels", json={"texts": [text], "class": number}, headers=headers)


# What is done in each view before the picture


def begin(page: Any) -> None:
    """Nothing: the first page of an empty studio."""
    page.get_by_text("Label a handful.").wait_for()


def labelling(page: Any) -> None:
    """A text with its shaded words."""
    page.wait_for_selector("mark.spoke")
    page.wait_for_selector(".guess")


def table(page: Any) -> None:
    """A search with two rows selected."""
    page.get_by_label("Search texts").fill("repair")
    page.wait_for_timeout(1500)
    rows = page.locator(".grid-row")
    for place in (0, 2):
        rows.nth(place).click()


def mapped(page: Any) -> None:
    """Some points inside a lasso."""
    page.get_by_text("Draw around some").wait_for()
    page.wait_for_timeout(800)
    box = page.locator("canvas").bounding_box()
    corners = [(0.08, 0.3), (0.3, 0.22), (0.34, 0.5), (0.2, 0.62), (0.07, 0.5)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()
    page.wait_for_timeout(600)


def watch(page: Any) -> None:
    """The estimate and the curve."""
    page.wait_for_selector(".curve .point")
    page.get_by_text("Up to date").wait_for()


def suspects(page: Any) -> None:
    """A list with something on it."""
    page.wait_for_selector(".suspect")


def tried(page: Any) -> None:
    """A text with its answer."""
    page.get_by_label("A text to try").fill("Hello, is my grandmother's kettle fixed yet? She misses her tea.")
    page.wait_for_selector(".verdict")


STEPS = {
    "data": lambda page: page.wait_for_selector(".codebook li"),
    "label": labelling,
    "watch": watch,
    "table": table,
    "map": mapped,
    "clean": suspects,
    "together": suspects,
    "use": tried,
}


def take(browser: Any, address: str, project: str | None, out: Path, scheme: str, size: str) -> None:
    """Pictures of all steps in one colour scheme and size."""
    width, height = SIZES[size]
    ending = f"{'-dark' if scheme == 'dark' else ''}{size}.png"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.add_init_script("localStorage.setItem('handful.name', 'anna')")
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".view")
    steps: dict[str, Any] = STEPS if project else {"begin": begin}
    for view, prepare_view in steps.items():
        if project:
            page.goto(f"{address.partition('#')[0]}#/p/{project}/{view}")
        prepare_view(page)
        page.mouse.move(2, 2)
        page.wait_for_timeout(700)
        write(page.screenshot(), out / f"studio-{view}{ending}")
    context.close()


def write(picture: bytes, path: Path) -> None:
    """Write a picture with its 256 most frequent colours, as a small file."""
    from PIL import Image

    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    frequent = sorted(whole.getcolors(1 << 24), reverse=True)[:256]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for _, colour in frequent for value in colour])
    whole.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size // 1024} KB")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    looks = [("light", ""), ("dark", ""), ("light", "-phone")]
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (client, _), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        token = client.headers["authorization"].partition(" ")[2]
        address = f"{str(client.base_url).partition('/api')[0]}/#token={token}"
        for scheme, size in looks:
            take(browser, address, None, given.out, scheme, size)
        project = prepare(client)
        for scheme, size in looks:
            take(browser, address, project, given.out, scheme, size)
        browser.close()


if __name__ == "__main__":
    main()
