"""The bill of materials of the two programs, as CycloneDX 1.5."""

import datetime
import json
import os
import sys

from contents import PROGRAMS, crates, said


def purl(key):
    """The address of a crate, by which lists of vulnerabilities name it."""
    name, version = key
    return f"pkg:cargo/{name}@{version}"


def component(crate):
    """A crate."""
    entry = {
        "type": "application" if crate.name in PROGRAMS else "library",
        "bom-ref": purl(crate.key),
        "name": crate.name,
        "version": crate.version,
        "purl": purl(crate.key),
        # In older manifests a slash is an OR.
        "licenses": [{"expression": crate.licence.replace("/", " OR ")}],
    }
    if crate.checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": crate.checksum}]
    if crate.repository:
        entry["externalReferences"] = [{"type": "vcs", "url": crate.repository}]
    return entry


def underneath():
    """What no manifest names."""
    rust = said("rustc", "--version").split()[1]
    glibc = said("getconf", "GNU_LIBC_VERSION").split()[1]
    return [
        {
            "type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": rust,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        },
        {
            "type": "library", "bom-ref": "glibc", "name": "glibc", "version": glibc,
            "description": "In the static programs; the others find the host's.",
            "licenses": [{"expression": "LGPL-2.1-or-later"}],
        },
    ]


def main(target):
    """Prints it: the same for the same sources, whenever it is made."""
    linked, below = crates(target), underneath()
    programs = [crate for crate in linked if crate.name in PROGRAMS]
    version = programs[0].version
    made = datetime.datetime.fromtimestamp(
        int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc
    )
    whole = f"jvs-{version}-{target}"
    links = {purl(crate.key): sorted(map(purl, crate.links)) for crate in linked}
    links[whole] = [purl(crate.key) for crate in programs]
    for crate in programs:
        links[purl(crate.key)] += [library["bom-ref"] for library in below]
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": whole, "name": "jvs", "version": version,
                "licenses": [{"license": {"id": "MIT"}}],
            },
        },
        "components": [component(crate) for crate in linked] + below,
        "dependencies": [
            {"ref": name, "dependsOn": needed} for name, needed in sorted(links.items())
        ],
    }
    print(json.dumps(bill, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
