/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_detectors.h"
#include "processors/pii_checks.h"

const char *const pii_detector_names[PII_PATTERNS] = {
	[PII_EMAIL] = "email",
	[PII_IPV4] = "ipv4",
	[PII_IPV6] = "ipv6",
	[PII_JWT] = "jwt",
	[PII_ACCESS_KEY] = "access_key",
	[PII_CARD] = "card",
	[PII_SSN] = "ssn",
	[PII_PHONE] = "phone",
	[PII_PAN] = "pan",
	[PII_AADHAAR] = "aadhaar",
	[PII_UUID] = "uuid",
	[PII_BEARER] = "bearer",
	[PII_HOME_DIRECTORY] = "home_directory",
	[PII_URL_QUERY] = "url_query",
	[PII_WORKSPACE] = "workspace",
	[PII_TOO_LONG] = "too_long",
};

/* A user's directory: below the root, or below a mount, container root or export; "/app/home" is a program's own. */
#define HOME_ROOTS                                                                                   \
	"root|rootfs|host|hostfs|hostroot|merged|diff|upper|snapshot|[dD]ata|export|var|usr|mnt|nfs|net" \
	"|private|srv|media|opt|gpfs|lustre|(?:data|disk|vol|nas|fs)[0-9]{1,3}|[a-zA-Z]" \
	"|(?:Volumes|mnt|media|net|nfs|gpfs|lustre)\\/[^\\/]{1,64}"
#define HOME_FRONT "(?:^|[^A-Za-z0-9_-]|\\/(?:" HOME_ROOTS "))"
#define NAME "[^\\/\\\\\\s:;,\"'<>|*?()\\[\\]{}]{1,256}"
#define SEGMENT "[^\\/\\\\\\s*]{1,256}"
/* The rest of a header, which is read once, and the next part. */
#define JWT_PARTS "[A-Za-z0-9_-]*+(*SKIP)\\.[A-Za-z0-9_-]*+\\."
#define PROJECT "(" SEGMENT "\\/" SEGMENT ")\\/" /* two levels: group and project, or a name twice */
#define WINDOWS_HOME                                                                                 \
	"(?i)(?:\\\\{1,4}|[a-z]:[\\\\\\/]{1,4})(?:users|documents and settings)[\\\\\\/]{1,4}"         \
	"(?|([^\\\\\\/:*?\"<>|\\r\\n]{1,64})[\\\\\\/]|([^\\\\\\/\\s:*?\"<>|]{1,256}))"

const struct pii_rule pii_rules[] = {
	{ PII_EMAIL,
	  "@(?:[A-Za-z0-9\\x80-\\xff][A-Za-z0-9\\x80-\\xff-]{0,62}\\.){1,8}[A-Za-z\\x80-\\xff]{2,24}",
	  NULL, { .classes = PII_HAS_AT | PII_HAS_DOT, .dots = 1, .length = 6 }, pii_check_email },
	{ PII_IPV4, "[0-9]{1,3}(?:\\.[0-9]{1,3}){3}", NULL,
	  { .digits = 4, .dots = 3, .length = 7 }, pii_check_ipv4 },
	{ PII_IPV6, "[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\\.[0-9]{1,3}){3})?", NULL,
	  { .colons = 2, .length = 6 }, pii_check_ipv6 },
	/* "alg" in base64, as it may be shifted: in every header (RFC 7515). */
	{ PII_JWT, "ImFsZyI" JWT_PARTS, "ImFsZyI", { .dots = 2, .length = 9 }, pii_check_jwt },
	{ PII_JWT, "JhbGci" JWT_PARTS, "JhbGci", { .dots = 2, .length = 8 }, pii_check_jwt },
	{ PII_JWT, "iYWxnI" JWT_PARTS, "iYWxnI", { .dots = 2, .length = 8 }, pii_check_jwt },
	{ PII_ACCESS_KEY,
	  "(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}", NULL,
	  { .classes = PII_HAS_UPPER, .length = 20 }, pii_check_aws },
	{ PII_ACCESS_KEY, "AIza[A-Za-z0-9_-]{35,}", "AIza", { .length = 39 }, NULL },
	{ PII_ACCESS_KEY, "gh[opsur]_[A-Za-z0-9]{36,}", "gh",
	  { .classes = PII_HAS_UNDERSCORE, .length = 40 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "github_pat_[A-Za-z0-9_]{60,}", "github_pat_", { .length = 71 },
	  pii_check_prefix },
	{ PII_ACCESS_KEY, "npm_[A-Za-z0-9]{36,}", "npm_", { .length = 40 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "[rs]k_(?:live|test)_[A-Za-z0-9]{20,}", "k_",
	  { .classes = PII_HAS_UNDERSCORE, .length = 28 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "xox[abeoprs]-[A-Za-z0-9-]{10,}", "xox", { .dashes = 1, .length = 15 },
	  pii_check_prefix },
	{ PII_ACCESS_KEY, "glpat-[A-Za-z0-9_-]{20,}", "glpat-", { .length = 26 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "sk-(?:ant|proj|svcacct|admin)-[A-Za-z0-9_-]{20,}", "sk-",
	  { .dashes = 2, .length = 27 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "sk-[A-Za-z0-9]{48}", "sk-", { .dashes = 1, .length = 51 },
	  pii_check_alone },
	{ PII_ACCESS_KEY, "GOCSPX-[A-Za-z0-9_-]{28,}", "GOCSPX-", { .length = 35 },
	  pii_check_prefix },
	{ PII_ACCESS_KEY, "ya29\\.[A-Za-z0-9_-]{20,}", "ya29.", { .length = 25 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}", "SG.",
	  { .dots = 2, .length = 69 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "(?:Account|Access)Key=([A-Za-z0-9+\\/]{32,}={0,2})", "Key=",
	  { .length = 42 }, NULL },
	{ PII_ACCESS_KEY, "[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}", "Q~",
	  { .digits = 1, .length = 37 }, NULL },
	{ PII_ACCESS_KEY, "-----BEGIN [A-Z ]{0,32}PRIVATE KEY", "PRIVATE KEY",
	  { .dashes = 5, .length = 22 }, pii_check_to_end },
	{ PII_CARD,
	  "(?:3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}"
	  "|[2-8][0-9]{3}(?:[ -]?[0-9]{4}){2}[ -]?[0-9]{1,4}(?:[ -]?[0-9]{1,3})?)",
	  NULL, { .digits = 13, .length = 13 }, pii_check_card },
	{ PII_SSN, "[0-9]{3}-[0-9]{2}-[0-9]{4}", NULL, { .digits = 9, .dashes = 2, .length = 11 },
	  pii_check_ssn },
	{ PII_PHONE, "\\+[1-9][0-9]{0,2}(?:[ .()-]{0,2}[0-9]){6,14}", NULL,
	  { .classes = PII_HAS_PLUS, .digits = 8, .length = 9 }, pii_check_phone },
	{ PII_PHONE,
	  "(?:\\([2-9][0-9]{2}\\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. ][0-9]{4}", NULL,
	  { .digits = 10, .length = 12 }, pii_check_phone },
	{ PII_PAN, "[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]", NULL,
	  { .classes = PII_HAS_UPPER, .digits = 4, .length = 10 }, pii_check_alone },
	{ PII_AADHAAR, "[2-9][0-9]{3}(?:[0-9]{8}| [0-9]{4} [0-9]{4}|-[0-9]{4}-[0-9]{4})", NULL,
	  { .digits = 12, .length = 12 }, pii_check_aadhaar },
	{ PII_UUID, "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}", NULL,
	  { .dashes = 4, .length = 36 }, pii_check_alone },
	{ PII_BEARER, "(?i)bearer(?:[ \\t:=+]|%20){1,8}([A-Za-z0-9._~+\\/=-]{8,})", NULL,
	  { .classes = PII_HAS_B | PII_HAS_GAP, .length = 15 }, pii_check_bearer },
	{ PII_HOME_DIRECTORY, HOME_FRONT "\\/home\\/++(" NAME ")", "/home/", { .length = 7 }, NULL },
	{ PII_HOME_DIRECTORY, HOME_FRONT "\\/Users\\/++(" NAME ")", "/Users/", { .length = 8 }, NULL },
	{ PII_HOME_DIRECTORY, WINDOWS_HOME, NULL, { .classes = PII_HAS_BACKSLASH, .length = 8 }, NULL },
	{ PII_HOME_DIRECTORY, WINDOWS_HOME, ":/",
	  { .classes = PII_HAS_COLON | PII_HAS_SLASH, .length = 10 }, NULL },
	{ PII_URL_QUERY, "\\?([A-Za-z0-9_.\\[\\]%-]{1,64}=[^\\s\"'<>]+)", NULL,
	  { .classes = PII_HAS_QUESTION | PII_HAS_EQUALS, .length = 4 }, NULL },
	{ PII_URL_QUERY, ":\\/\\/[^\\s?\"'<>]++(*SKIP)\\?([^\\s\"'<>]+)", "://",
	  { .classes = PII_HAS_QUESTION, .length = 6 }, NULL },
	{ PII_WORKSPACE, "(?:^|[^A-Za-z0-9_.-])\\/builds\\/" PROJECT, "/builds/", { .length = 12 },
	  NULL },
	{ PII_WORKSPACE, "\\/_work\\/" PROJECT, "/_work/", { .length = 11 }, NULL },
	{ PII_WORKSPACE, "\\/__w\\/" PROJECT, "/__w/", { .length = 9 }, NULL },
	{ PII_WORKSPACE, "\\/home\\/" SEGMENT "\\/(?:work|build|builds)\\/" PROJECT, "/home/",
	  { .length = 17 }, NULL },
	{ PII_WORKSPACE, "\\/buildkite-agent\\/builds\\/" PROJECT, "/buildkite-agent/builds/",
	  { .length = 28 }, NULL },
	{ PII_WORKSPACE, "(?:jenkins[A-Za-z0-9_-]{0,32}|\\/agent)\\/workspace\\/(" SEGMENT ")\\/",
	  "/workspace/", { .length = 19 }, NULL },
	{ PII_WORKSPACE, "\\/(?:buildAgent|agent)\\/work\\/(" SEGMENT ")\\/", "/work",
	  { .length = 14 }, NULL },
	{ PII_WORKSPACE, "\\/_bazel_(" SEGMENT "(?:\\/[0-9a-f]{32})?)", "/_bazel_", { .length = 9 },
	  NULL },
	{ PII_WORKSPACE, "\\/go-build([0-9]{4,20})", "/go-build", { .digits = 4, .length = 13 },
	  NULL },
	{ PII_WORKSPACE, "[A-Za-z]:[\\\\\\/]a[\\\\\\/](" SEGMENT "[\\\\\\/]" SEGMENT ")[\\\\\\/]", NULL,
	  { .classes = PII_HAS_COLON, .colons = 1, .length = 9 }, NULL },
};

const size_t pii_rule_count = sizeof pii_rules / sizeof *pii_rules;

/* One entry per byte: its classes, and in four lanes what is counted. */
#define LANE_DIGIT 1ull
#define LANE_DOT (1ull << 16)
#define LANE_COLON (1ull << 32)
#define LANE_DASH (1ull << 48)
#define BLOCK 32768 /* bytes after which no lane has overflowed */

static const uint32_t classes[256] = {
	['@'] = PII_HAS_AT,
	['.'] = PII_HAS_DOT,
	[':'] = PII_HAS_COLON | PII_HAS_GAP,
	['-'] = PII_HAS_DASH,
	['/'] = PII_HAS_SLASH,
	['\\'] = PII_HAS_BACKSLASH,
	['?'] = PII_HAS_QUESTION,
	['='] = PII_HAS_EQUALS | PII_HAS_GAP,
	['+'] = PII_HAS_PLUS | PII_HAS_GAP,
	['%'] = PII_HAS_GAP,
	['_'] = PII_HAS_UNDERSCORE,
	['~'] = PII_HAS_TILDE,
	[' '] = PII_HAS_SPACE | PII_HAS_GAP,
	['\t'] = PII_HAS_GAP,
	['0' ... '9'] = PII_HAS_DIGIT,
	['A'] = PII_HAS_UPPER,
	['B'] = PII_HAS_UPPER | PII_HAS_B,
	['C' ... 'Z'] = PII_HAS_UPPER,
	['b'] = PII_HAS_B,
};

static const uint64_t lanes[256] = {
	['0' ... '9'] = LANE_DIGIT,
	['.'] = LANE_DOT,
	[':'] = LANE_COLON,
	['-'] = LANE_DASH,
};

static inline uint64_t pair(uint8_t a, uint8_t b)
{
	return 1ull << ((a * 7u + b) & 63);
}

static void fold(struct pii_summary *sum, uint64_t counts)
{
	sum->digits += counts & 0xffff;
	sum->dots += counts >> 16 & 0xffff;
	sum->colons += counts >> 32 & 0xffff;
	sum->dashes += counts >> 48;
}

struct pii_summary pii_summary(struct view text)
{
	struct pii_summary sum = { .length = text.len };
	if (!text.len)
		return sum;
	uint64_t counts = lanes[text.at[0]];
	sum.classes = classes[text.at[0]];
	for (size_t i = 1; i < text.len; i++) {
		uint8_t byte = text.at[i];
		sum.classes |= classes[byte];
		sum.pairs |= pair(text.at[i - 1], byte);
		counts += lanes[byte];
		if (i % BLOCK == 0) {
			fold(&sum, counts);
			counts = 0;
		}
	}
	fold(&sum, counts);
	return sum;
}
