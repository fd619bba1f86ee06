/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_SPECIMENS_H
#define TESTS_PROCESSORS_SPECIMENS_H

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define JWT                                                                            \
	"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."            \
	"dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

/* Specimens from ranges reserved for documentation and tests. */
static const struct { const char *in, *out; } hits[] = {
	{ "alice@example.com", "****" },
	{ "to: Alice.B+x@mail.example.org, cc", "to: ****, cc" },
	{ "j\xc3\xb6rg@example.com", "****" },
	{ "192.0.2.17", "****" },
	{ "peer=198.51.100.2:443", "peer=****:443" },
	{ "2001:db8::1", "****" },
	{ "[2001:0db8:0000:0000:0000:ff00:0042:8329]:80", "[****]:80" },
	{ "fe80::1%eth0", "****%eth0" },
	{ "peer:2001:db8:85a3::8a2e:370:7334", "peer:****" },
	{ "ip:2001:0db8:85a3:0000:0000:8a2e:0370:7334", "ip:****" },
	{ "id:2001:0db8:85a3:0000:0000:8a2e:0370:7334", "id:****" },
	{ "ipv6:%5B2001:db8::1%5D:443", "ipv6:%5B****%5D:443" },
	{ "ipv6:%5B2001:0db8:85a3:0000:0000:8a2e:0370:7334%5D:443", "ipv6:%5B****%5D:443" },
	{ JWT, "****" },
	{ "token " JWT " end", "token **** end" },
	{ "AKIAIOSFODNN7EXAMPLE", "****" },
	{ "key_ASIAABCDEFGHIJKLMNOP", "key_****" },
	{ "AIzaSyA1234567890abcdefghijklmnopqrstuv", "****" },
	{ "ghp_0123456789abcdefghijABCDEFGHIJ012345", "****" },
	{ "xoxb-123456789012-abcdef", "****" },
	{ "key=sk-0123456789abcdefghijT3BlbkFJ0123456789ABCDEFGHIJ", "key=****" },
	{ "sk-svcacct-0123456789_abcdefghij-ABC", "****" },
	{ "AccountKey=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==;x", "AccountKey=****;x" },
	{ "a\n-----BEGIN RSA PRIVATE KEY-----\nabc", "a\n****" },
	{ "4111111111111111", "****" },
	{ "card 4111 1111 1111 1111 2024", "card **** 2024" },
	{ "5555-5555-5555-4444", "****" },
	{ "378282246310005", "****" },
	{ "id_6011111111111117.", "id_****." },
	{ "4000 4111 1111 1111 1111", "4000 ****" },
	{ "219-09-9999", "****" },
	{ "+1 202-555-0143", "****" },
	{ "(202) 555-0143", "****" },
	{ "+442079460958", "****" },
	{ "202.555.0143", "****" },
	{ "ABCPE1234F", "****" },
	{ "234123412346", "****" },
	{ "2341 2341 2346", "****" },
	{ "Authorization: Bearer abcdef123456", "Authorization: Bearer ****" },
	{ "bearer%20abcdefghijklmnopqrst", "bearer%20****" },
	{ "/home/alice/src/x.c", "/home/*/src/x.c" },
	{ "/Users/alice/go", "/Users/*/go" },
	{ "file:///home/alice/app.js:3:4", "file:///home/*/app.js:3:4" },
	{ "../../home/alice/x.c", "../../home/*/x.c" },
	{ "/proc/7/root/home/alice/bin", "/proc/7/root/home/*/bin" },
	{ "C:\\Users\\Alice Smith\\AppData", "C:\\Users\\*\\AppData" },
	{ "c:/users/alice", "c:/users/*" },
	{ "C:\\\\Users\\\\alice\\\\x", "C:\\\\Users\\\\*\\\\x" },
	{ "/mnt/c/Users/alice/x", "/mnt/c/Users/*/x" },
	{ "/home/alice:/home/bob", "/home/*:/home/*" },
	{ "/home//alice/x.c", "/home//*/x.c" },
	{ "/home//////alice/x.c", "/home//////*/x.c" },
	{ "/data1/home/alice/x.c", "/data1/home/*/x.c" },
	{ "cwd=/opt/home/alice", "cwd=/opt/home/*" },
	{ "file:///gpfs/home/alice/x", "file:///gpfs/home/*/x" },
	{ "/mnt/disk2/home/alice/x", "/mnt/disk2/home/*/x" },
	{ "/System/Volumes/Data/Users/alice/x", "/System/Volumes/Data/Users/*/x" },
	{ "/Volumes/Macintosh HD/Users/alice/x", "/Volumes/Macintosh HD/Users/*/x" },
	{ "https://example.com/a?q=x&r=y z", "https://example.com/a?**** z" },
	{ "GET /search?q=secret", "GET /search?****" },
};

static const char *const misses[] = {
	"std::vector<int>::push_back", "be::ad::f", "c10::ff", "::abc", "ab::cd", "a::b::c::d",
	"std::__1::basic_string", "12:34:56", "00:11:22:33:44:55", "x::fe80", "v8::internal",
	"github.com/cilium/ebpf@v0.20.0/map.go", "golang.org/x/sys@v0.0.0-20220722155257-8c9f86f7a55f",
	"pkg@v1.2.3-beta.rc", "node_modules/.pnpm/react@18.2.0-next.js", "user@1000.service",
	"@babel/core", "memcpy@@GLIBC_2.14", "memcpy@plt", "lib@1.2.3",
	"v1.8.5.6", "1.2.3", "1.2.3.4.5", "libfoo.so.1.8.5.6", "256.1.1.1", "1.2.3.4567",
	"_ZN4111111111111111E", "_ZNSt6vectorIiSaIiEE9push_backERKi", "_Z3fooABCPE1234Fv",
	"4111111111111112", "0.4111111111111111", "1234567890123456", "x4111111111111111",
	"000-12-3456", "666-12-3456", "987-65-4321", "219-00-9999", "2019-09-99991", "1219-09-9999",
	"555-0143", "2024-01-02", "operator+12345678", "c++11 20240102", "1.202.555.0143",
	"234123412347", "12341234123412", "ABCDE1234F5", "abcpe1234f", "ABCXE1234F",
	"BearerTokenAuthenticationFilter", "bearer authentication", "Bearer",
	"f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "0123456789abcdef0123456789abcdef01234567",
	"AKIA", "AKIAIOSFODNN7EXAMPL", "XAKIAIOSFODNN7EXAMPLE", "eyJub3RhIjoidG9rZW4ifQ.abc.def",
	"sk-0123456789abcdefghijT3BlbkFJ0123456789ABCDEFGHI", "task-0123456789abcdefghijT3BlbkFJ0123456789ABCDEFGHIJ",
	"sk-0123456789abcdefghijT3BlbkFJ0123456789ABCDEFGHIJK", "ns::fe80::f", "at:12:34:56", "x:be::ad", "f:fe80",
	"a%5Bbe::ad", "/app/home/page.tsx", "/usr/src/app/home/page.tsx", "https://example.com/app/home/page",
	"@/views/home/index.vue",
	"src/app/home/page.tsx", "/home/", "myapp/Users/list", "/homepage/alice", "go.home/x",
	"empty?", "Foo#name=", "foo?=", "?func@Class@@QEAAXXZ", "a ? b : c", "what?",
	"kernel.kallsyms", "[vdso]", "com.example.Foo$Bar.run", "github.com/a/b.(*T).M-fm", "",
	"hash_0123456789abcdef", "/home/*/x", "https://example.com/path", "1700000000000000000",
};

/* Files, and what they become. */
static const char *const paths[][2] = {
	{ "/builds/group/project/src/x.c", "/builds/*/src/x.c" },
	{ "/home/gitlab-runner/builds/tok/0/g/p/x.c", "/home/*/builds/*/g/p/x.c" },
	{ "/var/lib/jenkins/workspace/secret-job/x.c", "/var/lib/jenkins/workspace/*/x.c" },
	{ "/home/runner/" "work/repo/repo/x.go", "/home/*/" "work/*/x.go" },
	{ "/opt/actions/_work/repo/repo/x.go", "/opt/actions/_work/*/x.go" },
	{ "/__w/repo/repo/x.go", "/__w/*/x.go" },
	{ "D:\\a\\repo\\repo\\x.cs", "D:\\a\\*\\x.cs" },
	{ "/home/u/.cache/bazel/_bazel_u/0123456789abcdef0123456789abcdef/execroot/x.cc",
	  "/home/*/.cache/bazel/_bazel_*/execroot/x.cc" },
	{ "/tmp/go-build1234567/b001/x.go", "/tmp/go-build*/b001/x.go" },
	{ "src/builds/a/b/c.c", "src/builds/a/b/c.c" },
	{ "/usr/lib/go/src/runtime/proc.go", "/usr/lib/go/src/runtime/proc.go" },
};

/* The shortest text that each rule can match. */
static const char *const shortest[] = {
	"a@b.co", "1.1.1.1", "fe80::1", "fd00::", "-----BEGIN PRIVATE KEY", "xoxb-0123456789",
	"ya29.01234567890123456789", "npm_012345678901234567890123456789012345",
	"sk_live_01234567890123456789", "glpat-01234567890123456789",
	"AccountKey=01234567890123456789012345678901", "aB~1Q~0123456789012345678901234567890",
	"4222222222222", "4111111111111111", "219-09-9999", "+12025550", "202 555-0143", "234123412346",
	"ImFsZyIA.ab.c", "xJhbGci.a.b", "iYWxnI..", "ghp_012345678901234567890123456789012345",
	"sk-ant-01234567890123456789", "sk-012345678901234567890123456789012345678901234567",
	"/home//a", "/x/home/a", "%5bfe80::1", ":fd00::", "GOCSPX-0123456789012345678901234567", "/_work/a/b/", "/builds/a/b/",
	"/home/a/" "work/b/c/", "/buildkite-agent/builds/a/b/", "jenkins/workspace/a/", "/Users/a",
	"github_pat_012345678901234567890123456789012345678901234567890123456789",
	"SG.0123456789012345678901.0123456789012345678901234567890123456789012",
	"AIza01234567890123456789012345678901234", "/agent/workspace/a/", "/buildAgent/" "work/a/",
	"bearer 1234567x", "BEARER=1234567x", "/home/a", "\\users\\a", "c:/users/a", "?a=b", "://a?b",
	"/__w/a/b/", "/agent/" "work/a/", "/_bazel_a", "/go-build1234", "C:/a/b/c/", "c:\\a\\b\\c\\",
};

#endif
