"""What is in the two programs: every crate that is linked into one of them.

Asked of cargo for the programs alone: what only tests, build scripts and macros of the
compiler need is in neither.
"""

import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("jvs", "jvs-mcp")


def said(*command):
    """What a command says."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


class Crate:
    """One crate, and what it links."""

    def __init__(self, package, checksum):
        self.name = package["name"]
        self.version = package["version"]
        self.licence = package["license"]
        self.authors = package["authors"]
        self.repository = package["repository"]
        self.directory = Path(package["manifest_path"]).parent
        #: Of the archive in the registry; ours have none.
        self.checksum = checksum
        self.links = set()

    @property
    def key(self):
        """What tells it from every other."""
        return (self.name, self.version)

    @property
    def is_ours(self):
        """Whether it is part of this repository."""
        return self.checksum is None

    def notices(self):
        """The files in which its authors say what its licence asks to be passed on."""
        wanted = re.compile(r"(licen[cs]e|copying|notice|copyright)", re.IGNORECASE)
        files = (path for path in self.directory.iterdir() if path.is_file())
        return sorted(path for path in files if wanted.match(path.name))


def checksums():
    """The checksum of each crate of a registry, as the lock file has it."""
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    found = re.findall(
        r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([^"]+)"', lock
    )
    return {(name, version): checksum for name, version, checksum in found}


def crates(target):
    """All of them, sorted by name and version."""
    known = checksums()
    metadata = said("cargo", "metadata", "--format-version=1", "--locked")
    all_of = {}
    for package in json.loads(metadata)["packages"]:
        key = (package["name"], package["version"])
        all_of[key] = Crate(package, known.get(key))
    tree = said(
        "cargo", "tree", "--locked", "--target", target, "--edges", "normal,no-proc-macro",
        "--prefix", "depth", "--format", " {p}", *(f"--package={name}" for name in PROGRAMS),
    )
    linked, above = {}, []
    for line in filter(None, tree.splitlines()):
        depth, name, version = re.match(r"(\d+) (\S+) v(\S+)", line).groups()
        crate = all_of[name, version]
        linked[crate.key] = crate
        del above[int(depth):]
        if above:
            above[-1].links.add(crate.key)
        above.append(crate)
    return [linked[key] for key in sorted(linked)]
