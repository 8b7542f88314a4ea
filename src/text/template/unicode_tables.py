#!/usr/bin/python3
"""Writes unicode_tables.inc: what Python's str knows of characters, as ranges.

    python3 src/text/template/unicode_tables.py > src/text/template/unicode_tables.inc
"""
import sys
import unicodedata

LAST = 0x110000
SURROGATES = range(0xD800, 0xE000)


def ranges(name, test):
    out, start = [], None
    for c in range(LAST + 1):
        hit = c < LAST and c not in SURROGATES and test(chr(c))
        if hit and start is None:
            start = c
        if not hit and start is not None:
            out.append((start, c - 1))
            start = None
    emit(f"constexpr Range k{name}[]", [f"{{0x{a:X}, 0x{b:X}}}" for a, b in out])


def emit(head, items):
    print(f"{head} = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 110:
            print(line)
            line = "   "
        line += f" {item},"
    print(line + "\n};")


def mappings(name, convert):
    simple, special = [], []
    for c in range(LAST):
        if c in SURROGATES:
            continue
        to = convert(chr(c))
        if to == chr(c):
            continue
        if len(to) > 1:
            special.append((c, to))
            continue
        delta = ord(to) - c
        # Ranges of one delta, with a stride of 1 or 2 (alternating upper and lower case).
        if simple:
            first, last, stride, d = simple[-1]
            if d == delta and c - last in (1, 2) and (first == last or stride == c - last):
                simple[-1] = (first, c, c - last, d)
                continue
        simple.append((c, c, 1, delta))
    emit(f"constexpr Mapping k{name}[]", [f"{{0x{a:X}, 0x{b:X}, {s}, {d}}}" for a, b, s, d in simple])
    escaped = lambda t: "".join(f"\\x{b:02x}" for b in t.encode())
    emit(f"constexpr Expansion k{name}Expansions[]", [f'{{0x{c:X}, "{escaped(t)}"}}' for c, t in special])


# Letters after which a sigma is not final, and marks that the search for them passes over (Unicode 3.13, D135/D136).
MID_LETTERS = "'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a^`\u00a8\u00ad\u00af\u00b4\u00b8"
IGNORABLE = ("Mn", "Me", "Cf", "Lm", "Sk")

print(f"// Written by unicode_tables.py from Python {sys.version.split()[0]}, Unicode {unicodedata.unidata_version}.")
print("// clang-format off")
ranges("Space", str.isspace)
ranges("Alpha", str.isalpha)
ranges("Decimal", str.isdecimal)
ranges("Digit", str.isdigit)
ranges("Numeric", str.isnumeric)
ranges("Upper", str.isupper)
ranges("Lower", str.islower)
ranges("Title", lambda c: unicodedata.category(c) == "Lt")
ranges("Unprintable", lambda c: not c.isprintable())
ranges("CaseIgnorable", lambda c: unicodedata.category(c) in IGNORABLE or c in MID_LETTERS)
mappings("ToUpper", str.upper)
mappings("ToLower", str.lower)
mappings("ToTitle", str.title)
