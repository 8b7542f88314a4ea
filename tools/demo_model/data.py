#!/usr/bin/python3
"""Build the text corpus of the demo model from Debian packages.

Every source is a package of Debian 12 "main"; it is fetched with
`apt-get download` and unpacked with `dpkg-deb -x`, so nothing has to be
installed.  The result is one JSON-lines file per topic and split,

    <build>/corpus/{prose,code,german}.{train,valid}.jsonl   {"src": ..., "text": ...}

plus <build>/corpus/sources.json (package, version, topic, bytes used) and the
word glosses that chat.py turns into questions and answers.

Usage: data.py [--build build]
"""
import argparse
import glob
import gzip
import hashlib
import html
import html.parser
import json
import os
import random
import re
import subprocess
import tarfile
import zlib

HELD_OUT = 40          # one document in HELD_OUT goes to the validation split
MAX_DOC = 24_000       # characters; longer documents are cut at paragraph ends


# ---------------------------------------------------------------- extractors

NAVIGATION = {"Download the ebook", "Prev", "Next", "Zurück", "Weiter", "Home", "Up"}


class _Text(html.parser.HTMLParser):
    SKIP = {"script", "style", "head", "nav", "footer", "noscript", "svg", "button"}
    BLOCK = {"p", "div", "h1", "h2", "h3", "h4", "h5", "li", "dt", "dd", "tr", "table",
             "ul", "ol", "dl", "section", "note", "item", "title", "steps", "list"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.out, self.skip, self.pre = [], 0, 0

    def handle_starttag(self, tag, attrs):
        if tag in self.SKIP:
            self.skip += 1
        if tag in self.BLOCK:
            self.out.append("\n\n" if tag[0] in "ph" else "\n")
        if tag == "br":
            self.out.append("\n")
        if tag == "pre":
            self.pre += 1
            self.out.append("\n\n")

    def handle_endtag(self, tag):
        if tag in self.SKIP:
            self.skip = max(0, self.skip - 1)
        if tag in self.BLOCK:
            self.out.append("\n\n" if tag[0] in "ph" else "\n")
        if tag == "pre":
            self.pre = max(0, self.pre - 1)
            self.out.append("\n\n")

    def handle_data(self, data):
        if not self.skip:
            self.out.append(data if self.pre else re.sub(r"\s+", " ", data))


def from_html(raw):
    """HTML or Mallard page -> plain text (paragraphs apart, <pre> kept)."""
    parser = _Text()
    body = re.search(r'<div[^>]*(?:role="main"|class="body"|id="DisplayArea")', raw)
    if body:
        raw = raw[body.start():]
    parser.feed(re.sub(r"(?s)<info>.*?</info>", "", raw))
    lines = [ln.rstrip() if ln.startswith("  ") else ln.strip()
             for ln in "".join(parser.out).replace("¶", "").split("\n")]
    return "\n".join(ln for ln in lines if ln not in NAVIGATION)


def from_rst(raw):
    """reStructuredText source: drop labels, comments and role markup."""
    raw = re.sub(r"(?m)^\.\. (?:_|SPDX|include|toctree|index|contents|highlight).*(?:\n[ \t]+.*)*\n?", "", raw)
    raw = re.sub(r":[a-zA-Z:+-]+:`~?!?([^`<]*?)\s*(?:<[^`>]*>)?`", r"\1", raw)
    return raw


def from_pod(raw):
    """Perl POD: keep the text, drop formatting codes."""
    if "=head1" not in raw:
        return ""
    raw = raw[raw.index("=head1"):]
    for _ in range(3):
        raw = re.sub(r"[BCIFLSX]<<+ (.*?) >>+", r"\1", raw)
        raw = re.sub(r"[BCIFLSX]<([^<>]*)>", r"\1", raw)
    raw = raw.replace("E<gt>", ">").replace("E<lt>", "<")
    return re.sub(r"(?m)^=(?:head\d|item|over|back|cut|pod|encoding|for|begin|end) ?", "", raw)


def from_roff(raw):
    """Manual page (man macros) -> plain text."""
    out = []
    for line in raw.split("\n"):
        if line.startswith((".SH", ".SS")):
            out.append("\n" + line[3:].strip().strip('"') + "\n")
        elif line.startswith((".PP", ".TP", ".IP", ".LP", ".P", ".HP")):
            out.append("")
        elif re.match(r"\.(B|I|BR|IR|RB|RI|BI|IB)\b", line):
            mac, _, arg = line[1:].partition(" ")
            words = re.findall(r'"[^"]*"|\S+', arg)
            out.append((" " if len(mac) == 1 else "").join(w.strip('"') for w in words))
        elif line.startswith((".", "'")):
            continue
        else:
            out.append(line)
    text = "\n".join(out)
    text = re.sub(r"\\f[A-Z]|\\f\(..|\\f\[[^]]*\]|\\&|\\c|\\[|^/,]", "", text)
    for a, b in ((r"\-", "-"), (r"\(aq", "'"), (r"\(lq", '"'), (r"\(rq", '"'), (r"\(bu", "*"),
                 (r"\(Bq", "„"), (r"\(lB", "["), (r"\e", "\\"), ("\\ ", " "), (r"\(em", "-")):
        text = text.replace(a, b)
    return text


def dict_entries(path):
    """dictd database -> list of (headword, entry text), in index order."""
    def b64(s):
        n = 0
        for ch in s:
            n = n * 64 + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".index(ch)
        return n
    data = gzip.open(path + ".dict.dz").read()
    for line in open(path + ".index", encoding="utf-8"):
        word, off, size = line.rstrip("\n").split("\t")[:3]
        if not word.startswith("00"):
            yield word, data[b64(off):b64(off) + b64(size)].decode("utf-8", "replace")


def clean_gcide(entry):
    """One GCIDE entry without source tags and pronunciation."""
    entry = re.sub(r"\s*\[(?:1913 Webster|PJC|WordNet[^]]*|Century[^]]*|RP|AS|\w+)(?: \+\w+)?\]", "", entry)
    entry = re.sub(r"\\[^\\\n]*\\ ?(?:\([^)\n]*\)),?", ",", entry)
    entry = re.sub(r"\s*\\[^\\\n]*\\,?", ",", entry)
    entry = re.sub(r"[{}]|\[(?=\w\w?\])", "", entry)
    return re.sub(r"\n\s*\n+", "\n", entry).strip()


def r_strings(path):
    """Character vectors of an R lazy-load database, as lists of str."""
    data, pos, found = open(path, "rb").read(), 0, []
    while pos + 4 < len(data):                  # 4-byte length, zlib stream
        try:
            d = zlib.decompressobj()
            raw = d.decompress(data[pos + 4:])
            pos = len(data) - len(d.unused_data)
        except zlib.error:
            pos += 1
            continue
        lines, p = [], 0
        while True:                             # CHARSXP: flags ....09, length, bytes
            p = raw.find(b"\x00\x04\x00\x09", p)
            if p < 0:
                break
            size = int.from_bytes(raw[p + 4:p + 8], "big", signed=True)
            lines.append(raw[p + 8:p + 8 + max(size, 0)].decode("utf-8", "replace"))
            p += 8 + max(size, 0)
        found.append(lines)
    return found


# ------------------------------------------------------------------- sources

def read(path):
    if path.endswith(".gz"):
        return gzip.open(path).read().decode("utf-8", "replace")
    return open(path, encoding="utf-8", errors="replace").read()


def identity(raw):
    return raw


# package, topic, glob below the unpacked package, extractor, cap in MB
DOC = "usr/share/doc/"
SOURCES = [
    ("debian-handbook", "prose", DOC + "debian-handbook/html/en-US/*.html", from_html, 3),
    ("debian-reference-en", "prose", "usr/share/debian-reference/*.en.html", from_html, 3),
    ("developers-reference", "prose", "usr/share/developers-reference/*.html", from_html, 2),
    ("debian-faq", "prose", DOC + "debian/FAQ/*.html", from_html, 2),
    ("installation-guide-amd64", "prose", DOC + "installation-guide-amd64/en/*.html", from_html, 2),
    ("debian-policy", "prose", DOC + "debian-policy/policy.html/*.html", from_html, 2),
    ("libreoffice-help-en-us", "prose", "usr/share/libreoffice/help/en-US/text/**/*.html", from_html, 2.5),
    ("gnome-user-docs", "prose", "usr/share/help/C/**/*.page", from_html, 2),
    ("perl-doc", "prose", "usr/share/perl/*/pod/perl[a-z]*.pod", from_pod, 1.5),
    ("linux-doc-6.1", "prose", DOC + "linux-doc-6.1/html/_sources/**/*.txt", from_rst, 3),
    ("python3.11-doc", "prose", DOC + "python3.11/html/**/*.html", from_html, 3),
    ("git-doc", "prose", DOC + "git-doc/*.txt", identity, 1),
    ("manpages", "prose", "usr/share/man/man[1-9]/*.gz", from_roff, 1),
    ("dict-foldoc", "prose", None, None, 2),
    ("dict-gcide", "prose", None, None, 5),
    ("r-cran-janeaustenr", "prose", None, None, 5),
    ("bible-kjv-text", "prose", None, None, 3),
    ("libpython3.11-stdlib", "code", "usr/lib/python3.11/**/*.py", identity, 4.5),
    ("python3-sympy", "code", "usr/lib/python3/dist-packages/sympy/[cfugns]*/**/*.py", identity, 1),
    ("python3-django", "code", "usr/lib/python3/dist-packages/django/[a-df-z]*/**/*.py", identity, 1.5),
    ("linux-source-6.1", "code", "linux-source-6.1/**/*.c", identity, 6),
    ("linux-source-6.1", "code", "linux-source-6.1/**/*.sh", identity, 1),
    ("bash-completion", "code", "usr/share/bash-completion/**/*", identity, 1),
    ("debian-handbook", "german", DOC + "debian-handbook/html/de-DE/*.html", from_html, 2.5),
    ("debian-reference-de", "german", "usr/share/debian-reference/*.de.html", from_html, 3),
    ("developers-reference-de", "german", "usr/share/developers-reference/de/*.html", from_html, 2),
    ("debian-faq-de", "german", DOC + "debian/FAQ/de/*.html", from_html, 2),
    ("installation-guide-amd64", "german", DOC + "installation-guide-amd64/de/*.html", from_html, 2),
    ("libreoffice-help-de", "german", "usr/share/libreoffice/help/de/text/**/*.html", from_html, 4),
    ("gnome-user-docs", "german", "usr/share/help/de/**/*.page", from_html, 2),
    ("manpages-de", "german", "usr/share/man/de/man[1-8]/*.gz", from_roff, 2),
]
EXTRA = ["dict-wn", "bible-kjv"]    # glosses for the chat set; reader of the KJV file
KERNEL_DIRS = ("kernel/", "lib/", "mm/", "fs/ext4/", "scripts/", "tools/")


def fetch(build):
    """Download and unpack all packages; returns {package: version}."""
    deb, root = os.path.join(build, "deb"), os.path.join(build, "root")
    os.makedirs(deb, exist_ok=True)
    names = sorted({s[0] for s in SOURCES} | set(EXTRA))
    missing = [n for n in names if not glob.glob(f"{deb}/{n}_*.deb")]
    if missing:
        subprocess.run(["apt-get", "download", *missing], cwd=deb, check=True)
    versions = {}
    for name in names:
        path = glob.glob(f"{deb}/{name}_*.deb")[0]
        versions[name] = subprocess.check_output(["dpkg-deb", "-f", path, "Version"], text=True).strip()
        if not os.path.isdir(f"{root}/{name}"):
            os.makedirs(f"{root}/{name}")
            subprocess.run(["dpkg-deb", "-x", path, f"{root}/{name}"], check=True)
    kernel = f"{root}/linux-source-6.1"
    if not os.path.isdir(kernel + "/linux-source-6.1"):
        with tarfile.open(kernel + "/usr/src/linux-source-6.1.tar.xz") as tar:
            for m in tar:
                rel = m.name.partition("/")[2]
                if m.isfile() and rel.startswith(KERNEL_DIRS) and rel.endswith((".c", ".sh")):
                    tar.extract(m, kernel)
    return versions


def novels(root):
    for i, lines in enumerate(r_strings(glob.glob(f"{root}/r-cran-janeaustenr/usr/lib/R/site-library/*/data/Rdata.rdb")[0])):
        paras = "\n".join(lines).split("\n\n")
        yield f"austen-{i}", "\n\n".join(p.replace("\n", " ") for p in paras)


def bible(root):
    out = subprocess.run([f"{root}/bible-kjv/usr/bin/bible", "-p", f"{root}/bible-kjv-text/usr/lib",
                          "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, text=True,
                         stdout=subprocess.PIPE, check=True).stdout
    chapters = {}
    for line in out.split("\n"):
        m = re.match(r"(\S+?)(\d+):(\d+) (.*)", line)
        if m:
            chapters.setdefault((m[1], m[2]), []).append(m[4])
    for key, verses in chapters.items():
        yield "kjv-%s%s" % key, "\n".join(verses)


def dictionary(root, package, name, clean):
    seen, batch = set(), []
    for _, entry in dict_entries(f"{root}/{package}/usr/share/dictd/{name}"):
        if entry in seen or len(entry) < 160:
            continue
        seen.add(entry)
        batch.append(clean(entry))
        if sum(map(len, batch)) > 3000:
            yield f"{name}-{len(seen)}", "\n\n".join(batch)
            batch = []


def documents(root, package, pattern, extract):
    if package == "r-cran-janeaustenr":
        yield from novels(root)
    elif package == "bible-kjv-text":
        yield from bible(root)
    elif package == "dict-gcide":
        yield from dictionary(root, package, "gcide", clean_gcide)
    elif package == "dict-foldoc":
        yield from dictionary(root, package, "foldoc", lambda e: re.sub(r"[{}]", "", e))
    else:
        for path in sorted(glob.glob(f"{root}/{package}/{pattern}", recursive=True)):
            if not os.path.isfile(path) or re.search(r"genindex|lib2to3/tests|/license|LICENSE|GPL|/search\.html|changelog", path):
                continue
            yield path[len(root) + 1:], extract(read(path))


def normalise(text):
    text = text.replace("\r\n", "\n").replace("\t", "\t").replace("\u00a0", " ").replace("\u00ad", "")
    text = re.sub(r"[^\S\n]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def pieces(text):
    """Cut a long document at blank lines."""
    while len(text) > MAX_DOC:
        cut = text.rfind("\n\n", MAX_DOC // 2, MAX_DOC)
        cut = cut if cut > 0 else MAX_DOC
        yield text[:cut].strip("\n") + "\n"
        text = text[cut:].strip("\n") + "\n"
    yield text


def glosses(root):
    """WordNet: {noun or verb: first gloss}, plain lower-case words only."""
    out = {}
    for word, entry in dict_entries(f"{root}/dict-wn/usr/share/dictd/wn"):
        head = entry.split("\n")[0].strip()
        if not re.fullmatch(r"[a-z]{3,14}", head):
            continue
        body = re.sub(r"\s+", " ", entry[len(head):]).strip()
        m = re.match(r"(n|v|adj)(?: 1)?: (.*)", body)
        if not m:
            continue
        gloss = re.split(r"; \"|\[syn|\[ant|; '| 2: | (?:n|v|adj|adv)(?: 1)?: ", m[2])[0].strip(" ;")
        if 15 <= len(gloss) <= 160 and "{" not in gloss:
            out[head] = (m[1], gloss, body.count(": "))
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default="build")
    build = ap.parse_args().build
    versions = fetch(build)
    root, corpus = os.path.join(build, "root"), os.path.join(build, "corpus")
    os.makedirs(corpus, exist_ok=True)
    files = {(t, s): open(f"{corpus}/{t}.{s}.jsonl", "w", encoding="utf-8")
             for t in ("prose", "code", "german") for s in ("train", "valid")}
    report, seen = [], set()
    for package, topic, pattern, extract, cap in SOURCES:
        docs = []
        for name, text in documents(root, package, pattern, extract):
            for k, piece in enumerate(pieces(normalise(text))):
                if len(piece) > 200 and hash(piece) not in seen and sum(map(len, piece.split("\n"))) > 150:
                    seen.add(hash(piece))
                    docs.append((f"{name}#{k}", piece))
        random.Random(17).shuffle(docs)
        used = {"train": 0, "valid": 0}
        for name, piece in docs:
            if sum(used.values()) > cap * 1e6:
                break
            split = "valid" if hashlib.md5(name.encode()).digest()[0] < 256 // HELD_OUT else "train"
            used[split] += len(piece.encode())
            files[topic, split].write(json.dumps({"src": name, "text": piece}, ensure_ascii=False) + "\n")
        report.append(dict(package=package, version=versions[package], topic=topic, **used))
        print(f"{topic:7} {package:26} {versions[package]:24} {used['train'] / 1e6:6.2f} MB train {used['valid'] / 1e6:5.2f} MB valid")
    g = glosses(root)
    json.dump(g, open(f"{corpus}/glosses.json", "w"), ensure_ascii=False)
    report.append(dict(package="dict-wn", version=versions["dict-wn"], topic="chat", words=len(g)))
    json.dump(report, open(f"{corpus}/sources.json", "w"), indent=1)
    print(f"{len(g)} WordNet glosses")


if __name__ == "__main__":
    main()
