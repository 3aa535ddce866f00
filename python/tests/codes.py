"""The errors of the package, made of `spec/codes.md`."""

import re
from pathlib import Path
from typing import List, Tuple

ROOT = Path(__file__).resolve().parents[2]
ERRORS = ROOT / "python/src/jvs/errors.py"
#: After which no line of that file is written by hand.
MARK = "# --- from here on made of spec/codes.md, by python/tests/codes.py\n"
#: The lock is not this process's any more.
LOST = ("E_LOCK_NOT_HELD", "E_FENCING_MISMATCH", "E_LOCK_EXPIRED")


def codes() -> List[Tuple[str, int, str]]:
    """Each code, its exit status and what it means."""
    text = (ROOT / "spec/codes.md").read_text(encoding="utf-8")
    table = text.split("## By code", 1)[1]
    rows = re.findall(r"^\| `(E_[A-Z_]+)` \| (\d+) \| (.+) \|$", table, re.MULTILINE)
    return [(code, int(status), meaning) for code, status, meaning in rows]


def class_name(code: str) -> str:
    """`E_LOCK_CONFLICT` is `LockConflict`."""
    return "".join(word.capitalize() for word in code.split("_")[1:])


def errors() -> str:
    """What `errors.py` has to be."""
    by_hand = ERRORS.read_text(encoding="utf-8").split(MARK)[0]
    made = MARK
    names = []
    for code, status, meaning in codes():
        names.append(class_name(code))
        base = "LockLost" if code in LOST else "JvsError"
        made += f'\n\nclass {class_name(code)}({base}):\n    """{meaning}"""\n\n'
        made += f'    code = "{code}"\n    exit = {status}\n'
    made += "\n\n#: The exception of each code.\nBY_CODE: Dict[str, Type[JvsError]] = {\n"
    made += "".join(f'    "{code}": {class_name(code)},\n' for code, _, _ in codes())
    made += "}\n\n__all__ = [\n"
    own = ["BadAnswer", "JvsError", "LockLost", "ProgramNotFound"]
    made += "".join(f'    "{name}",\n' for name in sorted(own + names)) + "]\n"
    return by_hand + made


if __name__ == "__main__":
    ERRORS.write_text(errors(), encoding="utf-8")
