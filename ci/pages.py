#!/usr/bin/env python3
"""Checks pages of `unwedge … --html` with headless Chromium.

    ci/pages.py [--shots FOLDER] PAGE…     pictures of pages are as high as the page, at most 8,000 pixels

Each page is loaded at 360 and 1,600 pixels of width, light and dark. The script reports text in the console, requests, pages that are
wider than the window, duplicate ids, and serious or critical findings of axe-core. The exit status is 1 if it reports any.

axe-core takes seconds for a thousand elements, and its time grows faster than their number. Of rows, items and spans that are equal except
for their text, it gets the first 40 of each parent, with every fold open. The script prints how many elements it checked.

It needs Chromium (`apt-get install chromium`), the Python package playwright, and axe-core (`npm install axe-core`; AXE names
axe.min.js). Without them it prints that it was skipped and exits with status 0. It is not part of CI.
"""

import os
import shutil
import sys
from pathlib import Path

WIDTHS = (360, 1600)
SCHEMES = ("light", "dark")
# Chromium asks for updates and networks of its own at every start.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


# The greatest height of a picture in pixels; the limit of Chromium is 16,384.
SHOT = 8000
# Removes elements that are equal except for their text and the targets of links, after the first MOST_EQUAL of a parent. Spans are only
# unwrapped, so that lines keep their length. Returns the number of elements before and after.
THIN = """(most) => {
  const all = document.querySelectorAll("body *").length;
  const shape = (element) => {
    let text = element.tagName;
    for (const { name, value } of element.attributes) text += " " + name + (name === "href" ? "" : "=" + value);
    for (const child of element.children) text += "(" + shape(child) + ")";
    return text;
  };
  for (const parent of document.querySelectorAll("pre, code, tbody, ul, ol, dl")) {
    const seen = new Map();
    for (const child of Array.from(parent.children)) {
      const key = shape(child);
      const count = (seen.get(key) || 0) + 1;
      seen.set(key, count);
      if (count <= most) continue;
      if (child.matches("span")) child.replaceWith(...child.childNodes);
      else child.remove();
    }
    parent.normalize();
  }
  return [all, document.querySelectorAll("body *").length];
}"""
MOST_EQUAL = 40
TWICE = """() => {
  const seen = new Set(), twice = new Set();
  for (const { id } of document.querySelectorAll("[id]")) (seen.has(id) ? twice : seen).add(id);
  return Array.from(twice);
}"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(0)


def main():
    arguments = sys.argv[1:]
    shots = None
    if arguments[:1] == ["--shots"]:
        shots = Path(arguments[1])
        shots.mkdir(parents=True, exist_ok=True)
        arguments = arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        skip("Chromium is not installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("this Python does not have playwright")
    axe = Path(os.environ.get("AXE", "node_modules/axe-core/axe.min.js"))
    if not axe.is_file():
        skip(f"axe-core is not at {axe}")
    axe = axe.read_text()
    faults = judged = elements = 0
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        for page in map(Path, arguments):
            for scheme in SCHEMES:
                for width in WIDTHS:
                    found, counts = look(browser, page.resolve(), scheme, width, axe, shots)
                    faults += len(found)
                    judged, elements = judged + counts[1], elements + counts[0]
                    for fault in found:
                        print(f"{page.name} {scheme} {width}: {fault}")
        browser.close()
    print(f"{len(arguments)} pages, {len(SCHEMES) * len(WIDTHS)} times each: {faults} faults")
    print(f"axe-core judged {judged} of {elements} elements; the others are equal to some of those but for their text")
    sys.exit(1 if faults else 0)


def look(browser, page, scheme, width, axe, shots):
    # The content security policy of a page does not allow the script of axe-core.
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    tab = context.new_page()
    found = []
    url = page.as_uri()

    def request(asked):
        if asked.url != url and not asked.url.startswith("data:"):
            found.append(f"requests {asked.url}")

    tab.on("console", lambda message: found.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: found.append(f"error: {error}"))
    tab.on("request", request)
    tab.goto(url)
    root = "document.documentElement"
    over = tab.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
    if over > 0:
        found.append(f"{over} pixels wider than the window")
    if shots:
        height = min(tab.evaluate(f"{root}.scrollHeight"), SHOT)
        area = {"x": 0, "y": 0, "width": width, "height": height}
        tab.screenshot(path=shots / f"{page.stem}-{scheme}-{width}.png", full_page=True, clip=area)
    found += [f"the id {name} twice" for name in tab.evaluate(TWICE)]
    tab.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    counts = tab.evaluate(THIN, MOST_EQUAL)
    tab.evaluate(axe)
    for fault in tab.evaluate("axe.run()")["violations"]:
        if fault["impact"] in ("serious", "critical"):
            node = fault["nodes"][0]
            found.append(f"{fault['impact']} {fault['id']} ({len(fault['nodes'])}): {node['target']}")
    context.close()
    return found, counts


main()
