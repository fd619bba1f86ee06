# SPDX-License-Identifier: Apache-2.0
"""Near misses: what looks like something personal and is none, for each kind. All of it must stay as it is, for it names code,
versions, builds, times or counts, and a frame that is changed is a frame that is merged with others."""
import base64
import json

from pii_set import fill
from pii_set.made_numbers import card_digits, digits, iban_text, luhn, verhoeff, verhoeff_sum

LIBRARIES = ("foo", "ssl", "protobuf", "grpc", "boost_thread", "jvm", "python3.11", "stdc++", "node", "torch_cpu")
WORDS = ("get", "Handler", "map", "Request", "node", "alloc", "value", "Run", "Context", "poll", "Users", "home", "token", "Bearer", "card", "email")


def library(draw):
    return draw.choice(LIBRARIES)


def word(draw):
    return draw.choice(WORDS)


VERSIONED = (
    ("mapping", "/usr/lib/x86_64-linux-gnu/lib%s-%s.so"), ("mapping", "/usr/lib/lib%s.so.%s"), ("file", "/root/.m2/%s-%s.jar"),
    ("function", "%s, Version=%s, Culture=neutral, PublicKeyToken={hex:16}"), ("file", "node_modules/%s/v%s/index.js"),
    ("mapping", "C:\\Program Files\\%s\\%s\\app.dll"), ("value", "%s v%s"), ("file", "/nix/store/{lower:32}-%s-%s/lib/x.so"),
    ("value", "%s/%s.1"), ("file", "/usr/src/%s_%s-1build2/x.c"))


def version_of_four(draw):
    """Of four parts, as addresses have: in names of libraries, packages, assemblies."""
    role, form = draw.choice(VERSIONED)
    return role, form % (library(draw), "%d.%d.%d.%d" % tuple(draw.randint(0, 60) for _ in range(4)))


def version_with_at(draw):
    v = "%d.%d.%d" % tuple(draw.randint(0, 30) for _ in range(3))
    return draw.choice(("file", "function")), draw.choice((
        "github.com/acme/%s@v%s/map.go", "node_modules/.pnpm/%s@%s/index.js", "golang.org/x/%s@v0.0.0-20220722155257-{hex:12}/x.go#%s",
        "pkg:npm/%s@%s", "/go/pkg/mod/%s@v%s+incompatible/run.go", "%s@%s-beta.rc", "jsr:@std/%s@%s")) % (library(draw), v)


def at_names(draw):
    """An @ that is no mail's: symbol versions, objects, units, scopes, pictures, offsets."""
    return draw.choice(("function", "file", "value")), draw.choice((
        "mem%s@@GLIBC_2.{digit:2}", "%s@plt", "com.acme.%s@{hex:8}", "java.lang.Object@{hex:7}.%s", "%s@0x{hex:8}.bar", "@babel/%s",
        "icons/%s@2x.png", "icons/%s@3x.webp", "user@1000.service/%s", "getty@tty{digit:1}.service", "%s@{digit:3}.scope", "Base.@%s.inner",
        "%s@CXXABI_1.3", "foo@@%s.1")).replace("%s", word(draw), 1)


def cxx_colons(draw):
    """Names that are made of hexadecimal letters and colons; fe80::ace would be an address."""
    part = lambda: draw.choice(("be", "ad", "c10", "fe8", "cafe", "face", "dead", "a", "b", "ab", "f", "dec", "add", "bad", "fade", "ace"))
    return "function", draw.choice(("c10::%s", "%s::%s::%s", "::%s::%s", "std::%s<%s::%s>", "%s::%s::~%s()", "at:%s:%s", "<%s as %s>::%s",
                                    "%s::%s::{{closure}}", "%s::operator=::%s")).replace("%s", "\0").replace("\0", part(), 1).replace(
                                        "\0", part(), 1).replace("\0", part())


def times(draw):
    return "value", draw.choice((
        "%02d:%02d:%02d" % (draw.randint(0, 23), draw.randint(0, 59), draw.randint(0, 59)), "2024-%02d-%02d" % (draw.randint(1, 12), draw.randint(1, 28)),
        "2024%02d%02dT%02d%02d%02dZ" % tuple(draw.randint(10, 12) for _ in range(5)), "17{digit:8}", "17{digit:11}", "17{digit:14}", "17{digit:17}",
        "16{digit:17}", "2024-05-17T10:22:31.{digit:9}Z", "uptime {digit:5}.{digit:2}", "1{digit:8}.{digit:6}"))


def hashes(draw):
    """Digests, build ids, ids of containers, and what compilers append."""
    return draw.choice(("function", "file", "mapping", "value")), draw.choice((
        "{hex:40}", "{hex:64}", "{hex:32}", "core::ops::function::FnOnce::call_once::h{hex:16}", "_ZN4core3ops8function6FnOnce9call_once17h{hex:16}E",
        "main.handler.llvm.{digit:19}", "_ZL6handlePv.llvm.{digit:20}", "run.llvm.{digit:18}", "app.{hex:20}.js", "chunk-{alnum:8}.js",
        "main.{hex:8}.chunk.js", "/var/lib/docker/overlay2/{hex:64}/diff/usr/bin/app", "k8s.io/pod-{hex:8}-{lower:5}", "build-id:{hex:40}",
        "/nix/store/{lower:32}-glibc-2.38/lib/libc.so.6", "sha256:{hex:64}", "0x{hex:16}", "foo.cold.{digit:3}", "bar.constprop.{digit:2}.isra.0",
        "libfoo-{hex:16}.so", "$LT$impl$GT$::f::h{hex:16}", "anon.{hex:32}.{digit:2}"))


def webpack(draw):
    return draw.choice(("file", "function")), draw.choice((
        "webpack:///./src/%s.js?{hex:4}", "webpack:///src/%s.vue?{hex:4}", "webpack-internal:///./node_modules/%s/index.js", "./src/%s.js?{hex:8}",
        "webpack://app/./src/%s.tsx?{hex:4}", "index.js?{lower:4}", "a ? %s : c", "%s?.call", "what is %s?", "?%s@Class@@QEAAXXZ",
        "??0%s@@QEAA@XZ", "/assets/%s.js?{hex:20}", "%s?=")).replace("%s", word(draw), 1)


def objects(draw):
    """Objects of Java with a method, whose hash may be all digits or all letters; optional chaining of JavaScript."""
    return "function", draw.choice((
        "com.acme.%s$Inner@{hex:8}.run", "com.acme.%s$Inner@{digit:7}.call", "java.lang.Object@{digit:7}.%s", "org.acme.Pool$Worker@{hex:7}.close",
        "java.lang.Thread@{digit:8}.start", "%s?.name=z", "a?.b?.name%s=1", "Object@1b6{hex:5}.notify")).replace("%s", word(draw).capitalize(), 1)


def switches(draw):
    """Queries that are no person's: versions and times of bundles, and switches."""
    return draw.choice(("file", "function", "value")), draw.choice((
        "https://example.com/deps/%s.js?v={hex:8}", "https://example.com/%s.css?ver=6.{digit:1}.{digit:1}", "/src/%s.vue?t=17{digit:11}", "GET /%s?debug=true",
        "https://example.com/%s?session=true", "/%s?raw=false&debug=True", "http://localhost:5173/src/%s.tsx?t=17{digit:11}", "/assets/%s.mjs?v={digit:2}",
        "GET /%s?verbose=FALSE HTTP/1.1")).replace("%s", word(draw), 1)


def type_names(draw):
    """Parameters with the name of a secret and their types."""
    return "function", draw.choice((
        "login(token: Swift.String)", "init(secret: CryptoKit.P256.Signing.PrivateKey)", "%s(token: Curve25519PrivateKey)", "verify(signature: [UInt8])",
        "fn %s(token: &str, secret: u64)", "open(api_key: Option<String>)", "%s(token: AuthorizationToken)", "parse(token: int32)", "set(privateKey: SecKey?)",
        "sign(secret: Data, signature: Data)", "%s(password: String, token: Token)")).replace("%s", word(draw), 1)


def routes(draw):
    """The home and the users of an application, not of a person."""
    return draw.choice(("function", "function", "value", "file")), draw.choice((
        "GET /home/dashboard", "GET /home/%s", "POST /users/%s", "App\\Users\\Profile::%s", "App\\Http\\Controllers\\Users\\%s::index",
        "src/Users/UserController.cs:%s", "MyApp.Users.Profile.%s", "/app/home/page.tsx", "@/views/home/%s.vue", "pages/home/%s.jsx",
        "/usr/src/app/home/%s.tsx", "Users::%s", "home.%s", "GET /api/users/{id}/%s", "/users/list?", "https://example.com/app/home/%s",
        "App\\Home\\%s", "Acme\\Home\\Users::%s", "GET /home")).replace("%s", word(draw), 1)


def code_words(draw):
    """Names of code about secrets."""
    return draw.choice(("function", "function", "file")), draw.choice((
        "Bearer::long_%s_name", "BearerTokenAuthenticationFilter.%s", "bearer_auth::%s", "http::header::Basic::%s", "BasicBlock::%s", "Basic%sProvider",
        "password_hash::%s", "PasswordEncoder.%s", "reset_password(%s)", "token::%s", "TokenStream::%s", "api_key.%s", "ApiKeyFilter.%s", "secrets.%s",
        "sk_buff::%s", "ghp_%s", "npm_%s_install", "hf_%s", "glsa_%s", "whsec_%s", "dapi_%s", "xoxb_%s", "pypi_%s", "S3Secret$%s", "AKIA%s",
        "get_max_tokens_%s", "VisaCard::%s", "Ssn%s", "email::%s", "jwt::decode::%s", "visual basic runtime %s", "basic %s usage", "bearer of %s")
    ).replace("%s", word(draw), 1)


def assignments(draw):
    """An = that gives away nothing."""
    return draw.choice(("value", "mapping")), draw.choice((
        "max_tokens={digit:4}", "tokenize=true", "primary_key={digit:3}", "sort_key=%s", "cache_key=%s", "PWD=/srv/app/current", "--token-file=/etc/app/%s",
        "--password-file=/run/secrets/%s", "password=", "token=", "password=****", "secret=<redacted>", "keystone=%s", "--tokens=8",
        "num_tokens={digit:2}", "passwordless=true", "secretName=%s-tls", "monkey=%s", "turkey=%s", "partition_key=%s", "token_count={digit:4}",
        "--workers=4 ‹--key-size={digit:4}›", "hotkey=ctrl+%s", "foreign_key=%s_id", "compression=%s")).replace("%s", word(draw), 1)


def almost_card(draw):
    """16 digits whose check digit is wrong, or that no issuer has, or that go on."""
    number, _ = card_digits(draw)
    wrong = number[:-1] + str((int(number[-1]) + draw.randint(1, 9)) % 10)
    return "value", draw.choice((wrong, wrong, "order " + wrong, "id=" + wrong, luhn("1" + digits(draw, 14)), luhn("9" + digits(draw, 14)),
                                 luhn("0" + digits(draw, 14)), "0." + number, "x" + number, number + "7a", "_ZN" + number + "E",
                                 luhn("4" + digits(draw, 9))))


def numbers(draw):
    """Integers as attributes: data, whatever their digits would pass for."""
    return "integer", draw.choice((verhoeff(draw.choice("23456789") + digits(draw, 10)), card_digits(draw)[0],
                                   draw.choice("23456789") + digits(draw, 11), luhn("4" + digits(draw, 14))))


def almost_ssn(draw):
    return "value", draw.choice(("000-{digit:2}-{digit:4}", "666-{digit:2}-{digit:4}", "9{digit:2}-{digit:2}-{digit:4}", "123-00-{digit:4}",
                                 "123-45-0000", "123-45-{digit:5}", "{digit:4}-45-6789", "123-45-6789-1", "rev-{digit:3}-{digit:2}",
                                 "{hex:3}-ab-{hex:4}", "x123-45-6789"))


def almost_phone(draw):
    return "value", draw.choice(("555-01{digit:2}", "operator+{digit:8}", "fn+0x{hex:4}", "1.202.555.01{digit:2}", "c++11 2024{digit:4}", "v1.2.3+2024{digit:4}",
                                 "+{digit:4}", "+0{digit:9}", "a+{digit:10}", "1{digit:2}-555-01{digit:2}", "memcpy+{digit:3}", "main+{digit:2}/{digit:4}",
                                 "12-{digit:3}-{digit:4}", "job 202-555", "+1{digit:16}"))


def almost_aadhaar(draw):
    number = verhoeff(draw.choice("23456789") + digits(draw, 10))
    wrong = next(n for n in iter(lambda: number[:-1] + draw.choice("0123456789"), None) if verhoeff_sum(n))
    low = verhoeff(draw.choice("01") + digits(draw, 10))
    return "value", draw.choice((wrong, wrong, low, number + "7", "a" + number, "0." + number, " ".join((wrong[:4], wrong[4:8], wrong[8:]))))


def almost_pan(draw):
    return draw.choice(("value", "function")), draw.choice(("ABC{upper:2}{digit:3}F", "abcpe{digit:4}f", "ABCDE{digit:4}F", "ABCXE{digit:4}F", "XABCPE{digit:4}F",
                                                            "ABCPE{digit:4}F5", "_Z3fooABCPE{digit:4}Fv", "ABCPE{digit:5}", "GL_RGB{digit:2}F", "AVX512F"))


def almost_iban(draw):
    number = iban_text(draw)
    wrong = number[:2] + "%02d" % ((int(number[2:4]) - 2 + draw.randint(1, 95)) % 97 + 2) + number[4:]
    return draw.choice(("value", "function")), draw.choice((wrong, wrong, "id=" + wrong, "x" + number, number + "Z9", number.lower()[:9], "AVX512VNNI", "GB18030",
                                                            "FR30_SIMD_LOOP", "SHA512256", "X86_64_V3"))


def almost_mac(draw):
    pairs = lambda n: ":".join("%02x" % draw.randint(0, 255) for _ in range(n))
    return "value", draw.choice((pairs(4), pairs(5), pairs(20), pairs(16), pairs(32), "0x" + pairs(3), pairs(7), "%s:zz" % pairs(5), "a:b:c:d:e:f::g",
                                 "SHA1 Fingerprint=" + pairs(20).upper(), "02-03-04", "x" + pairs(6) + "y"))


def almost_jwt(draw):
    blob = base64.urlsafe_b64encode(json.dumps({"version": 3, "sources": [fill("{lower:8}.ts", draw)]}).encode()).rstrip(b"=").decode()
    return draw.choice(("file", "value")), draw.choice((
        "data:application/json;base64," + blob, blob, blob + ".{alnum:8}.{alnum:8}", "eyJhbGci", "{url64:12}.{url64:12}.{url64:12}", "a.b.c",
        "com.acme.eyJ.Parser.parse"))


def almost_token(draw):
    """Prefixes of vendors on names, and tokens that are too short or part of something longer."""
    return draw.choice(("value", "function")), draw.choice((
        "task-{alnum:48}", "AKIA{base32:10}", "X{base32:30}AKIA{base32:30}", "AIza{alnum:10}", "gh" "p_{alnum:8}", "np" "m_config_registry", "sk_live_mode",
        "gl" "pat-x", "hf_hub_download", "lin_api_client", "hvs.{lower:4}", "dapi{hex:6}", "shpat_{hex:4}", "dop_v1_client", "S" "G.Runtime.Worker",
        "SK{hex:6}", "dckr_pat", "ya29.x", "sk-learn", "disk-{alnum:20}", "whsec_check", "{base64:120}", "xoxb-test"))


def ci_like(draw):
    """Projects of people, which are no layout of a build machine; the person's name goes."""
    return "file", draw.choice(("src/builds/%s/b/c.c", "/srv/build/%s/lib/x.c", "/usr/lib/go/src/%s/proc.go", "lib/workspace/%s/x.c", "/opt/{w}/%s/lib/x.go",
                                "C:\\a\\%s.cs", "/usr/workspace/%s/x.rs")).replace("%s", word(draw)).replace("{w}", "work")


def logins(draw):
    """Options of other programs, names with tags, and names of types and members with the name of a secret."""
    return draw.choice(("value", "mapping", "function")), draw.choice((
        "docker run -u 1000:1000 %s", "docker run --user nginx:nginx %s", "sort -u -k 2:3 %s", "install --user app:app %s", "id -u %s:x", "curl -u %s https://example.com",
        "curl --user-agent %s:x", "curl -x proxy:3128 https://example.com/%s", "gcr.io/acme/csi-secret:v{digit:1}", "registry.example.com/%s/oauth-token:{digit:1}.{digit:2}",
        "npm run rotate-token:%s", "vault-secret:latest", "Foo[password]::%s", "Map[Token].%s", "Map<password, %s>", "Vec<Secret>::%s", "<Token>::%s", "d[token]==%s",
        "Hash#[]=", "%s[auth] == x", "authorization::Token::%s", "authorization: failed for %s", "Authorization: required", "AuthorizationFilter.%s",
        "authorize(authorization: Authorization%s)", "SerializationToken::%s", "<passwords>%s</passwords>", "<user>%s</user>", "github.com/scott/tiger@%s", "%s/tiger@next", "postgres://db.example.com:5432/%s@x",
        "https://example.com:8080/@scope/%s", "mongodb://h1:27017,h2:27017/%s@x", "sqlplus / as %s", "sqlplus @scripts/%s.sql", "redis://${HOST}:${PORT}/%s@x")
    ).replace("%s", word(draw), 1)


def escapes(draw):
    """Behind escaped characters too, what only looks like a number of a person."""
    number, _ = card_digits(draw)
    wrong = number[:-1] + str((int(number[-1]) + draw.randint(1, 9)) % 10)
    return "value", draw.choice(("n%3D" + wrong, "\\n" + wrong, "%22" + wrong + "%22", "x3D" + number, "id%3D000-{digit:2}-{digit:4}", "C:\\n{digit:4}-{digit:2}",
                                 "%3D555-01{digit:2}", "%20{digit:2}:{digit:2}:{digit:2}", "n%3D1.2.{digit:1}", "\\t{digit:13}", "printf(\"%20d %s\\n\")",
                                 "u003d" + number))


def no_sql(draw):
    """What begins with a word of SQL, or holds quotation marks, and is no statement; and statements that hold no value."""
    return "function", draw.choice((
        "selectOne('%s')", "Select.%s(int)", "update_%s('x', 7)", "sql.(*Rows).Next", "insert<%s, 16>(char)", "it's '%s' 42", "std::merge<int, 4>",
        "SELECT a, b FROM t WHERE c = $1 AND d = ?", "SELECT t2.a FROM t2 JOIN u3 ON t2.id = u3.id", "INSERT INTO t VALUES (?, ?)", "BEGIN", "COMMIT",
        "callMethod('%s')", "Explain::%s::h{hex:16}", "deleted'%s", "createElement('%s')", "SELECT \"Name\" FROM \"t\" WHERE a = :a",
        "DELETE FROM t WHERE a IS NULL", "select!{'%s'}", "with_%s(1)")).replace("%s", word(draw), 1)


def no_command(draw):
    """Files with blanks and brackets in their names, and what the kernel calls mappings."""
    return "mapping", draw.choice((
        "/opt/Google %s/app", "/usr/lib/lib%s.so.6 (deleted)", "[anon: %s]", "[anon:dalvik-main space]", "/memfd:%s (deleted)", "//anon", "[heap]",
        "C:\\Program Files\\Acme %s\\x.dll", "/Applications/My %s.app/Contents/MacOS/x", "/opt/Acme - %s/x", "/dev/zero (deleted)", "/SYSV{digit:8} (deleted)",
        "/srv/My Files/%s 2.so", "anon_inode:[perf_event]", "/usr/share/%s (copy).so", "lib%s.so")
    ).replace("%s", word(draw), 1)


def no_generated(draw):
    return draw.choice(("file", "mapping", "function")), draw.choice((
        "/tmp/%s.so", "/srv/tmpfiles/%s/b", "/usr/lib/tmp.d/%s.conf", "/tmpfs/%s/x", "/scratchpad/%s/x.py", "/var/lib/%s/x", "/run/%s/x", "\\Template\\%s\\x.cs",
        "C:\\Temp\\%s.dll", "src/tmpl/%s/x.go", "/run/users/%s/x", "std::temp::%s", "/attempt/%s/x")).replace("%s", word(draw), 1)


def no_user(draw):
    """What programs have of users: their IDs, pools, services, and prose."""
    return "value", draw.choice((
        "user_id={digit:4}", "user-1", "client-pool-{digit:1}", "grpc-client-executor-{digit:1}", "user service", "users=12", "superuser=%s", "account-sync",
        "http-client", "user: null", "login page", "user logged in", "client connected", "user_count=7", "GET /user/login", "member function", "owner=42",
        "account: 17", "customer-service-{digit:2}", "userspace", "client.id={digit:3}", "role=user", "login-handler", "user-agent", "user/profile", "user=",
        "client-worker-{digit:2}", "account_id={hex:8}", "user session expired", "unknown user", "user groups changed",
        "k8s.io/client-go@v0.{digit:2}.4/rest/%s.go", "docker/client/container_%s.go", "do_user_addr_fault", "copy_user_generic_%s", "handshake_client_tls13.go")
    ).replace("%s", word(draw), 1)


RULES = (
    (version_of_four, 60), (version_with_at, 60), (at_names, 60), (cxx_colons, 50), (times, 60), (hashes, 110), (webpack, 70), (routes, 60), (code_words, 80),
    (assignments, 60), (almost_card, 70), (numbers, 100), (almost_ssn, 40), (almost_phone, 50), (almost_aadhaar, 40), (almost_pan, 30), (almost_iban, 40),
    (almost_mac, 40), (almost_jwt, 40), (almost_token, 60), (ci_like, 30),
    (no_sql, 60), (no_command, 60), (no_generated, 50), (no_user, 70), (objects, 50),
    (switches, 50), (type_names, 40), (logins, 60), (escapes, 40),
)
