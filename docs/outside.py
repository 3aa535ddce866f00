"""A step of `mdbook build`: a link out of these pages leads to the repository, for the book
that is built from them has nothing else of it."""

import json
import re
import sys

REPOSITORY = "https://github.com/jvs-project/jvs/blob/main/"


def lead_outside(items):
    for chapter in (item["Chapter"] for item in items if "Chapter" in item):
        chapter["content"] = re.sub(r"\]\(\.\./", "](" + REPOSITORY, chapter["content"])
        lead_outside(chapter["sub_items"])


if len(sys.argv) > 1 and sys.argv[1] == "supports":
    sys.exit(0)
_, book = json.load(sys.stdin)
lead_outside(book["items"])
json.dump(book, sys.stdout)
