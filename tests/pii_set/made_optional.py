# SPDX-License-Identifier: Apache-2.0
"""What is personal in some places only, and what a program leaves alone unless an operator enables its detector: directories of
generated code, values in SQL, the arguments of command lines, and the names of users in names of threads and in labels."""
from pii_set import fill
from pii_set.around import must
from pii_set.made_net import FIRST, LAST
from pii_set.made_paths import USERS

NAMES = [*USERS, "alice", "o.brien", "Maria", "j.kowalska", "bob-17x", "t_nguyen", "carol.o"]


def name(draw):
    return draw.choice(NAMES)


# ---- directories of generated code

GENERATED = (
    "/tmp/{x}/lib{y}.so", "/tmp/{x}/{y}.py", "/tmp/{x}/a/b/{y}.class", "/scratch/{x}/build/{y}.c", "/run/user/{n}/{y}/x.so",
    "/var/folders/‹{x}›/T/{y}.py", "\\Temp\\{x}\\{y}.dll", "D:\\Temp\\{x}\\sub\\{y}.cs", "file:///tmp/{x}/{y}.js:3:4", "exec /tmp/{x}/{y}",
    "(/tmp/{x}/{y}.rb:12)", "/var/tmp/{x}/{y}.so", "/private/tmp/{x}/{y}.dylib",
)


def generated_path(draw):
    form = draw.choice(GENERATED)
    middle = draw.choice(("jna-%s", "hsperfdata_%s", "pip-build-%s", "%s", "numba-%s", "cling-%s-{alnum:6}", "ansible-%s.{lower:6}"))
    directory = must(middle % name(draw))
    if "folders" in form:
        directory = must("{lower:2}/{alnum:30}")
    text = form.replace("{x}", directory).replace("{y}", draw.choice(("gen", "kernel", "stub", "model"))).replace("{n}", must("{digit:4}"))
    return draw.choice(("file", "mapping", "function")), fill(text, draw)


# ---- SQL

def literal(draw):
    quoted = lambda text: "'%s'" % must(text)
    return draw.choice((
        quoted(draw.choice(FIRST)), quoted("%s %s" % (draw.choice(FIRST).capitalize(), draw.choice(LAST).capitalize().replace("'", "''"))),
        must(fill("{digit:5}", draw)), must("%d.%02d" % (draw.randint(1, 999), draw.randint(0, 99))), quoted("Main Street %d" % draw.randint(1, 99)),
        quoted("2024-05-%02d" % draw.randint(1, 28)), quoted(fill("{hex:12}", draw))))


STATEMENTS = (
    "SELECT id FROM person WHERE name = %s", "SELECT * FROM account WHERE ref IN (%s, %s) ORDER BY id", "select a.b, c from a where a.x=%s and c<%s",
    "INSERT INTO person (name, born) VALUES (%s,%s)", "UPDATE account SET owner = %s WHERE id = %s", "DELETE FROM session WHERE account = %s",
    "WITH t AS (SELECT a FROM b WHERE c = %s) SELECT * FROM t", "CALL set_owner(%s, %s)", "EXEC find_person @name = %s",
    "MERGE INTO t USING u ON t.a = %s", "  SELECT a FROM b\nWHERE c = %s\n  AND d > %s", "SELECT\n  a\nFROM b WHERE c LIKE %s",
    "(SELECT a FROM b WHERE c = %s) UNION (SELECT d FROM e WHERE f = %s)", "/* shop */ SELECT a FROM b WHERE c = %s",
    "REPLACE INTO t VALUES (%s)", "EXPLAIN SELECT a FROM b WHERE c >= %s", "SELECT a FROM b WHERE c BETWEEN %s AND %s", "UPDATE t SET a = a + %s",
    "CREATE USER shop PASSWORD %s", "SELECT f(%s), g(x, %s) FROM t2",
)


def sql(draw):
    form = draw.choice(STATEMENTS)
    return "function", form % tuple(literal(draw) for _ in range(form.count("%s")))


# ---- command lines

PROGRAMS = ("/usr/bin/worker", "/opt/app/bin/server", "/usr/sbin/cron", "/srv/run", "worker", "/usr/local/bin/export-report", "C:\\app\\run.exe",
            "/opt/Acme Suite/bin/agent")
INTERPRETERS = ("/usr/bin/python3", "python3.11", "/usr/lib/jvm/bin/java", "node", "/usr/bin/perl", "/bin/bash", "ruby", "/usr/bin/php8.2",
                "C:\\Python\\python.exe")
OPTIONS = ("--user {n}", "--user={n}", "-u {n}", "-n{n} -v", "--name \"{n} Smith\" --dry-run", "/srv/data/{n}.csv", "-c /etc/{n}.conf", "-- {n}",
           "--to {n}@host", "owner={n} mode=full", "-Downer={n} -jar app.jar")
SCRIPTS = ("report.py {n}", "{n}.py", "app.js --user {n}", "Main {n}", "run.sh {n} 7", "-m report {n}", "-jar app.jar {n}")


def command_line(draw):
    program, argument = (draw.choice(PROGRAMS), draw.choice(OPTIONS)) if draw.random() < 0.6 else (draw.choice(INTERPRETERS), draw.choice(SCRIPTS))
    before, _, after = argument.partition("{n}")
    return "mapping", "%s ‹%s%s%s›" % (program, before, must(name(draw)), after)


# ---- names of users

PLACES = (
    "user=%s", "session of user %s", "worker-login-%s", "user: %s", "username=%s", "login=%s", "owner: %s, group: staff", "http-7 user=%s path=/",
    '{"user":"%s","ok":true}', '{"username": "%s"}', "account=%s;", "customer=%s plan=free", "user/%s/feed", "mailbox-user-%s", "(user=%s)",
    "sync for account %s", "member=%s", "client=%s", "user_name=%s", "login \"x\" user='%s'", "conn-12 login=%s db=shop", "User: %s", "USER=%s",
    "user#%s", "thread for owner %s",
)


def user_name(draw):
    return "value", draw.choice(PLACES) % must(name(draw))


RULES = {"generated_path": [(generated_path, 130)], "sql": [(sql, 150)], "command_line": [(command_line, 150)], "user_name": [(user_name, 150)]}
