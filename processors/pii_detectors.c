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

/* A user's directory: below the root, or below a mount, container root or export. */
#define HOME_ROOTS                                                                                   \
	"root|rootfs|host|hostfs|hostroot|merged|diff|upper|snapshot|data|export|var|usr|mnt|nfs|net" \
	"|private|srv|media|[a-zA-Z]"
#define NAME "[^\\/\\\\\\s:;,\"'<>|*?()\\[\\]{}]{1,256}"
#define SEGMENT "[^\\/\\\\\\s*]{1,256}"
#define WINDOWS_HOME                                                                                 \
	"(?i)(?:\\\\{1,4}|[a-z]:[\\\\\\/]{1,4})(?:users|documents and settings)[\\\\\\/]{1,4}"         \
	"(?|([^\\\\\\/:*?\"<>|\\r\\n]{1,64})[\\\\\\/]|([^\\\\\\/\\s:*?\"<>|]{1,256}))"

const struct pii_rule pii_rules[] = {
	{ PII_EMAIL,
	  "@(?:[A-Za-z0-9\\x80-\\xff][A-Za-z0-9\\x80-\\xff-]{0,62}\\.){1,8}[A-Za-z\\x80-\\xff]{2,24}",
	  { .classes = PII_HAS_AT | PII_HAS_DOT, .dots = 1, .length = 6 }, pii_check_email },
	{ PII_IPV4, "[0-9]{1,3}(?:\\.[0-9]{1,3}){3}",
	  { .digits = 4, .dots = 3, .length = 7 }, pii_check_ipv4 },
	{ PII_IPV6, "[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\\.[0-9]{1,3}){3})?",
	  { .colons = 2, .length = 6 }, pii_check_ipv6 },
	{ PII_JWT, "\\.[A-Za-z0-9_-]{2,}+\\.", { .dots = 2, .length = 16 }, pii_check_jwt },
	{ PII_ACCESS_KEY,
	  "(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}",
	  { .classes = PII_HAS_UPPER, .length = 20 }, pii_check_aws },
	{ PII_ACCESS_KEY, "AIza[A-Za-z0-9_-]{35,}", { .classes = PII_HAS_UPPER, .length = 39 }, NULL },
	{ PII_ACCESS_KEY,
	  "(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}|npm_[A-Za-z0-9]{36,}"
	  "|[rs]k_(?:live|test)_[A-Za-z0-9]{20,})",
	  { .classes = PII_HAS_UNDERSCORE, .length = 28 }, pii_check_prefix },
	{ PII_ACCESS_KEY,
	  "(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20,}"
	  "|sk-(?:ant|proj)-[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{28,})",
	  { .classes = PII_HAS_DASH, .dashes = 1, .length = 15 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "(?:ya29\\.[A-Za-z0-9_-]{20,}|SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43})",
	  { .dots = 1, .length = 25 }, pii_check_prefix },
	{ PII_ACCESS_KEY, "(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+\\/]{32,}={0,2})",
	  { .classes = PII_HAS_EQUALS | PII_HAS_UPPER, .length = 43 }, NULL },
	{ PII_ACCESS_KEY, "[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
	  { .classes = PII_HAS_TILDE | PII_HAS_UPPER, .digits = 1, .length = 37 }, NULL },
	{ PII_ACCESS_KEY, "-----BEGIN [A-Z ]{0,32}PRIVATE KEY",
	  { .classes = PII_HAS_UPPER | PII_HAS_SPACE, .dashes = 5, .length = 22 },
	  pii_check_to_end },
	{ PII_CARD,
	  "(?:3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}"
	  "|[2-8][0-9]{3}(?:[ -]?[0-9]{4}){2}[ -]?[0-9]{1,4}(?:[ -]?[0-9]{1,3})?)",
	  { .digits = 13, .length = 13 }, pii_check_card },
	{ PII_SSN, "[0-9]{3}-[0-9]{2}-[0-9]{4}", { .digits = 9, .dashes = 2, .length = 11 },
	  pii_check_ssn },
	{ PII_PHONE, "\\+[1-9][0-9]{0,2}(?:[ .()-]{0,2}[0-9]){6,14}",
	  { .classes = PII_HAS_PLUS, .digits = 8, .length = 9 }, pii_check_phone },
	{ PII_PHONE,
	  "(?:\\([2-9][0-9]{2}\\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. ][0-9]{4}",
	  { .digits = 10, .length = 12 }, pii_check_phone },
	{ PII_PAN, "[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]",
	  { .classes = PII_HAS_UPPER, .digits = 4, .length = 10 }, pii_check_alone },
	{ PII_AADHAAR, "[2-9][0-9]{3}(?:[0-9]{8}| [0-9]{4} [0-9]{4}|-[0-9]{4}-[0-9]{4})",
	  { .digits = 12, .length = 12 },
	  pii_check_aadhaar },
	{ PII_UUID, "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",
	  { .dashes = 4, .length = 36 }, pii_check_alone },
	{ PII_BEARER, "(?i)bearer(?:[ \\t:=+]|%20){1,8}([A-Za-z0-9._~+\\/=-]{8,})",
	  { .classes = PII_HAS_B | PII_HAS_GAP, .length = 15 }, pii_check_bearer },
	{ PII_HOME_DIRECTORY, "(?:^|[^A-Za-z0-9_-]|\\/(?:" HOME_ROOTS "))\\/(?:home|Users)\\/(" NAME ")",
	  { .classes = PII_HAS_SLASH, .length = 7 }, NULL },
	{ PII_HOME_DIRECTORY, WINDOWS_HOME, { .classes = PII_HAS_BACKSLASH, .length = 8 }, NULL },
	{ PII_HOME_DIRECTORY, WINDOWS_HOME,
	  { .classes = PII_HAS_COLON | PII_HAS_SLASH, .colons = 1, .length = 10 }, NULL },
	{ PII_URL_QUERY, "\\?([A-Za-z0-9_.\\[\\]%-]{1,64}=[^\\s\"'<>]+)",
	  { .classes = PII_HAS_QUESTION | PII_HAS_EQUALS, .length = 4 }, NULL },
	{ PII_URL_QUERY, ":\\/\\/[^\\s?\"'<>]++(*SKIP)\\?([^\\s\"'<>]+)",
	  { .classes = PII_HAS_QUESTION | PII_HAS_COLON | PII_HAS_SLASH, .colons = 1, .length = 6 },
	  NULL },
	{ PII_WORKSPACE,
	  "(?:(?:^|[^A-Za-z0-9_.-])\\/builds|\\/__w|\\/_work|\\/home\\/" SEGMENT
	  "\\/(?:work|build|builds)|\\/buildkite-agent\\/builds)\\/(" SEGMENT "\\/" SEGMENT ")\\/",
	  { .classes = PII_HAS_SLASH, .length = 8 }, NULL },
	{ PII_WORKSPACE,
	  "\\/(?:[A-Za-z0-9_-]{0,32}jenkins[A-Za-z0-9_-]{0,32}|agent|buildAgent)"
	  "\\/(?:workspace|work)\\/(" SEGMENT ")\\/",
	  { .classes = PII_HAS_SLASH, .length = 14 }, NULL },
	{ PII_WORKSPACE, "\\/_bazel_(" SEGMENT "(?:\\/[0-9a-f]{32})?)",
	  { .classes = PII_HAS_SLASH | PII_HAS_UNDERSCORE, .length = 9 }, NULL },
	{ PII_WORKSPACE, "\\/go-build([0-9]{4,20})",
	  { .classes = PII_HAS_SLASH | PII_HAS_DASH, .digits = 4, .length = 13 }, NULL },
	{ PII_WORKSPACE, "[A-Za-z]:[\\\\\\/]a[\\\\\\/](" SEGMENT "[\\\\\\/]" SEGMENT ")[\\\\\\/]",
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

struct pii_summary pii_summary(struct view text)
{
	struct pii_summary sum = { .length = text.len };
	for (size_t at = 0; at < text.len;) {
		size_t end = text.len - at > BLOCK ? at + BLOCK : text.len;
		uint64_t counts = 0;
		for (; at < end; at++) {
			sum.classes |= classes[text.at[at]];
			counts += lanes[text.at[at]];
		}
		sum.digits += counts & 0xffff;
		sum.dots += counts >> 16 & 0xffff;
		sum.colons += counts >> 32 & 0xffff;
		sum.dashes += counts >> 48;
	}
	return sum;
}
