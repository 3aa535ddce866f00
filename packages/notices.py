"""What the licences of others ask to be passed on with the programs, as one text."""

import sys

from contents import crates

BEGIN = """\
jvs and jvs-mcp are under the MIT licence (LICENSE). What follows is by others and is in
one of the two programs: for each, its licence, and the notices that its authors ask to be
passed on. Where there is a choice of licences, any of them may be chosen.

The programs contain Rust's standard library (MIT or Apache-2.0,
https://github.com/rust-lang/rust). Where they are static they contain the GNU C library
(LGPL-2.1 or later, https://sourceware.org/glibc/), too: build them from source with another
one to replace it (scripts/release).
"""


def main(target):
    """Prints it. A text that several crates share is printed once."""
    texts = {}
    print(BEGIN)
    for crate in crates(target):
        if crate.is_ours:
            continue
        print(f"{crate.name} {crate.version}: {crate.licence}")
        if crate.authors:
            print(f"    by {', '.join(crate.authors)}")
        print(f"    {crate.repository}")
        for path in crate.notices():
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            # However its lines are broken.
            _, names = texts.setdefault(" ".join(text.split()), (text, []))
            names.append(f"{crate.name} {crate.version}")
    for text, names in texts.values():
        print(f"\n{'-' * 80}\nOf {', '.join(names)}:\n\n{text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
