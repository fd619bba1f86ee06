# SPDX-License-Identifier: Apache-2.0
"""Random words that may not leave, words that must, and the search for them in whatever forms bytes take."""
import base64
import collections
import gzip
import json
import os
import random
import re
import string
import struct
import subprocess
import tempfile
import zlib


SHORT = "q"  # short denied words begin with it
LETTERS = string.ascii_lowercase.replace(SHORT, "")


class Canaries:
    """Denied and permitted words, each with what it stood for. The same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.denied, self.permitted, self.keys, self.numbers = {}, {}, set(), {}
        self.ids = False  # are links and profile ids permitted?
        self.refusing = False  # is all that is made now to be refused, so that nothing of it may arrive?

    def word(self, length=16):
        return "".join(self.random.choices(LETTERS, k=length))

    def deny(self, kind, length=16):
        """A word that nothing may show. Thousands of them have eight letters, and would stand by chance within a permitted
        word in one of some hundred runs; so a short one begins with a letter that no other word has."""
        word = self.word(length)
        return self.deny_text(kind, word if length >= 16 else SHORT + word[1:])

    def deny_key(self, kind):
        """The same; but `explain` may show it."""
        word = self.deny(kind)
        self.keys.add(word)
        return word

    def deny_text(self, kind, text):
        self.denied[text] = kind
        return text

    def deny_number(self, kind):
        """One for each kind: every one is searched for in three forms."""
        if kind not in self.numbers:
            self.numbers[kind] = self.random.randrange(10 ** 17, 10 ** 18)
            self.deny_text(kind, str(self.numbers[kind]))
        return self.numbers[kind]

    def deny_double(self, kind):
        if kind not in self.numbers:
            self.numbers[kind] = self.random.uniform(1e300, 9e300)
            self.deny_text(kind, repr(self.numbers[kind])[:14])
        return self.numbers[kind]

    def permit(self, kind, length=16):
        """A word that must arrive."""
        if self.refusing:
            return self.deny("refused: " + kind, length)
        word = self.word(length)
        self.permitted[word] = kind
        return word

    def found(self, data, but_keys=False):
        """{kind: how often} of what is in the data and may not be; but_keys: keys may."""
        words = set(self.denied) - (self.keys if but_keys else set())
        found = collections.Counter()
        for word, count in occurrences(words, data).items():
            found[self.denied[word]] += count
        for kind, number in self.numbers.items():
            needles = ([struct.pack("<d", number)] if isinstance(number, float) else
                       [varint(number), number.to_bytes(8, "little")])
            found.update({kind + " in binary": data.count(n) for n in needles if n in data})
        return found

    def missing(self, data, kinds=""):
        """The kinds of permitted words that are not there, of those that begin so."""
        there = occurrences(self.permitted, data)
        return sorted({kind for word, kind in self.permitted.items() if kind.startswith(kinds) and word not in there})


def views(data):
    """The data, and what its hexadecimal and base64 runs mean."""
    yield data
    for run in re.findall(rb"[0-9a-fA-F]{16,}", data):
        yield bytes.fromhex(run[:len(run) // 2 * 2].decode())
        yield bytes.fromhex(run[1:][:(len(run) - 1) // 2 * 2].decode())
    for run in re.findall(rb"[A-Za-z0-9+/]{20,}", data):
        for start in range(4):
            yield base64.b64decode(run[start:][:(len(run) - start) // 4 * 4])


def matches(words, text):
    """[(word, offset)] in the text, in capitals or not; grep knows how to search for thousands."""
    names = {word.lower(): word for word in words}
    with tempfile.TemporaryDirectory() as directory:
        patterns, file = os.path.join(directory, "patterns"), os.path.join(directory, "text")
        with open(patterns, "w") as f:
            f.write("\n".join(words))
        with open(file, "wb") as f:
            f.write(text)
        done = subprocess.run(["grep", "-aiobF", "-f", patterns, file], capture_output=True,
                              env=dict(os.environ, LC_ALL="C"))
    assert done.returncode < 2, done.stderr
    lines = (line.split(":", 1) for line in done.stdout.decode().splitlines())
    return [(names[word.lower()], int(offset)) for offset, word in lines]


def occurrences(words, data):
    """Counter of the words in all views of the data."""
    return collections.Counter(word for word, _ in matches(words, b"\n".join(views(data))))


def varint(number):
    number %= 1 << 64
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def unpacked(data):
    """The data and, where it is compressed, what is in it."""
    yield data
    if data[:2] == b"\x1f\x8b":
        try:
            yield from unpacked(gzip.decompress(data))
        except (OSError, EOFError, zlib.error):
            pass
    if data[:4] == b"\x28\xb5\x2f\xfd":
        yield subprocess.run(["zstd", "-dc"], input=data, capture_output=True).stdout


# ---- one valid specimen of each detector (reference: the standards of each)

def _digits(rng, count, first="123456789"):
    return rng.choice(first) + "".join(rng.choices(string.digits, k=count - 1))


def _luhn(digits):
    """Appends the check digit."""
    total = sum(sum(divmod(2 * int(d), 10)) if i % 2 == 0 else int(d) for i, d in enumerate(reversed(digits)))
    return digits + str(-total % 10)


_D5 = [[(i + j) % 5 if i < 5 and j < 5 else (i + j % 5) % 5 + 5 if i < 5 else
        (i - j) % 5 + 5 if j < 5 else (i - j) % 5 for j in range(10)] for i in range(10)]
_FIRST = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _verhoeff(digits):
    """Appends the check digit: the one with which the whole number gives 0."""
    def permuted(place, digit):
        for _ in range(place % 8):
            digit = _FIRST[digit]
        return digit

    def value(number):
        c = 0
        for place, digit in enumerate(reversed(number)):
            c = _D5[c][permuted(place, int(digit))]
        return c
    return next(digits + d for d in string.digits if value(digits + d) == 0)


def _iban(country, account):
    """Puts the check digits between."""
    number = int("".join(str(int(c, 36)) for c in account + country + "00"))
    return "%s%02d%s" % (country, 98 - number % 97, account)


def _base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _jwt(rng, word):
    head, body = (_base64url(json.dumps(x).encode()) for x in ({"alg": "HS256", "typ": "JWT"}, {"sub": word}))
    signature = "".join(rng.choices(string.ascii_letters + string.digits, k=43))
    return "%s.%s.%s" % (head, body, signature), signature


def _grouped(digits):
    return " ".join(digits[i:i + 4] for i in range(0, len(digits), 4))


def specimens(rng, word):
    """detector -> (text, the part that must not be seen)"""
    whole = {
        "ipv4": ".".join(str(rng.randint(100, 223)) for _ in range(4)),
        "ipv6": "2001:" + ":".join("%x" % rng.randint(0x1000, 0xffff) for _ in range(7)),
        "access_key": "AKIA" + "".join(rng.choices(string.ascii_uppercase + "234567", k=16)),
        "card": _luhn("4" + _digits(rng, 14)),
        "ssn": "%d-%d-%d" % (rng.randint(100, 600), rng.randint(10, 99), rng.randint(1000, 9999)),
        "phone": "+49" + _digits(rng, 10),
        "pan": "".join(rng.choices(string.ascii_uppercase, k=3)) + "P" + rng.choice(string.ascii_uppercase)
               + _digits(rng, 4) + rng.choice(string.ascii_uppercase),
        "aadhaar": _grouped(_verhoeff(_digits(rng, 11, "23456789"))),
    }
    found = {name: (text, text) for name, text in whole.items()}
    found["jwt"] = _jwt(rng, word())
    secret = word()
    found["email"] = secret + "@mail.example.com", secret
    secret = word() + word()
    found["bearer"] = "Bearer " + secret, secret
    secret = word()
    found["home_directory"] = "/home/%s/src/main.go" % secret, secret
    secret = word()
    found["url_query"] = "https://shop.example.com/pay?session=" + secret, secret
    mac = ":".join("%02x" % rng.randint(16, 254) for _ in range(6))
    found["mac"] = mac, mac
    iban = _iban("GB", "".join(rng.choices(string.ascii_uppercase, k=4)) + _digits(rng, 14))
    found["iban"] = iban, iban
    secret = base64.b64encode(("%s:%s" % (word(), word())).encode()).decode()
    found["basic"] = "Basic " + secret, secret
    secret = word()
    found["credential"] = "run --password " + secret, secret
    secret = word()
    found["url_credentials"] = "redis://cart:%s@cache:6379/0" % secret, secret
    secret = word()
    found["workspace"] = "/builds/shop/%s/src/main.c" % secret, secret
    return found


# Where a detector searches, if not everywhere and no operator can say so.
ROLES = {"workspace": {"function", "file", "mapping"}}


def optional_specimens(rng, word):
    """The same for what an operator has to enable. WORD stands for a word that must arrive."""
    uuid = "%08x-%04x-4%03x-a%03x-%012x" % tuple(rng.getrandbits(bits) for bits in (32, 16, 12, 12, 48))
    found = {"uuid": (uuid, uuid)}
    secret = word()
    found["generated_path"] = "/tmp/jna-%s/jna12.so" % secret, secret
    secret = word()
    found["sql"] = "SELECT a FROM WORD WHERE b = '%s'" % secret, secret
    secret = word()
    found["command_line"] = "WORD --owner %s -v" % secret, secret
    secret = word()
    found["user_name"] = "session of user " + secret, secret
    return found
