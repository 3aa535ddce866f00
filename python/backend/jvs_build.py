"""Makes the wheel: the package, and the program ``jvs`` beside it.

A PEP 517 backend of our own: the wheel is one directory of Python and one program, and
there is nothing to configure. It needs no network and no other package.

``JVS_BINARY`` names a program that is built already; otherwise it is built here, as a
release. ``JVS_NOTICES`` names what the licences of others ask to be passed on with it. What the wheel may be installed on is read from the program itself: its
architecture, and the oldest glibc that has all that it asks for.
"""

import base64
import hashlib
import os
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1]
ROOT = PYTHON.parent
#: Of ELF: what `e_machine` is called in the tag of a wheel.
MACHINES = {62: "x86_64", 183: "aarch64"}
#: Wheels have no time of their own: the same content is the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)


def version():
    """The version of the workspace."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "([^"]+)"$', manifest, re.MULTILINE)
    return found.group(1)


def program():
    """The program that goes into the wheel."""
    named = os.environ.get("JVS_BINARY")
    if named:
        return Path(named)
    cargo = ["cargo", "build", "--release", "--locked", "--package", "jvs"]
    subprocess.run(cargo, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "jvs"


def platform(elf):
    """What a program of these bytes runs on, as the tag of a wheel."""
    if elf[:4] != b"\x7fELF" or elf[5] != 1:
        raise SystemExit("jvs_build: the program is not one for Linux")
    number = int.from_bytes(elf[18:20], "little")
    if number not in MACHINES:
        raise SystemExit(f"jvs_build: no wheel is made for machine {number}")
    machine = MACHINES[number]
    needed = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", elf)]
    if not needed:
        # It brings all of it along.
        return f"manylinux2014_{machine}.musllinux_1_1_{machine}"
    return f"manylinux_2_{max(needed)}_{machine}"


def metadata():
    """What the package says of itself."""
    project = (PYTHON / "pyproject.toml").read_text(encoding="utf-8")

    def said(field):
        return re.search(rf'^{field} = "([^"]+)"$', project, re.MULTILINE).group(1)

    classifiers = re.findall(r'^    "([^"]+ :: [^"]+)",$', project, re.MULTILINE)
    lines = [
        "Metadata-Version: 2.1",
        "Name: jvs",
        f"Version: {version()}",
        f"Summary: {said('description')}",
        "License: MIT",
        f"Requires-Python: {said('requires-python')}",
        *(f"Classifier: {one}" for one in classifiers),
        "Description-Content-Type: text/markdown",
    ]
    readme = (PYTHON / "README.md").read_text(encoding="utf-8")
    return "\n".join(lines) + "\n\n" + readme


class Wheel:
    """A wheel that is being written."""

    def __init__(self, path, info):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info = info
        self.record = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | mode) << 16
        self.file.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        self.record.append(f"{name},sha256={digest.decode()},{len(content)}")

    def close(self):
        name = f"{self.info}/RECORD"
        lines = "\n".join([*self.record, f"{name},,"]) + "\n"
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.external_attr = (stat.S_IFREG | 0o644) << 16
        self.file.writestr(entry, lines)
        self.file.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: writes the wheel, and answers its name."""
    elf = program().read_bytes()
    tags = platform(elf)
    info = f"jvs-{version()}.dist-info"
    name = f"jvs-{version()}-py3-none-{tags}.whl"
    wheel = Wheel(Path(wheel_directory) / name, info)
    package = PYTHON / "src"
    for path in sorted(package.rglob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            wheel.add(str(path.relative_to(package)), path.read_bytes())
    wheel.add(f"jvs-{version()}.data/scripts/jvs", elf, mode=0o755)
    wheel.add(f"{info}/METADATA", metadata().encode())
    wheel.add(f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())
    notices = os.environ.get("JVS_NOTICES")
    if notices:
        wheel.add(f"{info}/THIRD-PARTY.txt", Path(notices).read_bytes())
    lines = ["Wheel-Version: 1.0", "Generator: jvs_build", "Root-Is-Purelib: false"]
    lines += [f"Tag: py3-none-{tag}" for tag in tags.split(".")]
    wheel.add(f"{info}/WHEEL", ("\n".join(lines) + "\n").encode())
    wheel.close()
    return name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: there is none. The program is built from the whole repository."""
    raise SystemExit("jvs_build: there is no source distribution; clone the repository")


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    directory.mkdir(parents=True, exist_ok=True)
    print(directory / build_wheel(directory))
