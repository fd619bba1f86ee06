# SPDX-License-Identifier: Apache-2.0
"""Where strings stand in profiles: %s is the marked part. Nothing in the surroundings is personal."""

WORDS = ("orders", "billing", "cart", "ledger", "mailer", "stock", "search", "render", "ingest", "report")

# What names an account, a device, a person: in labels, logs, queries, command lines, names of threads.
VALUES = (
    "%s", "%s", "user=%s", "[%s]", "(%s)", "<%s>", "'%s'", '"%s"', "label:%s", "a|%s|b", "%s;", "x, %s, y", "thread of %s",
    'msg="lookup of %s failed"', '{"account": "%s", "ok": true}', "account: %s, retry in 5s",
    "2024-05-17T10:22:31.123Z INFO ledger account %s updated", "E0517 10:22:31.123456 main.cc:42] no such account: %s",
    "<td>%s</td>", "id=%s\tstate=open", "line one\nto %s", "worker for %s", "job[%s]", "cart/%s", "ref %s.", "ref=%s&",
)
ROLES = (
    ("function", "SELECT id, name FROM account WHERE ref = '%s' LIMIT 1"),
    ("function", "UPDATE account SET ref='%s' WHERE id = ?"),
    ("function", "handle(%s)"),
    ("function", "lambda for %s"),
    ("file", "generated/<account %s>/query.py"),
    ("mapping", "/usr/bin/python3 /srv/app/send.py %s"),
    ("mapping", "/usr/bin/worker --subject %s --verbose"),
    ("mapping", "/usr/bin/worker --subject=%s"),
    ("value", "java -Dsubject=%s -jar app.jar"),
    ("value", "GET /v1/accounts/%s/orders HTTP/1.1"),
    ("value", "https://api.example.com/v1/accounts/%s/orders"),
    ("value", "https://api.example.com/v1/find?‹id=%s&page=2›"),
    ("value", "GET /find?‹page=2&id=%s›"),
)


def place(draw, marked):
    """(role, marked string) with surroundings."""
    if draw.random() < 0.6:
        return "value", draw.choice(VALUES) % marked
    role, text = draw.choice(ROLES)
    return role, text % marked


def must(text):
    return "«%s»" % text


# Forms in which an escaped character stands in front: of URLs, of string literals.
ESCAPED = ("n%%3D%s", "%%22%s%%22", "a%%3D1%%26b%%3D%s%%26c", "a\\n%s\\nb", "ref\\t%s", "ref\\u003d%s", "\\x22%s\\x22", "x%%20%s%%20y", "ref%%3a%s")


def escaped(draw, marked):
    return "value", draw.choice(ESCAPED) % marked
