# SPDX-License-Identifier: Apache-2.0
"""Numbers with a grammar or a check digit, each by its standard: cards (ISO/IEC 7812, Luhn), social security numbers (SSA),
phones (E.164; where a country has reserved numbers for fiction, those), IBAN (ISO 13616), Aadhaar (Verhoeff), PAN."""
import string

from pii_set.around import escaped, must, place


def digits(draw, count):
    return "".join(draw.choices(string.digits, k=count))


def luhn(body):
    """Appends the check digit."""
    total = 0
    for i, digit in enumerate(reversed(body)):
        double = int(digit) * (2 if i % 2 == 0 else 1)
        total += double - 9 if double > 9 else double
    return body + str(-total % 10)


# Prefix, digits, how they are grouped on the card.
CARDS = (
    ("4", 16, (4, 4, 4, 4)), ("4", 16, (4, 4, 4, 4)), ("4", 13, (13,)), ("4", 19, (4, 4, 4, 4, 3)), ("51", 16, (4, 4, 4, 4)),
    ("55", 16, (4, 4, 4, 4)), ("2221", 16, (4, 4, 4, 4)), ("2720", 16, (4, 4, 4, 4)), ("34", 15, (4, 6, 5)), ("37", 15, (4, 6, 5)),
    ("6011", 16, (4, 4, 4, 4)), ("65", 16, (4, 4, 4, 4)), ("3530", 16, (4, 4, 4, 4)), ("36", 14, (4, 6, 4)),
    ("62", 16, (4, 4, 4, 4)), ("5018", 16, (4, 4, 4, 4)),
)
GAPS = ("", "", "", " ", " ", "-", "-", ".", "_", "%20")


def groups(text, sizes):
    place = 0
    for size in sizes:
        yield text[place:place + size]
        place += size


def card_digits(draw):
    prefix, count, sizes = draw.choice(CARDS)
    return luhn(prefix + digits(draw, count - 1 - len(prefix))), sizes


def card(draw):
    number, sizes = card_digits(draw)
    return place(draw, must(draw.choice(GAPS).join(groups(number, sizes))))


def escaped_card(draw):
    number, sizes = card_digits(draw)
    return escaped(draw, must(draw.choice(GAPS).join(groups(number, sizes))))


def ssn_text(draw):
    area = draw.choice([n for n in range(1, 900) if n != 666])
    return "%03d-%02d-%04d" % (area, draw.randint(1, 99), draw.randint(1, 9999))


def ssn(draw):
    return place(draw, must(ssn_text(draw)))


def escaped_ssn(draw):
    return escaped(draw, must(ssn_text(draw)))


def nanp(draw):
    """Area, exchange 555, and the numbers 0100 to 0199, which are for fiction."""
    return draw.choice(("201", "202", "212", "303", "312", "404", "415", "512", "617", "702", "805", "919")), "555", \
        "01" + digits(draw, 2)


PHONES = (
    lambda d: "+1 %s-%s-%s" % nanp(d), lambda d: "+1-%s-%s-%s" % nanp(d), lambda d: "+1 (%s) %s-%s" % nanp(d),
    lambda d: "+1%s%s%s" % nanp(d), lambda d: "+1.%s.%s.%s" % nanp(d), lambda d: "(%s) %s-%s" % nanp(d),
    lambda d: "%s-%s-%s" % nanp(d), lambda d: "%s.%s.%s" % nanp(d), lambda d: "%s %s-%s" % nanp(d), lambda d: "(%s)%s-%s" % nanp(d),
    lambda d: "+44 7700 900" + digits(d, 3), lambda d: "+447700900" + digits(d, 3), lambda d: "+44 20 7946 0" + digits(d, 3),
    lambda d: "+33 1 99 00 %s %s" % (digits(d, 2), digits(d, 2)), lambda d: "+33 6 39 98 %s %s" % (digits(d, 2), digits(d, 2)),
    lambda d: "+49 30 23125 " + digits(d, 3), lambda d: "+4917139200" + digits(d, 2), lambda d: "+61 491 570 " + digits(d, 3),
    lambda d: "+353 20 91" + digits(d, 5), lambda d: "+46 70 174 06 " + digits(d, 2), lambda d: "+91 99999 9" + digits(d, 4),
    lambda d: "+7 495 " + "000-%s-%s" % (digits(d, 2), digits(d, 2)),
)


def phone(draw):
    return place(draw, must(draw.choice(PHONES)(draw)))


def escaped_phone(draw):
    return escaped(draw, must(draw.choice(PHONES)(draw)))


FIRST = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def dihedral(a, b):
    """The product in the group of the pentagon's symmetries."""
    if a < 5:
        return (a + b) % 5 if b < 5 else 5 + (a + b) % 5
    return 5 + (a - b) % 5 if b < 5 else (a - b) % 5


def verhoeff_sum(number):
    check = 0
    for place_of, digit in enumerate(reversed(number)):
        digit = int(digit)
        for _ in range(place_of % 8):
            digit = FIRST[digit]
        check = dihedral(check, digit)
    return check


def verhoeff(body):
    return next(body + d for d in string.digits if verhoeff_sum(body + d) == 0)


def aadhaar(draw):
    number = verhoeff(draw.choice("23456789") + digits(draw, 10))
    return place(draw, must(draw.choice(("", " ", " ", "-")).join(groups(number, (4, 4, 4)))))


def pan(draw):
    letters = "".join(draw.choices(string.ascii_uppercase, k=3))
    return place(draw, must("%s%s%s%s%s" % (letters, draw.choice("ABCFGHJLPT"), draw.choice(string.ascii_uppercase),
                                            digits(draw, 4), draw.choice(string.ascii_uppercase))))


# Country, and its account number: n digits, a capitals, c either (the registry of ISO 13616).
IBANS = (("DE", "n18"), ("GB", "a4n14"), ("FR", "n10c11n2"), ("NL", "a4n10"), ("ES", "n20"), ("IT", "a1n10c12"), ("CH", "n5c12"),
         ("AT", "n16"), ("BE", "n12"), ("PL", "n24"), ("NO", "n11"), ("SE", "n20"), ("DK", "n14"), ("PT", "n21"), ("IE", "a4n14"),
         ("FI", "n14"), ("SA", "n2c18"), ("AE", "n19"))
ACCOUNT = {"n": string.digits, "a": string.ascii_uppercase, "c": string.ascii_uppercase + string.digits}


def iban_sum(text):
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97


def iban_text(draw):
    country, form = draw.choice(IBANS)
    account, rest = "", form
    while rest:
        kind, rest = rest[0], rest[1:]
        count = rest[:2] if rest[:2].isdigit() else rest[:1]
        account, rest = account + "".join(draw.choices(ACCOUNT[kind], k=int(count))), rest[len(count):]
    return "%s%02d%s" % (country, 98 - iban_sum(country + "00" + account), account)


def iban(draw):
    number = iban_text(draw)
    if draw.random() < 0.4:
        number = " ".join(number[i:i + 4] for i in range(0, len(number), 4))
    return place(draw, must(number))


RULES = {"card": [(card, 200), (escaped_card, 50)], "ssn": [(ssn, 130), (escaped_ssn, 40)], "phone": [(phone, 190), (escaped_phone, 50)], "aadhaar": [(aadhaar, 130)], "pan": [(pan, 110)],
         "iban": [(iban, 140)]}
