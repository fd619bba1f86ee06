# SPDX-License-Identifier: Apache-2.0
"""Paths that name a person or a project: homes on Linux, macOS and Windows, and workspaces of build machines."""
from pii_set import fill
from pii_set.around import must
from pii_set.made_net import FIRST, LAST

USERS = [*(name for name in FIRST if name.isascii()), *(f[0] + last for f, last in zip(FIRST, LAST) if last.isascii() and "'" not in last),
         "alice.smith", "bob_jones", "carol-g", "dave99", "e.kowalski", "x1234567", "svc-deploy", "mary.ann.lee", "u-417"]
TAILS = ("/src/main.c", "/go/src/app/server.go", "/.cargo/registry/src/serde-1.0.200/src/de.rs", "/.local/lib/python3.11/site-packages/app/run.py",
         "/project/node_modules/react/index.js:12:5", "/dev/app/build/libapp.so", "/.m2/repository/org/app/1.0/app-1.0.jar", "/app/lib/run.rb",
         "/bin/worker", "/.nvm/versions/node/v20.1.0/bin/node", "/x.php", "")
WINDOWS_TAILS = ("\\AppData\\Local\\Temp\\a.dll", "\\source\\repos\\App\\Program.cs", "\\Desktop\\run.exe", "\\go\\src\\app\\main.go",
                 "\\.nuget\\packages\\app\\1.0.0\\lib\\app.dll", "\\scoop\\apps\\node\\index.js")
FULL_NAMES = ("Alice Smith", "Bob Jones", "Mary Ann Lee", "Jan Kowalski", "Ola Nordmann", "Carol O Hara")


def user(draw):
    return must(draw.choice(USERS))


def role(draw):
    return draw.choice(("file", "file", "file", "mapping", "function", "value"))


UNIX = ("/home/%s", "/Users/%s", "/home/%s", "/Users/%s", "file:///home/%s", "file:///Users/%s", "/data1/home/%s", "/export/home/%s", "/var/home/%s",
        "/mnt/disk2/home/%s", "/System/Volumes/Data/Users/%s", "/Volumes/Macintosh HD/Users/%s", "/proc/7/root/home/%s", "../../home/%s",
        "webpack:///home/%s", "/home//%s", "/usr/home/%s")
ODD = ("/home/./%s", "/home/../home/%s", "file://build.example.com/home/%s", "file://localhost/Users/%s", "ssh://git.example.com/home/%s",
       "sftp://host/home/%s", "/mnt/c/Users/%s", "/home/.//%s", "/home/./././%s", "vscode-remote://ssh/home/%s", "scp host:/home/%s")


def unix_home(draw):
    return role(draw), draw.choice(UNIX) % user(draw) + draw.choice(TAILS)


def odd_home(draw):
    return role(draw), draw.choice(ODD) % user(draw) + draw.choice(TAILS)


def encoded_home(draw):
    return role(draw), draw.choice(("%%2Fhome%%2F%s%%2Fsrc%%2Fmain.c", "file=%%2FUsers%%2F%s%%2Fapp%%2Fx.js", "open?‹path=%%2Fhome%%2F%s%%2Fx›",
                                    "%%2fhome%%2f%s%%2fsrc%%2fmain.go", "webpack%%3A%%2F%%2F%%2FUsers%%2F%s%%2Fx.js")) % user(draw)


def windows_home(draw):
    name = must(draw.choice(FULL_NAMES)) if draw.random() < 0.25 else user(draw)
    text = draw.choice(("C:\\Users\\%s", "D:\\Users\\%s", "c:\\users\\%s", "C:\\Documents and Settings\\%s", "\\\\fileserver\\Users\\%s",
                        "\\\\?\\C:\\Users\\%s", "\\\\fs01.example.com\\c$\\Users\\%s")) % name + draw.choice(WINDOWS_TAILS)
    if draw.random() < 0.2:
        text = text.replace("\\", "\\\\")
    elif draw.random() < 0.2 and not text.startswith("\\\\"):
        text = draw.choice(("", "file:///")) + text.replace("\\", "/")
    return role(draw), text


def wsl_home(draw):
    return role(draw), draw.choice(("\\\\wsl$\\Ubuntu\\home\\%s\\src\\main.c", "\\\\wsl.localhost\\Debian\\home\\%s\\x.py",
                                    "\\\\wsl$\\Ubuntu-22.04\\home\\%s\\go\\main.go")) % user(draw)


def spaced_home(draw):
    return role(draw), draw.choice(("/Users/%s/Library/app/x.py", "/Users/%s/dev/x.swift", "file:///Users/%s/app.js:3:4",
                                    "/Users/%s/Documents/run.rb")) % must(draw.choice(FULL_NAMES))


PAIRS = ("/usr/bin/app:%s", "gcc -I%s -c x.c", "%s:%s", "cp %s %s", "/usr/bin/node %s", "python3 %s --config %s", "-L%s -lapp", "PATH=/usr/bin:%s:/bin",
         "java -cp %s:%s Main", "%s (deleted)", "[%s]", "'%s'", "cwd=%s", "diff %s %s", "ld -o %s /usr/lib/crt1.o %s")


def homes_in_commands(draw):
    text = draw.choice(PAIRS)
    homes = tuple(draw.choice(("/home/%s", "/Users/%s")) % user(draw) + draw.choice(("/bin/app", "/x.jar", "/include", "/run.py"))
                  for _ in range(text.count("%s")))
    return draw.choice(("mapping", "value", "function")), text % homes


# ---- workspaces

def name(draw):
    return draw.choice(("shop", "billing-api", "secret_plan", "acme", "ledger", "portal2", "merger-2026"))


WORK = "work"
WORKSPACES = (
    "/builds/«{a}/{b}»/src/x.c", "/home/‹runner›/{w}/«{b}/{b}»/src/x.go", "/__w/«{b}/{b}»/x.go", "/opt/actions/_work/«{b}/{b}»/lib/x.js",
    "D:\\a\\«{b}\\{b}»\\src\\x.cs", "/var/lib/jenkins/workspace/«{b}»/src/x.c", "/home/‹jenkins›/agent/workspace/«{b}»/x.java",
    "/home/‹jenkins›/workspace/«{b}»/x.c", "/agent/workspace/«{b}»/x.c",
    "/opt/buildAgent/{w}/«{h}»/x.kt", "/tmp/go-build«{n}»/b001/x.go", "/root/.cache/bazel/_bazel_‹«{u}»/{m}›/execroot/x.cc",
)


def workspace(draw):
    text = draw.choice(WORKSPACES).format(a=name(draw), b=name(draw), w=WORK, h=fill("{hex:16}", draw), n=fill("{digit:9}", draw),
                                          u=draw.choice(USERS), m=fill("{hex:32}", draw))
    return draw.choice(("file", "file", "mapping", "function")), text


RULES = {"home_directory": [(unix_home, 110), (odd_home, 60), (encoded_home, 30), (windows_home, 80), (wsl_home, 20), (spaced_home, 25),
                            (homes_in_commands, 60)],
         "workspace": [(workspace, 120)]}
