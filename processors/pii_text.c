/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_text.h"

#define WINDOWS (PII_WINDOWS_NAME | PII_WINDOWS_WORD)
#define LOOSE (PII_QUERY | PII_URL | PII_SECRET | PII_SEGMENT | WINDOWS)
#define PLAIN (LOOSE | PII_NAME)
#define LETTER (PLAIN | PII_LOCAL | PII_TOKEN | PII_BASE64 | PII_QUERY_NAME)

/* Later entries override earlier ones. No name of an account of Windows has + = ; , [ or ]. */
const uint32_t pii_kinds[256] = {
	[0x00 ... 0x7f] = PLAIN,
	[0x80 ... 0xff] = PLAIN | PII_HIGH | PII_LOCAL,
	['0' ... '9'] = LETTER | PII_DIGIT,
	['A' ... 'F'] = LETTER | PII_UPPER | PII_HEX_LETTER,
	['G' ... 'Z'] = LETTER | PII_UPPER,
	['a' ... 'f'] = LETTER | PII_LOWER | PII_HEX_LETTER,
	['g' ... 'z'] = LETTER | PII_LOWER,
	['_'] = PLAIN | PII_UNDERSCORE | PII_LOCAL | PII_TOKEN | PII_QUERY_NAME,
	['-'] = PLAIN | PII_DASH | PII_LOCAL | PII_TOKEN | PII_QUERY_NAME,
	['.'] = PLAIN | PII_DOT | PII_LOCAL | PII_TOKEN | PII_QUERY_NAME,
	['~'] = PLAIN | PII_TILDE | PII_TOKEN,
	['+'] = (PLAIN & ~WINDOWS) | PII_LOCAL | PII_TOKEN | PII_BASE64,
	['='] = (PLAIN & ~WINDOWS) | PII_TOKEN,
	['%'] = PLAIN | PII_LOCAL | PII_QUERY_NAME,
	['/'] = PII_SLASH | PII_TOKEN | PII_BASE64 | PII_QUERY | PII_URL | PII_SECRET,
	['\\'] = PII_SLASH | PII_QUERY | PII_URL | PII_SECRET,
	[' '] = PII_WINDOWS_NAME,
	['\t'] = PII_WINDOWS_NAME,
	['\v'] = PII_WINDOWS_NAME,
	['\f'] = PII_WINDOWS_NAME,
	['\r'] = 0,
	['\n'] = 0,
	['"'] = PII_SEGMENT,
	['<'] = PII_SEGMENT,
	['>'] = PII_SEGMENT,
	['\''] = PII_SEGMENT | WINDOWS | PII_LOCAL,
	['|'] = PII_SEGMENT | PII_QUERY | PII_URL | PII_SECRET,
	['*'] = PII_QUERY | PII_URL | PII_SECRET,
	['?'] = PII_SEGMENT | PII_QUERY | PII_SECRET,
	[':'] = PII_SEGMENT | PII_QUERY | PII_URL | PII_SECRET,
	['&'] = PLAIN & ~PII_SECRET,
	['#'] = PLAIN & ~PII_QUERY,
	[';'] = LOOSE & ~PII_SECRET & ~WINDOWS,
	[','] = LOOSE & ~WINDOWS,
	['('] = LOOSE,
	[')'] = LOOSE,
	['{'] = LOOSE,
	['}'] = LOOSE,
	['['] = (LOOSE & ~WINDOWS) | PII_QUERY_NAME,
	[']'] = (LOOSE & ~WINDOWS) | PII_QUERY_NAME,
};
