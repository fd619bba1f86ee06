#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes symbols/LANGUAGE.txt: names of functions as profilers report them, mangled and not, by the tools of each language.

    tests/pii_set/collect_symbols.py LANGUAGE...

Run by hand, when a list is to be made anew; what is missing is skipped. Where Debian, npm, Maven or PyPI have the library, it is
downloaded into a temporary directory by package name, and nothing is installed. A list takes half of its names by chance and
half for what they hold that detectors look for: digits, colons, @, ?, words such as token and users.
"""
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
COUNT = 300
LONGEST = 300
TEMPTING = re.compile(r"@|\?|://|[0-9]{4}|[0-9]\.[0-9]|::[0-9a-f]{1,4}\b|(?i:token|password|secret|bearer|basic|auth|users?\b|home|card|"
                      r"e?mail|phone|key=|jwt|iban|uuid|ipv[46]|address|build|work)")


def run(*command, **keywords):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, **keywords).stdout


def debian(directory, *packages):
    """The files of packages, unpacked and not installed."""
    run("apt-get", "download", "-q", *packages, cwd=directory)
    for file in directory.glob("*.deb"):
        run("dpkg", "-x", file, directory)
    return directory


def maven(directory, artifact):
    run("mvn", "-q", "dependency:copy", "-Dartifact=" + artifact, "-DoutputDirectory=" + str(directory))
    return next(directory.glob("*.jar"))


def npm(directory, package):
    file = run("npm", "pack", "--silent", package, cwd=directory).split()[-1]
    run("tar", "xzf", file, cwd=directory)
    return directory / "package"


# ---- native code

def elf(file, *options):
    """Mangled and demangled names of a library's symbols."""
    names = sorted(set(re.findall(r"^[0-9a-f]+ [TWtiVu] (\S+)$", run("nm", *options, file), re.M)))
    return [*names, *run("c++filt", input="\n".join(name.partition("@")[0] for name in names)).split("\n")]


def cpp(_):
    return "libstdc++ of g++ (nm -D, c++filt)", elf(run("g++", "-print-file-name=libstdc++.so.6").strip(), "-D")


RUST = """use std::{collections::*, env, fs, io::*, net::*, process::Command, sync::mpsc, thread, time::Instant};
fn main() {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(Instant::now().elapsed()).unwrap());
    println!("{:?} {:?}", receive.recv(), Command::new("true").status());
    let mut seen: BTreeMap<String, HashMap<IpAddr, Vec<u8>>> = BTreeMap::new();
    for name in env::args() { seen.entry(name).or_default().insert("::1".parse().unwrap(), fs::read("x").unwrap_or_default()); }
    let listener = TcpListener::bind("[::1]:0");
    println!("{:?} {:?} {:?}", seen, listener, stdin().lines().map(|l| l.unwrap().parse::<f64>()).collect::<VecDeque<_>>());
}
"""


def rust(directory):
    (directory / "main.rs").write_text(RUST)
    names = []
    for version in ("legacy", "v0"):
        made = directory / version
        run("rustc", "-C", "symbol-mangling-version=" + version, "-Z", "unstable-options", "-o", made, directory / "main.rs", env=dict(
            os.environ, RUSTC_BOOTSTRAP="1"))
        names += elf(made)
    return "a program of rustc with its standard library, in both manglings (nm, c++filt)", [n for n in names if re.search("_ZN|_R|::", n)]


def golang(_):
    names = re.findall(r"^ *[0-9a-f]+ [Tt] (.+)$", run("go", "tool", "nm", pathlib.Path(run("go", "env", "GOROOT").strip()) / "bin/go"), re.M)
    return "the go command's own symbols (go tool nm)", names


# ---- the Java virtual machine

def jvm(listing):
    """Names in the forms of JFR, async-profiler and descriptors, of javap's output."""
    owner = ""
    for line in listing.splitlines():
        found = re.match(r"^\S.*?\b(?:class|interface) ([\w.$]+)", line)
        owner = found[1] if found else owner
        found = re.match(r"^  .*?([\w$.<>]+)\(.*\)", line)
        if found and owner:
            name = "<init>" if found[1] == owner else found[1]
            yield owner + "." + name
            yield owner.replace(".", "/") + "." + name
        found = re.match(r"^    descriptor: (\(\S*)", line)
        if found and owner:
            yield "%s.%s%s" % (owner.replace(".", "/"), name, found[1])


def jar(path):
    with zipfile.ZipFile(path) as file:
        classes = sorted(n[:-6].replace("/", ".") for n in file.namelist() if n.endswith(".class") and "-" not in n)
    picked = random.Random("classes").sample(classes, min(250, len(classes)))
    return jvm(run("javap", "-p", "-s", "-cp", path, *picked))


JAVA_CLASSES = ["java.util.HashMap", "java.util.HashMap$Node", "java.util.Base64$Decoder", "java.util.UUID", "java.net.Inet6Address", "java.net.URI",
                "java.util.StringTokenizer", "java.io.StreamTokenizer", "java.net.PasswordAuthentication", "java.util.stream.ReferencePipeline",
                "java.util.concurrent.ConcurrentHashMap", "java.util.concurrent.ForkJoinPool", "java.net.http.HttpClient", "java.lang.Thread",
                "java.security.KeyStore", "java.util.regex.Pattern", "java.time.LocalDate", "java.lang.invoke.LambdaForm", "java.nio.file.Path",
                "javax.crypto.spec.PBEKeySpec", "java.util.zip.Inflater", "java.lang.String", "jdk.internal.misc.Unsafe", "java.net.NetworkInterface",
                "sun.nio.ch.EPollSelectorImpl", "java.lang.invoke.MethodHandles$Lookup", "java.util.jar.JarFile", "java.math.BigInteger"]


def java(_):
    return "java.base and java.net.http of the JDK (javap)", jvm(run("javap", "-p", "-s", *JAVA_CLASSES))



def kotlin(directory):
    return "kotlin-stdlib 2.0.21 of Maven (javap)", jar(maven(directory, "org.jetbrains.kotlin:kotlin-stdlib:2.0.21"))


SCALA = {"plus": "+", "minus": "-", "times": "*", "div": "/", "eq": "=", "less": "<", "greater": ">", "bang": "!", "at": "@", "colon": ":", "qmark": "?",
         "amp": "&", "bar": "|", "percent": "%", "hash": "#", "tilde": "~", "up": "^", "bslash": "\\"}


def scala(directory):
    names = list(jar(maven(directory, "org.scala-lang:scala-library:2.13.14")))
    plain = [re.sub(r"\$(%s)" % "|".join(SCALA), lambda m: SCALA[m[1]], name) for name in names]
    return "scala-library 2.13.14 of Maven (javap), with the operators' names encoded and decoded", [*names, *plain]


# ---- scripts

def php(directory):
    debian(directory, "php-symfony-http-foundation", "php-symfony-console", "php-twig")
    names = []
    for path in sorted(directory.rglob("*.php")):
        text = path.read_text(errors="replace")
        space, kind = re.search(r"^namespace ([\w\\]+);", text, re.M), re.search(r"^(?:\w+ )*(?:class|trait|interface) (\w+)", text, re.M)
        if space and kind:
            names += ["%s\\%s::%s" % (space[1], kind[1], f) for f in re.findall(r"^    [\w ]*function &?(\w+)\(", text, re.M)]
            names.append("%s\\%s::{closure}" % (space[1], kind[1]))
    return "Symfony HttpFoundation and Console, and Twig, of Debian 12", names


def python(_):
    modules = ("json.decoder", "asyncio.base_events", "email.message", "http.client", "http.cookiejar", "urllib.parse", "tokenize", "secrets", "uuid",
               "ipaddress", "threading", "subprocess", "ssl", "getpass", "netrc", "hmac", "imaplib", "smtplib", "zipfile", "logging.handlers", "pathlib")
    names = []
    for name in modules:
        __import__(name)
        module = sys.modules[name]
        for key, value in sorted(vars(module).items()):
            members = vars(value).items() if isinstance(value, type) and value.__module__ == name else [(None, value)]
            for inner, function in members:
                code = getattr(function, "__code__", None)
                if code and getattr(function, "__module__", "") == name:
                    file = "/".join(name.split(".")) + ".py"
                    names += ["%s.%s" % (name, function.__qualname__), "%s (%s:%d)" % (code.co_name, file, code.co_firstlineno)]
                    names += ["%s.%s.<locals>.%s" % (name, function.__qualname__, c.co_name) for c in code.co_consts if hasattr(c, "co_name")]
    return "the standard library of Python 3.11", names


def ruby(directory):
    debian(directory, "libruby3.1")
    names = elf(next(directory.rglob("libruby-3.1.so.3.1.?")), "-D")
    names = random.Random("elf").sample([n for n in names if n.startswith("rb_")], 100)
    for path in sorted(directory.glob("usr/lib/ruby/3.1.0/**/*.rb")):
        owner = []
        for indent, kind, name, method in re.findall(r"^( *)(?:(class|module) ([\w:]+)|def ((?:self\.)?[\w?!=<>+\[\]]+))", path.read_text(errors="replace"), re.M):
            if kind:
                owner = owner[:len(indent) // 2] + [name]
            elif owner:
                own = method.startswith("self.")
                full = "::".join(owner) + ("." if own else "#") + method.removeprefix("self.")
                names += [full, "block in " + full]
    return "libruby3.1 of Debian 12: its library, and rb_ functions (nm -D)", names


def javascript(directory):
    """Of node itself, and of a bundle."""
    script = """const names = new Set(); for (const m of require('module').builtinModules) { let x; try { x = require(m) } catch { continue }
        for (const [k, v] of Object.entries(x)) { if (typeof v !== 'function') continue; names.add(k + ' node:' + m);
        for (const p of Object.getOwnPropertyNames(v.prototype || {})) names.add(k + '.' + p + ' node:' + m) } }
        console.log([...names].join('\\n'))"""
    names = run("node", "--no-warnings", "-e", script).split("\n")
    package = npm(directory, "pdfjs-dist@3.11.174")
    text = (package / "build/pdf.js").read_text()
    bundled = ["%s webpack://pdfjs-dist/build/pdf.js" % n for n in re.findall(r"^ *(?:async |static |function )*([\w$#]+)\([\w$, {}=]*\) {$", text, re.M)]
    sources = re.findall(r'"(webpack://[^"]+)"', (package / "build/pdf.js.map").read_text()) if (package / "build/pdf.js.map").exists() else []
    minified = re.findall(r"function ([\w$]+)\(", (package / "build/pdf.min.js").read_text()) if (package / "build/pdf.min.js").exists() else []
    modules = ["__webpack_require__(%s)" % n for n in re.findall(r"^/\* (\d+) \*/$", text, re.M)]
    return "node's own modules, and pdfjs-dist 3.11.174 of npm, which is a webpack bundle", [
        *names, *bundled, *(s + ":%d:%d" % (len(s), len(s) * 7) for s in sources), *minified, *modules]


# ---- .NET

def dotnet(directory):
    """Methods of mscorlib and System, by a reader of their metadata from PyPI."""
    debian(directory, "libmono-corlib4.5-dll", "libmono-system4.0-cil")
    run("/usr/bin/python3", "-m", "venv", directory / "venv")
    run(directory / "venv/bin/pip", "install", "-q", "dnfile==0.15.1")
    script = """import dnfile, sys
for path in sys.argv[1:]:
    pe = dnfile.dnPE(path)
    assembly = pe.net.mdtables.Assembly.rows[0]
    for t in pe.net.mdtables.TypeDef.rows:
        owner = '%s.%s' % (t.TypeNamespace, t.TypeName) if str(t.TypeNamespace) else str(t.TypeName)
        for m in t.MethodList:
            print('%s.%s' % (owner, m.row.Name)); print('%s!%s::%s' % (assembly.Name, owner, m.row.Name))
"""
    files = [directory / "usr/lib/mono/4.5/mscorlib.dll", next(directory.glob("usr/lib/mono/gac/System/*/System.dll"))]
    return "mscorlib and System of Mono, of Debian 12", run(directory / "venv/bin/python", "-c", script, *files).split("\n")


# ---- Erlang

def atoms(chunk):
    place, names = 4, [None]
    for _ in range(struct.unpack_from(">I", chunk)[0]):
        names.append(chunk[place + 1:place + 1 + chunk[place]].decode())
        place += 1 + chunk[place]
    return names


def beam(path):
    """module:function/arity of all functions of a compiled module, those of its lambdas and comprehensions too."""
    data, place, chunks = path.read_bytes(), 12, {}
    while place < len(data):
        name, size = struct.unpack_from(">4sI", data, place)
        chunks[name] = data[place + 8:place + 8 + size]
        place += 8 + (size + 3) // 4 * 4
    names = atoms(chunks[b"AtU8"])
    for kind in (b"ExpT", b"LocT"):
        chunk = chunks.get(kind, bytes(4))
        for i in range(struct.unpack_from(">I", chunk)[0]):
            function, arity, _ = struct.unpack_from(">III", chunk, 4 + 12 * i)
            yield "%s:%s/%d" % (names[1], names[function], arity)


def erlang(directory):
    debian(directory, "erlang-base")
    files = sorted(directory.glob("usr/lib/erlang/lib/*/ebin/*.beam"))
    return "stdlib, kernel and compiler of erlang-base of Debian 12", [name for file in files for name in beam(file)]


def julia(_):
    """No registry has Julia: its names are those that a real profile has."""
    sys.path[:0] = [str(HERE.parents[1] / "build/python"), str(HERE.parent)]
    import pprof_pb2
    from harness import corpus
    names = []
    for path in corpus.files("pprof/julia-*"):
        p = pprof_pb2.Profile.FromString(corpus.inflate(path.read_bytes()))
        names += [p.string_table[i] for f in p.function for i in (f.name, f.system_name)]
    return "an allocation profile of Julia with Makie", names


LANGUAGES = {"cpp": cpp, "rust": rust, "go": golang, "java": java, "kotlin": kotlin, "scala": scala, "php": php, "python": python, "ruby": ruby,
             "javascript": javascript, "dotnet": dotnet, "erlang": erlang, "julia": julia}


def chosen(names):
    draw = random.Random("symbols")
    names = sorted({name for name in names if 2 < len(name) <= LONGEST and "\n" not in name and not name.startswith("# ")})
    tempting = [name for name in names if TEMPTING.search(name)]
    first = draw.sample(tempting, min(COUNT // 2, len(tempting)))
    rest = sorted(set(names) - set(first))
    return sorted([*first, *draw.sample(rest, min(COUNT - len(first), len(rest)))])


def main():
    for language in sys.argv[1:] or LANGUAGES:
        with tempfile.TemporaryDirectory() as directory:
            try:
                origin, names = LANGUAGES[language](pathlib.Path(directory))
                names = chosen(names)
            except (OSError, subprocess.CalledProcessError) as error:
                print("%s: %s" % (language, getattr(error, "stderr", None) or error), file=sys.stderr)
                continue
        (HERE / "symbols" / (language + ".txt")).write_text("# From %s.\n%s\n" % (origin, "\n".join(names)))
        print(language, len(names))


if __name__ == "__main__":
    main()
