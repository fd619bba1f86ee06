/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_detectors.h"
#include "processors/pii_find.h"
#include "processors/pii_text.h"
#include "profile/sites.h"

/* The sets of the anchors, and what the rows are made of. */
#define NO_ALNUM "^0-9A-Za-z"
/* What is searched for behind an escaped character, whose first two bytes are the anchor: how it
 * begins, unless a digit of the character stands there, and a byte of it. */
#define ESCAPED(find_, begins, kinds_, min_) \
	"%\\", "0-9A-Fa-fnrtux", begins "0-9A-Fa-f", .back = 1, .next = begins "A-Fa-f.-", \
						     .find = pii_find_escaped, .escaped = find_, \
						     .kinds = kinds_, .min = min_, .effort = 80
#define HEX "0-9A-Fa-f"
/* The last letter of the words that make a value secret, and the last but one. */
#define SECRET_LAST "deghlnstyDEGHLNSTY"
#define SECRET_NEAR "aeilrstwAEILRSTW"
#define UP_TO(digits) ((PII_RUN(digits) << 1) - 2)
#define ROLE(name) (1u << ROLE_##name)

#define LITERAL(text) .literal = text, .literal_len = sizeof text - 1

/* A key: its literal, and the fewest bytes that follow. */
#define KEY(literal_, back_, kinds_, min_) \
	{ \
		LITERAL(literal_), \
			.back = back_, .needs = { .length = sizeof literal_ - 1 + (min_) }, \
			.find = pii_find_key, .kinds = kinds_, .min = min_, .effort = 185 \
	}

/* clang-format off */
#define EXAMPLES(...) (const struct pii_example[]){ __VA_ARGS__, { 0 } }
#define OTHERS(...) (const char *const[]){ __VA_ARGS__, NULL }
#define RULES(...) (const struct pii_rule[]){ __VA_ARGS__ }
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PII_DETECTOR(detector, key, on_, roles_, matches_, leaves_, checks_, examples_, others_, ...) \
	[PII_##detector] = { \
		.name = key, .on = on_, .roles = roles_, .matches = matches_, .leaves = leaves_, \
		.checks = checks_, .examples = examples_, .others = others_, .rules = __VA_ARGS__, \
		.rule_count = COUNT((__VA_ARGS__)) \
	},
/* clang-format on */
#define PII_PART PII_DETECTOR

const struct pii_detector_info pii_detectors[PII_PATTERNS] = {
#include "processors/pii_table.h"
};

#undef PII_DETECTOR
#undef PII_PART

/* One entry per byte: its classes, and in four lanes what is counted. */
#define LANE_DIGIT PII_LANES(1, 0, 0, 0)
#define LANE_DOT PII_LANES(0, 1, 0, 0)
#define LANE_COLON PII_LANES(0, 0, 1, 0)
#define LANE_DASH PII_LANES(0, 0, 0, 1)
#define BLOCK PII_COUNT_MAX /* bytes after which no lane has overflowed */

static const uint32_t classes[256] = {
	['@'] = PII_HAS_AT,
	['.'] = PII_HAS_DOT,
	[':'] = PII_HAS_COLON | PII_HAS_GAP,
	['-'] = PII_HAS_DASH,
	['/'] = PII_HAS_SLASH,
	['\\'] = PII_HAS_BACKSLASH | PII_HAS_ESCAPE,
	['?'] = PII_HAS_QUESTION,
	['='] = PII_HAS_EQUALS | PII_HAS_GAP,
	['+'] = PII_HAS_PLUS | PII_HAS_GAP,
	['%'] = PII_HAS_GAP | PII_HAS_PERCENT | PII_HAS_ESCAPE,
	['_'] = PII_HAS_UNDERSCORE,
	['~'] = PII_HAS_TILDE,
	[' '] = PII_HAS_SPACE | PII_HAS_GAP,
	['\t'] = PII_HAS_GAP,
	['"'] = PII_HAS_QUOTE,
	['\''] = PII_HAS_QUOTE,
	['0' ... '9'] = PII_HAS_DIGIT,
	['A'] = PII_HAS_UPPER,
	['B'] = PII_HAS_UPPER | PII_HAS_B,
	['C' ... 'Z'] = PII_HAS_UPPER,
	['b'] = PII_HAS_B,
};

static uint64_t lane(int byte)
{
	switch (byte) {
	case '0' ... '9':
		return LANE_DIGIT;
	case '.':
		return LANE_DOT;
	case ':':
		return LANE_COLON;
	case '-':
		return LANE_DASH;
	default:
		return 0;
	}
}

void pii_meanings_init(struct pii_meaning meanings[256])
{
	for (int byte = 0; byte < 256; byte++) {
		meanings[byte].classes = classes[byte];
		meanings[byte].counts = lane(byte);
	}
}

/* The sum of counts, lane by lane. */
static uint64_t add_counts(uint64_t counts, uint64_t more)
{
	const uint64_t max = PII_COUNT_MAX;
	for (unsigned lane = 0; lane < 64; lane += 16) {
		uint64_t sum = (counts >> lane & max) + (more >> lane & max);
		counts = (counts & ~(max << lane)) | (sum < max ? sum : max) << lane;
	}
	return counts;
}

struct pii_summary pii_summary(const struct pii_meaning meanings[256], struct view text,
			       pii_rule_set *found)
{
	struct pii_summary sum = { .length = text.len };
	pii_rule_set before = meanings[0].before, anchored = { 0 };
	for (size_t at = 0; at < text.len;) {
		size_t end = text.len - at > BLOCK ? at + BLOCK : text.len;
		uint64_t counts = 0;
#pragma GCC unroll 4
		for (; at < end; at++) {
			const struct pii_meaning *byte = &meanings[text.at[at]];
			anchored |= before & byte->first;
			before = byte->before;
			sum.classes |= byte->classes;
			counts += byte->counts;
		}
		sum.counts = sum.counts ? add_counts(sum.counts, counts) : counts;
	}
	*found = anchored;
	return sum;
}
