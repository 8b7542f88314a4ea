#!/usr/bin/python3
"""Checks the include graph: a file of a room includes only its own room and those listed for it (DESIGN: arrows point down).

Also: operating-system headers only in sys/ (and the terminal of cli/), and no printing or exiting in library rooms.
Usage: layers.py SOURCE_FOLDER; prints each fault and exits 1 if there is one.
"""
import pathlib
import re
import sys

MAY_USE = {
    "base": set(),
    "gguf": {"base"},
    "sys": {"base"},
    "numerics": {"base"},
    "experts": {"base"},
    "text": {"base"},
    "sample": {"base"},
    "report": {"base"},
    "model": {"gguf", "numerics", "base"},
    "backend": {"numerics", "sys", "base"},
    "engine": {"model", "gguf", "experts", "sample", "backend", "numerics", "sys", "base"},
    "tune": {"engine", "model", "gguf", "experts", "sample", "text", "report", "backend", "numerics", "sys", "base"},
    "cli": {"tune", "engine", "model", "gguf", "experts", "sample", "text", "report", "backend", "numerics", "sys", "base"},
}
SYSTEM_HEADERS = re.compile(r"#include <(unistd|fcntl|pthread|sched|dirent|signal|linux/.*|sys/.*)(\.h)?>")
SYSTEM_ROOMS = {"sys", "cli"}
BANNED = re.compile(r"\b(std::exit|std::abort|std::cout|std::cerr|printf|std::printf|std::fprintf|fmt::print|rand|strtok|sprintf)\s*\(")
BANNED_ALLOWED = {"base/assert.cc"}  # a bug is reported and ends the program


def faults(source):
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        name = path.relative_to(source).as_posix()
        room = name.split("/")[0]
        if room not in MAY_USE:
            yield f"{name}: room '{room}' is not listed in {__file__}"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'#include "([^/"]+)/', line)
            if found and found[1] != room and found[1] not in MAY_USE[room]:
                yield f"{name}:{number}: room '{room}' must not include from '{found[1]}'"
            if re.match(r'#include "[^/"]+"', line):
                yield f"{name}:{number}: headers are included as \"room/file.h\""
            if SYSTEM_HEADERS.match(line) and room not in SYSTEM_ROOMS:
                yield f"{name}:{number}: operating-system headers belong in sys/"
            code = line.split("//")[0]
            if room != "cli" and name not in BANNED_ALLOWED and BANNED.search(code):
                yield f"{name}:{number}: library rooms neither print nor exit: {line.strip()}"


if __name__ == "__main__":
    found = list(faults(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "the include graph is fine")
    sys.exit(1 if found else 0)
