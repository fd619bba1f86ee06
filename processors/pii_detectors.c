/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_detectors.h"
#include "processors/pii_find.h"
#include "processors/pii_text.h"

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

#define NO_ALNUM "^0-9A-Za-z"
#define HEX "0-9A-Fa-f"
#define UP_TO(digits) ((PII_RUN(digits) << 1) - 2)

/* A key: its literal, and the fewest bytes that follow. */
#define KEY(literal_, back_, kinds_, min_) \
	{ \
		PII_ACCESS_KEY, .literal = literal_, .back = back_, \
				.needs = { .length = sizeof literal_ - 1 + (min_) }, \
				.find = pii_find_key, .kinds = kinds_, .min = min_ \
	}

const struct pii_rule pii_rules[] = {
	{ PII_EMAIL, .first = "@", .find = pii_find_email,
	  .needs = { .classes = PII_HAS_AT | PII_HAS_DOT, .dots = 1, .length = 6 } },
	{ PII_IPV4, "^0-9A-Za-z.", "0-9", ".", UP_TO(3), .find = pii_find_ipv4,
	  .needs = { .digits = 4, .dots = 3, .length = 7 } },
	{ PII_IPV6, "^0-9A-Za-z_", HEX, ":A-Fa-f", UP_TO(4) | PII_RUN_LONG, .find = pii_find_ipv6,
	  .needs = { .colons = 2, .length = 6 } },
	/* "alg" in base64, as it may be shifted: in every header (RFC 7515). */
	{ PII_JWT, .literal = "ImFsZyI", .back = 1, .find = pii_find_jwt,
	  .needs = { .dots = 2, .length = 9 } },
	{ PII_JWT, .literal = "JhbGci", .back = 1, .find = pii_find_jwt,
	  .needs = { .dots = 2, .length = 8 } },
	{ PII_JWT, .literal = "iYWxnI", .back = 1, .find = pii_find_jwt,
	  .needs = { .dots = 2, .length = 8 } },
	{ PII_ACCESS_KEY, "^0-9A-Z", "A", .find = pii_find_key_aws,
	  .needs = { .classes = PII_HAS_UPPER, .length = 20 } },
	{ PII_ACCESS_KEY, .literal = "AIza", .back = 2, .find = pii_find_run,
	  .kinds = PII_BASE64URL, .min = 35, .needs = { .length = 39 } },
	{ PII_ACCESS_KEY, .literal = "gh", .back = 1, .find = pii_find_key_github,
	  .needs = { .classes = PII_HAS_UNDERSCORE, .length = 40 } },
	KEY("github_pat_", 6, PII_ALNUM | PII_UNDERSCORE, 60),
	KEY("npm_", 2, PII_ALNUM, 36),
	{ PII_ACCESS_KEY, .literal = "k_", .back = 1, .find = pii_find_key_stripe,
	  .needs = { .classes = PII_HAS_UNDERSCORE, .length = 28 } },
	{ PII_ACCESS_KEY, .literal = "xox", .back = 1, .find = pii_find_key_slack,
	  .needs = { .dashes = 1, .length = 15 } },
	KEY("glpat-", 2, PII_BASE64URL, 20),
	{ PII_ACCESS_KEY, .literal = "sk-", .back = 2, .find = pii_find_key_openai,
	  .needs = { .dashes = 2, .length = 27 } },
	{ PII_ACCESS_KEY, .literal = "sk-", .back = 2, .find = pii_find_key_openai_old,
	  .needs = { .dashes = 1, .length = 51 } },
	KEY("GOCSPX-", 2, PII_BASE64URL, 28),
	KEY("ya29.", 2, PII_BASE64URL, 20),
	{ PII_ACCESS_KEY, .literal = "SG.", .back = 2, .find = pii_find_key_sendgrid,
	  .needs = { .dots = 2, .length = 69 } },
	{ PII_ACCESS_KEY, .literal = "Key=", .back = 3, .find = pii_find_key_azure,
	  .needs = { .length = 42 } },
	{ PII_ACCESS_KEY, .literal = "Q~", .back = 1, .find = pii_find_secret_azure,
	  .needs = { .digits = 1, .length = 37 } },
	{ PII_ACCESS_KEY, .literal = "-----BEGIN ", .back = 5, .find = pii_find_pem,
	  .needs = { .dashes = 5, .length = 22 } },
	{ PII_CARD, NO_ALNUM, "2-8", " -", PII_RUN(4) | PII_RUN_LONG, .find = pii_find_card,
	  .needs = { .digits = 13, .length = 13 } },
	{ PII_SSN, NO_ALNUM "-", "0-9", "-", PII_RUN(3), .find = pii_find_ssn,
	  .needs = { .digits = 9, .dashes = 2, .length = 11 } },
	{ PII_PHONE, NO_ALNUM "+-", "+", .find = pii_find_phone,
	  .needs = { .classes = PII_HAS_PLUS, .digits = 8, .length = 9 } },
	{ PII_PHONE, NO_ALNUM "+.-", "2-9(", " .-", PII_RUN(3), .find = pii_find_phone_nanp,
	  .needs = { .digits = 10, .length = 12 } },
	{ PII_PAN, NO_ALNUM, "A-Z", .find = pii_find_pan,
	  .needs = { .classes = PII_HAS_UPPER, .digits = 4, .length = 10 } },
	{ PII_AADHAAR, NO_ALNUM "-", "2-9", " -", PII_RUN(4) | PII_RUN_LONG,
	  .find = pii_find_aadhaar, .needs = { .digits = 12, .length = 12 } },
	{ PII_UUID, NO_ALNUM, HEX, "A-Fa-f-", UP_TO(4) | PII_RUN_LONG, .find = pii_find_uuid,
	  .needs = { .dashes = 4, .length = 36 } },
	{ PII_BEARER, "bB", "eE", .back = 1, .find = pii_find_bearer,
	  .needs = { .classes = PII_HAS_B | PII_HAS_GAP, .length = 15 } },
	{ PII_HOME_DIRECTORY, .literal = "/home/", .back = 1, .find = pii_find_home,
	  .needs = { .length = 7 } },
	{ PII_HOME_DIRECTORY, .literal = "/Users/", .back = 1, .find = pii_find_home,
	  .needs = { .length = 8 } },
	{ PII_HOME_DIRECTORY, "\\/", "uUdD", .find = pii_find_home_windows,
	  .needs = { .classes = PII_HAS_BACKSLASH, .length = 8 } },
	{ PII_HOME_DIRECTORY, "\\/", "uUdD", .literal = ":/", .find = pii_find_home_windows,
	  .needs = { .classes = PII_HAS_COLON | PII_HAS_SLASH, .length = 10 } },
	{ PII_URL_QUERY, .first = "?", .find = pii_find_query,
	  .needs = { .classes = PII_HAS_QUESTION | PII_HAS_EQUALS, .length = 4 } },
	{ PII_URL_QUERY, .literal = "://", .back = 1, .find = pii_find_url,
	  .needs = { .classes = PII_HAS_QUESTION, .length = 6 } },
	{ PII_WORKSPACE, .literal = "/builds/", .back = 1, .find = pii_find_project_builds,
	  .needs = { .length = 12 } },
	{ PII_WORKSPACE, .literal = "/_work/", .back = 2, .find = pii_find_project,
	  .needs = { .length = 11 } },
	{ PII_WORKSPACE, .literal = "/__w/", .back = 2, .find = pii_find_project,
	  .needs = { .length = 9 } },
	{ PII_WORKSPACE, .literal = "/home/", .back = 1, .find = pii_find_project_home,
	  .needs = { .length = 17 } },
	{ PII_WORKSPACE, .literal = "/buildkite-agent/builds/", .back = 6, .find = pii_find_project,
	  .needs = { .length = 28 } },
	{ PII_WORKSPACE, .literal = "/workspace/", .back = 5, .find = pii_find_workspace,
	  .needs = { .length = 19 } },
	{ PII_WORKSPACE,
	  .literal = "/"
		     "work/",
	  .back = 5, .find = pii_find_agent_work, .needs = { .length = 14 } },
	{ PII_WORKSPACE, .literal = "/_bazel_", .back = 2, .find = pii_find_bazel,
	  .needs = { .length = 9 } },
	{ PII_WORKSPACE, .literal = "/go-build", .back = 4, .find = pii_find_go_build,
	  .needs = { .digits = 4, .length = 13 } },
	{ PII_WORKSPACE, ":", "\\/", .find = pii_find_project_windows,
	  .needs = { .classes = PII_HAS_COLON, .colons = 1, .length = 9 } },
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
