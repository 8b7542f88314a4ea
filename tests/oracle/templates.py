#!/usr/bin/python3
"""Compares our template interpreter with Jinja2, set up as transformers' apply_chat_template sets it up.

    templates.py RENDER_LINES FOLDER [COUNT] [SEED]

FOLDER holds chat templates (NAME.jinja), each rendered with every conversation of conversations.py, and snippets.txt (one
expression or template a line). COUNT random expressions follow, from SEED. Exit 0: all equal; 1: differences, printed; 77: no jinja2 here.
"""
import copy
import datetime
import functools
import json
import os
import random
import subprocess
import sys
import warnings

import conversations

try:
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print("SKIPPED: python3 has no jinja2 (package python3-jinja2)")
    sys.exit(77)

warnings.simplefilter("ignore")  # of Python's compiler, about random expressions

NOW = 1753967045  # 2025-07-31 13:04:05, told to both sides


class Raised(Exception):
    pass


class Generation(Extension):
    """{% generation %} marks what the assistant wrote; in rendering it is nothing but its body."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment():
    def raise_exception(message):
        raise Raised(str(message))

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(format)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


@functools.lru_cache(maxsize=8)
def compiled(env, template):
    return env.from_string(template)


def reference(env, template, context):
    try:
        text = compiled(env, template).render(**copy.deepcopy(context))  # |indent adds to a list in place
        text.encode()
        return "ok", text
    except Raised as e:
        return "raised", str(e)
    except Exception as e:  # whatever Python throws is an error for us too
        return "error", f"{type(e).__name__}: {e}"


# ---- random expressions

STRINGS = ["", "a", "abc", "Hello World", " pad ", "x,y,z", "ünïcödé ß", "日本語", "it's", 'say "hi"', "line\nbreak", "A-b (c)", "42", "-7", "3.5", "aXbXc", "\tτέλος ΣΑΣ"]
NAMES = ["s", "t", "n", "z", "f", "l", "d", "e", "none_", "flag", "ms", "missing", "u"]
CONTEXT = {
    "s": "Hello World", "t": " x,y ,z ", "n": 7, "z": 0, "f": 2.5, "l": [3, 1, 2], "d": {"b": 1, "a": [1, 2], "C": None},
    "e": [], "none_": None, "flag": True, "u": "Größe Привет ΑΣ",
    "ms": [{"role": "user", "content": "hi", "n": 2}, {"role": "assistant", "content": None, "n": 1},
           {"role": "user", "content": "yo", "n": 2, "x": {"y": [1, {"k": "v"}]}}],
}
FILTERS = ["trim", "length", "upper", "lower", "title", "capitalize", "first", "last", "list", "string", "int", "float", "abs", "sort",
           "unique|list", "reverse|list", "safe", "escape", "sum", "min", "max", "wordcount", "tojson", "items|list", "dictsort",
           "join", "join(', ')", "join('-', attribute='role')", "default('D')", "d('D', true)", "round", "round(1)", "replace('l', 'L')",
           "replace('', '.')", "indent", "indent(2, true)", "indent(first=true, width=1, blank=true)", "batch(2)|list", "batch(2, 'x')|list", "slice(2)|list",
           "map('upper')|list", "map(attribute='role')|list", "map(attribute='x.y', default='?')|list", "selectattr('role', 'equalto', 'user')|list",
           "selectattr('content')|list|length", "rejectattr('role', 'eq', 'user')|map(attribute='n')|list", "select('string')|list", "reject('none')|list",
           "select('odd')|list", "select|list", "groupby('role')", "groupby('n')|list", "sort(attribute='n')|map(attribute='role')|join", "sort(reverse=true)",
           "sum(attribute='n')", "tojson(indent=2)", "tojson(indent=4, sort_keys=true)", "tojson(ensure_ascii=true)", "tojson(separators=(',', ':'))",
           "truncate(5)", "truncate(8, true, '~', 0)", "center(9)", "urlencode", "format(1, 2)", "count", "int(5)", "float(1.5)", "int(0, 16)", "reverse",
           "first|upper", "string|length", "min(attribute='n')", "max(attribute='n')", "trim('H ')", "unique(attribute='role')|list", "forceescape", "attr('x')"]
METHODS = ["strip()", "lstrip()", "rstrip()", "strip('Hdx ')", "split()", "split(',')", "split(' ', 1)", "rsplit(' ', 1)", "split('l')[-1]", "splitlines()",
           "splitlines(true)", "upper()", "lower()", "title()", "capitalize()", "swapcase()", "startswith('H')", "endswith(('d', 'c'))", "replace('o', '0')",
           "replace('l', 'L', 1)", "find('o')", "rfind('o')", "count('l')", "index('l')", "removeprefix('He')", "removesuffix('ld')", "isdigit()", "isalpha()",
           "isupper()", "islower()", "isspace()", "istitle()", "isalnum()", "partition(' ')", "rpartition('o')", "zfill(12)", "center(15, '*')", "ljust(14) ~ '|'", "rjust(14)",
           "join(['a', 'b'])", "join('abc')", "items()|list", "keys()|list", "values()|list", "get('a')", "get('q', 'dflt')", "get('a', 1)[0]", "index(1)", "count(1)",
           "format(1, x=2)", "expandtabs(4)", "encode", "append(1)", "update({})", "copy()", "items", "role", "content", "x.y", "0", "bit_length()"]
TESTS = ["defined", "undefined", "none", "not none", "string", "mapping", "sequence", "iterable", "number", "integer", "float", "boolean", "true", "false",
         "callable", "odd", "even", "divisibleby 3", "divisibleby(2)", "eq 7", "ne 0", "lt 3", "gt(2)", "ge 7", "le 7", "in [7, 'a']", "in 'Hello World'", "sameas none",
         "upper", "lower", "not string", "escaped", "equalto 'abc'", "filter", "test"]


def rand_expr(r, depth):
    if depth <= 0 or r.random() < 0.15:
        k = r.randrange(7)
        if k == 0:
            return repr(r.choice([0, 1, -1, 2, 3, 7, 10, 255, -12, 10**12]))
        if k == 1:
            return repr(r.choice([0.0, 0.5, 1.5, -2.5, 3.0, 1e16, 1e-5, 123456.789, 2.675]))
        if k == 2:
            return json.dumps(r.choice(STRINGS), ensure_ascii=False)
        if k == 3:
            return r.choice(["true", "false", "none"])
        return r.choice(NAMES)
    sub = lambda: rand_expr(r, depth - 1 - r.randrange(2))
    k = r.randrange(17)
    if k == 0:
        return f"({sub()} {r.choice(['+', '-', '*', '/', '//', '%'])} {sub()})"
    if k == 1:
        return f"{sub()} ~ {sub()}"
    if k == 2:
        return f"({sub()} {r.choice(['==', '!=', '<', '<=', '>', '>=', 'in', 'not in'])} {sub()})"
    if k == 3:
        return f"({sub()} {r.choice(['and', 'or'])} {sub()})"
    if k == 4:
        return f"(not {sub()})"
    if k == 5:
        return f"({sub()} if {sub()} else {sub()})"
    if k in (6, 7):
        return f"({sub()}|{r.choice(FILTERS)})"
    if k in (8, 9):
        return f"({sub()}).{r.choice(METHODS)}"
    if k == 10:
        return f"({sub()} is {r.choice(TESTS)})"
    if k == 11:
        return f"({sub()})[{r.choice(['0', '-1', '1', sub(), repr('a'), repr('role')])}]"
    if k == 12:
        part = lambda: r.choice(["", "", "0", "1", "-1", "2", "-2", "5", "none"])
        return f"({sub()})[{part()}:{part()}{r.choice(['', ':' + r.choice(['', '1', '2', '-1', '-2'])])}]"
    if k == 13:
        return "[" + ", ".join(sub() for _ in range(r.randrange(4))) + "]"
    if k == 14:
        return "(" + "".join(sub() + "," for _ in range(r.randrange(1, 3))) + ")"
    if k == 15:
        return "{" + ", ".join(f"{json.dumps(r.choice('abcd'))}: {sub()}" for _ in range(r.randrange(3))) + "}"
    return f"range({r.randrange(-3, 6)}, {r.randrange(-3, 9)}{r.choice(['', ', 2', ', -1'])})"


def rand_template(r):
    e = lambda d=3: rand_expr(r, d)
    k = r.randrange(8)
    if k < 5:
        return "{{ " + e(4) + " }}"
    if k == 5:
        return ("{% for x in " + e() + r.choice(["", " if " + r.choice(["x", "x is string", "not x", "loop is undefined"])]) + " %}{{ loop.index }}{{ loop.last }}:{{ x }}"
                + r.choice(["", "{% if loop.index == 2 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}.", "{{ loop.length }}", "{{ loop.nextitem }}{{ loop.previtem }}"])
                + ";{% else %}none{% endfor %}")
    if k == 6:
        return "{% set v = " + e() + " %}{% if v %}T{{ v }}{% elif v is none %}N{% else %}F{{ v }}{% endif %}"
    return ("{% set ns = namespace(v=" + e(1) + ") %}\n  {%- for x in " + e(2) + " %}\n  {% set ns.v = ns.v ~ x %}\n{% endfor %}\n {{ ns.v }}\n")


# ---- comparison

def same(expected, got):
    """Texts must be equal; an error must meet an error. raise_exception must be told apart, with its own words."""
    kind, text = expected
    if kind == "ok":
        return got.get("ok") == text
    if kind == "raised":
        return got.get("kind") == 6 and got.get("error") == text
    return "error" in got and got["kind"] != 6


# Where we differ and mean to: addresses in memory; what we refuse by name; slices of numbers and dicts, which are undefined to Jinja where it
# folds constants and an error elsewhere, and always an error here.
def unfit(text, got):
    error = got.get("error", "")
    return " at 0x" in text or error.endswith("object is not subscriptable") or error.endswith("unhashable type: 'slice'") or error.endswith("is not supported")


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 3000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    env = environment()
    cases = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.endswith(".jinja"):
            with open(path, encoding="utf-8", newline="") as f:
                template = f.read()
            for i, context in enumerate(conversations.contexts()):
                cases.append((f"{name}[{i}]", template, context))
    with open(os.path.join(folder, "snippets.txt"), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("##"):
                continue
            template = line.replace("⏎", "\n") if "{" in line and ("{{" in line or "{%" in line or "{#" in line) else "{{ " + line + " }}"
            cases.append((f"snippets.txt:{number}", template, CONTEXT))
    fixed = len(cases)
    r = random.Random(seed)
    for i in range(count):
        cases.append((f"random {seed}/{i}", rand_template(r), CONTEXT))

    lines = "".join(json.dumps({"template": t, "context": c, "now": NOW}, ensure_ascii=False) + "\n" for _, t, c in cases)
    run = subprocess.run([binary], input=lines.encode("utf-8", "surrogatepass"), stdout=subprocess.PIPE)
    answers = [json.loads(line) for line in run.stdout.decode().split("\n") if line]
    if run.returncode != 0 or len(answers) != len(cases):
        print(f"{binary} ended with {run.returncode} after {len(answers)} of {len(cases)}: next was {cases[len(answers)] if len(answers) < len(cases) else ''}")
        return 1
    differences = skipped = fine = 0
    for (name, template, context), got in zip(cases, answers):
        expected = reference(env, template, context)
        if expected[0] == "ok":
            if unfit(expected[1], got):
                skipped += 1
                continue
            fine += 1
        if not same(expected, got):
            differences += 1
            if differences <= 30:
                print(f"--- {name}\n{template if len(template) < 300 else ''}\nreference: {expected}\nours:      {got}")
    print(f"{fixed} written and {count} random templates: {fine} rendered, {len(cases) - fine - skipped} errors, {skipped} left out, {differences} differences (jinja2 {jinja2.__version__})")
    return 1 if differences else 0


sys.exit(main())
