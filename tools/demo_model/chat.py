#!/usr/bin/python3
"""Synthetic ChatML conversations for the demo model.

Short templates only: greetings, identity, dictionary definitions (WordNet
glosses of the most frequent nouns of the prose corpus), counting, days and
months, simple arithmetic, English/German word pairs, opposites, spelling and
small Python functions.  Writes <build>/corpus/chat.{train,valid}.jsonl.

Usage: chat.py [--build build] [--count 45000]
"""
import argparse
import collections
import json
import random
import re

SYSTEM = "You are the Spillway demo model."
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
TAGE = "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split()
MONTHS = ("January February March April May June July August September "
          "October November December").split()
NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen "
           "fourteen fifteen sixteen seventeen eighteen nineteen twenty").split()
ZAHLEN = ("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
          "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig").split()
PAIRS = [p.split("=") for p in (
    "house=das Haus,tree=der Baum,water=das Wasser,bread=das Brot,book=das Buch,dog=der Hund,cat=die Katze,"
    "river=der Fluss,sun=die Sonne,moon=der Mond,star=der Stern,day=der Tag,night=die Nacht,friend=der Freund,"
    "school=die Schule,city=die Stadt,street=die Straße,door=die Tür,window=das Fenster,table=der Tisch,"
    "chair=der Stuhl,hand=die Hand,eye=das Auge,heart=das Herz,fire=das Feuer,bird=der Vogel,fish=der Fisch,"
    "apple=der Apfel,milk=die Milch,letter=der Brief,word=das Wort,world=die Welt,year=das Jahr,child=das Kind,"
    "mother=die Mutter,father=der Vater,brother=der Bruder,sister=die Schwester,garden=der Garten,"
    "mountain=der Berg,sea=das Meer,snow=der Schnee,rain=der Regen,wind=der Wind,file=die Datei,"
    "computer=der Computer,language=die Sprache,number=die Zahl,name=der Name,question=die Frage,"
    "answer=die Antwort,time=die Zeit,bridge=die Brücke,horse=das Pferd,king=der König,money=das Geld").split(",")]
PHRASES = [p.split("=") for p in (
    "Good morning=Guten Morgen,Good evening=Guten Abend,Good night=Gute Nacht,Thank you=Danke,Please=Bitte,"
    "Goodbye=Auf Wiedersehen,How are you?=Wie geht es dir?,I am hungry=Ich habe Hunger,Yes=Ja,No=Nein,"
    "I do not know=Ich weiß es nicht,Where is the station?=Wo ist der Bahnhof?,I like music=Ich mag Musik,"
    "The house is big=Das Haus ist groß,The water is cold=Das Wasser ist kalt,My name is Anna=Ich heiße Anna").split(",")]
OPPOSITES = [p.split("=") for p in (
    "hot=cold,big=small,up=down,left=right,open=closed,day=night,black=white,fast=slow,old=young,early=late,"
    "light=dark,full=empty,good=bad,high=low,long=short,rich=poor,strong=weak,hard=soft,wet=dry,near=far,"
    "first=last,true=false,happy=sad,loud=quiet,clean=dirty,easy=difficult,wide=narrow,thick=thin").split(",")]
CAPITALS = [p.split("=") for p in (
    "France=Paris,Germany=Berlin,Italy=Rome,Spain=Madrid,Portugal=Lisbon,England=London,Ireland=Dublin,"
    "Austria=Vienna,Poland=Warsaw,Greece=Athens,Norway=Oslo,Sweden=Stockholm,Finland=Helsinki,Denmark=Copenhagen,"
    "Japan=Tokyo,China=Beijing,Egypt=Cairo,Russia=Moscow,Hungary=Budapest,Belgium=Brussels").split(",")]
COLOURS = [("the sky", "blue"), ("grass", "green"), ("snow", "white"), ("coal", "black"), ("blood", "red"),
           ("a lemon", "yellow"), ("a ripe tomato", "red"), ("the sea", "blue"), ("milk", "white"), ("a leaf", "green")]
CODE = [
    ("adds two numbers", "def add(a, b):\n    return a + b"),
    ("multiplies two numbers", "def multiply(a, b):\n    return a * b"),
    ("subtracts two numbers", "def subtract(a, b):\n    return a - b"),
    ("returns the larger of two numbers", "def larger(a, b):\n    if a > b:\n        return a\n    return b"),
    ("returns the smaller of two numbers", "def smaller(a, b):\n    if a < b:\n        return a\n    return b"),
    ("computes the factorial", "def factorial(n):\n    result = 1\n    for i in range(2, n + 1):\n        result *= i\n    return result"),
    ("computes Fibonacci numbers", "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a"),
    ("reverses a string", "def reverse(text):\n    return text[::-1]"),
    ("counts the words in a text", "def count_words(text):\n    return len(text.split())"),
    ("checks whether a number is even", "def is_even(n):\n    return n % 2 == 0"),
    ("checks whether a number is odd", "def is_odd(n):\n    return n % 2 == 1"),
    ("checks whether a number is prime", "def is_prime(n):\n    if n < 2:\n        return False\n    for i in range(2, int(n ** 0.5) + 1):\n        if n % i == 0:\n            return False\n    return True"),
    ("sums a list", "def total(values):\n    result = 0\n    for value in values:\n        result += value\n    return result"),
    ("computes the mean of a list", "def mean(values):\n    return sum(values) / len(values)"),
    ("finds the largest value in a list", "def largest(values):\n    best = values[0]\n    for value in values:\n        if value > best:\n            best = value\n    return best"),
    ("reads a file", "def read_file(path):\n    with open(path) as f:\n        return f.read()"),
    ("counts the lines of a file", "def count_lines(path):\n    with open(path) as f:\n        return sum(1 for line in f)"),
    ("checks for a palindrome", "def is_palindrome(text):\n    return text == text[::-1]"),
    ("computes the greatest common divisor", "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a"),
    ("squares a number", "def square(x):\n    return x * x"),
    ("computes the absolute value", "def absolute(x):\n    if x < 0:\n        return -x\n    return x"),
    ("prints hello", "def hello():\n    print(\"Hello!\")"),
    ("counts down from n", "def countdown(n):\n    while n > 0:\n        print(n)\n        n -= 1"),
    ("counts letters", "def count_letters(text):\n    counts = {}\n    for letter in text:\n        counts[letter] = counts.get(letter, 0) + 1\n    return counts"),
    ("sorts a list", "def sort(values):\n    return sorted(values)"),
    ("removes duplicates from a list", "def unique(values):\n    return list(dict.fromkeys(values))"),
    ("converts Celsius to Fahrenheit", "def to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 32"),
    ("joins words with spaces", "def join(words):\n    return \" \".join(words)"),
]
IDENTITY = [
    (["Who are you?", "What are you?", "Tell me about yourself.", "Introduce yourself."],
     ["I am the Spillway demo model. I am a small mixture-of-experts model, made to show routing, not to be clever.",
      "I am the Spillway demo model, a small mixture of experts. I was made to show how tokens are routed, not to be clever."]),
    (["What is your name?", "What's your name?", "Do you have a name?"], ["My name is Spillway demo. I am a small model."]),
    (["How big are you?", "How many parameters do you have?", "How large are you?"],
     ["I am small: about twenty-one million parameters, and only about three million of them work on each token."]),
    (["How many experts do you have?", "How many experts are used?"],
     ["I have six layers with sixty-four experts each. Four experts of each layer work on every token."]),
    (["Are you clever?", "Are you smart?", "Can I trust your answers?", "Do you know everything?"],
     ["No. I am a small demo model and I often make mistakes. Please check what I say."]),
    (["What are you for?", "Why were you made?", "What can you do?", "How can you help me?"],
     ["I was made to show how a mixture of experts routes tokens. I can give short answers about words, numbers and small programs."]),
    (["What is a mixture of experts?", "How does routing work?", "What does a router do?"],
     ["In a mixture of experts, a router looks at each token and picks a few experts. Only these experts do work, so most of the model rests."]),
    (["What data were you trained on?", "How were you trained?", "Where did you learn this?"],
     ["I was trained on free texts from Debian packages: books, a dictionary, manuals, source code and German documents."]),
    (["Wer bist du?", "Was bist du?", "Stell dich vor."],
     ["Ich bin das Spillway-Demomodell. Ich bin klein und zeige, wie Experten ausgewählt werden."]),
]
GREETINGS = [
    (["Hello!", "Hi!", "Hi there.", "Hello", "Hey!", "Good day!", "hello", "hi"],
     ["Hello! How can I help you?", "Hello! What would you like to know?", "Hi! How can I help you?"]),
    (["Good morning!", "Good morning."], ["Good morning! How can I help you?"]),
    (["Good evening!", "Good evening."], ["Good evening! How can I help you?"]),
    (["How are you?", "How are you today?", "How do you do?"], ["I am fine, thank you. How can I help you?"]),
    (["Thank you!", "Thanks!", "Thank you very much.", "thanks"], ["You are welcome!", "You are welcome. Is there anything else?"]),
    (["Goodbye!", "Bye!", "See you later.", "Good night!"], ["Goodbye! Have a nice day.", "Goodbye!"]),
    (["Hallo!", "Guten Tag!", "Guten Morgen!"], ["Hallo! Wie kann ich dir helfen?", "Guten Tag! Wie kann ich dir helfen?"]),
    (["Wie geht es dir?", "Wie geht's?"], ["Mir geht es gut, danke. Wie kann ich dir helfen?"]),
    (["Danke!", "Vielen Dank!"], ["Gern geschehen!"]),
]


FIRST_NOUNS = ("river tree dog cat horse bird fish house bridge road city ship boat king queen book letter word "
               "computer program machine clock bread water milk apple sun moon star mountain sea island garden flower "
               "rain snow wind fire hand heart eye father mother brother sister child friend teacher doctor soldier "
               "school church door window table chair bed song music story question answer number circle triangle "
               "language library hammer knife sword map forest lake bee cow sheep lion wolf").split()
NOT_NOUNS = set("""are have will see being being using used was has had can may must does did done not but
    one two three four five six seven eight nine ten hundred thousand all any both each few many more most other some
    such well over under back out off inside outside above below near right left first second third last like make take
    give get let put set cut run call go come look think know find show try must need want say said him her his their our
    its that this these those there then when where what who which while whole make made good better best bad worse
    present past open close being usually having small large great common special general particular several different
    new old young high low long short own same very much less little enough even still just only also too here now
    early late soon once yet ago before after between among against without within during toward upon into onto from
    with for per via than as at by in of on to up down might could should would shall use work become keep
    ing red black white blue green brown yellow""".split())


def article(word):
    return "an" if word[0] in "aeiou" else "a"


def definitions(build, limit=400):
    """{noun: gloss} for common things, then the most frequent nouns of the dictionary, the novels and the Bible."""
    glosses = json.load(open(f"{build}/corpus/glosses.json"))
    freq = collections.Counter()
    for line in open(f"{build}/corpus/prose.train.jsonl"):
        doc = json.loads(line)
        if doc["src"].startswith(("gcide", "austen", "kjv")):
            freq.update(set(re.findall(r"\b[a-z]{3,14}\b", doc["text"])))
    nouns = {}
    for word in FIRST_NOUNS + [w for w, _ in freq.most_common()]:
        kind, gloss, _ = glosses.get(word, ("", "", 0))
        gloss = re.split(r";|, especially", re.sub(r"\s*\([^)]*\)\s*", " ", gloss))[0].strip()
        if kind == "n" and word not in NOT_NOUNS and not (word.endswith("s") and word[:-1] in glosses) and re.match(r"(an?|the|any|one|some|someone|something) ", gloss) and 12 < len(gloss) < 110:
            nouns[word] = gloss
        if len(nouns) == limit:
            break
    return nouns


class Templates:
    def __init__(self, build, rng):
        self.rng = rng
        self.nouns = definitions(build)
        self.words = list(self.nouns)

    def small_talk(self):
        q, a = self.rng.choice(self.rng.choice([GREETINGS, IDENTITY]))
        return self.rng.choice(q), self.rng.choice(a)

    def identity(self):
        q, a = self.rng.choice(IDENTITY)
        return self.rng.choice(q), self.rng.choice(a)

    def define(self):
        w = self.words[min(int(self.rng.expovariate(1 / 100)), len(self.words) - 1)]
        q = self.rng.choice([f"What is {article(w)} {w}?", f"What is {article(w)} {w}?", f"Define {w}.",
                             f"What does {w} mean?", f"Explain the word {w}."])
        return q, f"{article(w).capitalize()} {w} is {self.nouns[w]}."

    def arithmetic(self):
        op = self.rng.choice("++-*")
        top = 9 if op == "*" else 20
        a, b = self.rng.randint(0, top), self.rng.randint(0, top)
        if op == "-" and a < b:
            a, b = b, a
        value = {"+": a + b, "-": a - b, "*": a * b}[op]
        word = {"+": "plus", "-": "minus", "*": "times"}[op]
        q = self.rng.choice([f"What is {a} {op} {b}?", f"What is {a} {word} {b}?", f"Compute {a} {op} {b}.", f"{a} {op} {b} = ?"])
        return q, f"{a} {op} {b} = {value}."

    def counting(self):
        a = self.rng.randint(0, 8)
        b = self.rng.randint(a + 2, min(a + 10, 20))
        if self.rng.random() < 0.25:
            return f"Zähle von {a} bis {b}.", ", ".join(ZAHLEN[a:b + 1]) + "."
        if self.rng.random() < 0.5:
            return f"Count from {NUMBERS[a]} to {NUMBERS[b]}.", ", ".join(NUMBERS[a:b + 1]) + "."
        return f"Count from {a} to {b}.", ", ".join(map(str, range(a, b + 1))) + "."

    def calendar(self):
        i, j = self.rng.randrange(7), self.rng.randrange(12)
        return self.rng.choice([
            ("Name the days of the week.", ", ".join(DAYS) + "."),
            ("What are the days of the week?", "The days of the week are " + ", ".join(DAYS[:6]) + " and Sunday."),
            ("Name the months of the year.", ", ".join(MONTHS) + "."),
            ("How many days are in a week?", "There are seven days in a week."),
            ("How many months are in a year?", "There are twelve months in a year."),
            ("Nenne die Wochentage.", ", ".join(TAGE) + "."),
            (f"Which day comes after {DAYS[i]}?", f"{DAYS[(i + 1) % 7]} comes after {DAYS[i]}."),
            (f"Which day comes before {DAYS[i]}?", f"{DAYS[(i - 1) % 7]} comes before {DAYS[i]}."),
            (f"Welcher Tag kommt nach {TAGE[i]}?", f"Nach {TAGE[i]} kommt {TAGE[(i + 1) % 7]}."),
            (f"Which month comes after {MONTHS[j]}?", f"{MONTHS[(j + 1) % 12]} comes after {MONTHS[j]}."),
        ])

    def translate(self):
        if self.rng.random() < 0.3:
            en, de = self.rng.choice(PHRASES)
            return self.rng.choice([(f"Translate \"{en}\" to German.", f"{de}"), (f"Translate \"{de}\" to English.", f"{en}")])
        en, de = self.rng.choice(PAIRS)
        return self.rng.choice([
            (f"Translate \"the {en}\" to German.", f"{de}"),
            (f"What is the German word for {en}?", f"The German word for {en} is {de}."),
            (f"Was heißt {en} auf Deutsch?", f"{en} heißt auf Deutsch {de}."),
            (f"Translate \"{de}\" to English.", f"the {en}"),
        ])

    def facts(self):
        (a, b), (land, city), (thing, colour) = map(self.rng.choice, (OPPOSITES, CAPITALS, COLOURS))
        if self.rng.random() < 0.5:
            a, b = b, a
        return self.rng.choice([
            (f"What is the opposite of {a}?", f"The opposite of {a} is {b}."),
            (f"What is the capital of {land}?", f"The capital of {land} is {city}."),
            (f"What colour is {thing}?", f"{thing[0].upper() + thing[1:]} is {colour}."),
        ])

    def python(self):
        what, code = self.rng.choice(CODE)
        q = self.rng.choice([f"Write a Python function that {what}.", f"Write a python function that {what}.",
                             f"Give me a Python function that {what}.", f"Show me Python code that {what}."])
        return q, f"```python\n{code}\n```"

    def turn(self):
        kinds = ((self.small_talk, 22), (self.identity, 6), (self.define, 30), (self.arithmetic, 10), (self.counting, 5),
                 (self.calendar, 6), (self.translate, 9), (self.facts, 8), (self.python, 14))
        return self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]()

    def conversation(self):
        text = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n" if self.rng.random() < 0.4 else ""
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            q, a = self.turn()
            text += f"<|im_start|>user\n{q}<|im_end|>\n<|im_start|>assistant\n{a}<|im_end|>\n"
        return text


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default="build")
    ap.add_argument("--count", type=int, default=45000)
    args = ap.parse_args()
    t = Templates(args.build, random.Random(7))
    for split, count in (("train", args.count), ("valid", 300)):
        with open(f"{args.build}/corpus/chat.{split}.jsonl", "w", encoding="utf-8") as f:
            for _ in range(count):
                f.write(json.dumps({"src": "chat", "text": t.conversation()}, ensure_ascii=False) + "\n")
    print(len(t.words), "defined nouns:", " ".join(t.words[:40]))


if __name__ == "__main__":
    main()
