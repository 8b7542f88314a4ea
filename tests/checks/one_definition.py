#!/usr/bin/env python3
"""One name, one type: two headers that define different types of one name in one namespace break the language's
one-definition rule, which no compiler has to say, and the linker then takes either's functions for both.

usage: one_definition.py SRC"""
import collections, pathlib, re, sys

TYPE = re.compile(r"^(?:struct|class|union|enum class|enum)\s+(\w+)(?:\s+final)?\s*(?::[^:;][^;]*?)?\{", re.MULTILINE)
UNNAMED = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.MULTILINE | re.DOTALL)


def main():
    defined = collections.defaultdict(set)
    for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.h")):
        text = UNNAMED.sub("", path.read_text())
        space = "::".join(re.findall(r"^namespace ([\w:]+) \{$", text, re.MULTILINE))
        for name in TYPE.findall(text):
            defined[f"{space}::{name}"].add(str(path))
    twice = {name: paths for name, paths in defined.items() if len(paths) > 1}
    for name, paths in twice.items():
        print(f"{name} is defined in {' and '.join(sorted(paths))}")
    if len(defined) < 100:
        sys.exit(f"only {len(defined)} types were found: the check is broken")
    print(f"{len(defined)} types, {len(twice)} of them defined twice")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
