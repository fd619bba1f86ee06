/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"
#include "processors/pii_text.h"

/* What is personal in some places only: detectors that an operator enables. */

/* The name of a directory, behind the rule's literal. */
bool pii_find_directory(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			struct regex_span *span)
{
	(void)from;
	size_t start = at + strlen(rule->literal), len = pii_run(text, start, PII_SEGMENT, 256);
	return len && pii_is(pii_byte(text, start + len), PII_SLASH) &&
	       pii_hit(span, start, start + len);
}

static bool is_letter(struct view text, size_t at)
{
	return pii_is(pii_byte(text, at), PII_LETTER);
}

/* Does the string begin as a statement does? */
static bool is_statement(struct view text)
{
	static const char *const verbs[] = { "SELECT", "INSERT",  "UPDATE", "DELETE", "MERGE",
					     "WITH",   "REPLACE", "CALL",   "EXEC",   "EXPLAIN" };
	size_t at = 0;
	while (at < 8 && (pii_byte(text, at) == ' ' || pii_byte(text, at) == '('))
		at++;
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		size_t n = 0;
		while (verbs[i][n] && (pii_byte(text, at + n) & 0xdf) == verbs[i][n])
			n++;
		if (!verbs[i][n] && pii_byte(text, at + n) == ' ')
			return true;
	}
	return false;
}

/* 'O''Brien': what stands between the quotation marks. */
bool pii_find_sql_string(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			 struct regex_span *span)
{
	size_t end = at + 1;
	(void)rule;
	if (!is_statement(text)) {
		*from = text.len;
		return false;
	}
	while (end < text.len && (text.at[end] != '\'' || pii_byte(text, end + 1) == '\''))
		end += text.at[end] == '\'' ? 2 : 1;
	end = end < text.len ? end : text.len;
	*from = end + 1;
	return pii_hit(span, at + 1, end);
}

bool pii_find_sql_number(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			 struct regex_span *span)
{
	size_t end = at + pii_run(text, at, PII_DIGIT | PII_DOT, SIZE_MAX);
	(void)rule;
	if (!is_statement(text)) {
		*from = text.len;
		return false;
	}
	return !is_letter(text, end) && pii_hit(span, at, end);
}

/* Is the first word a program that runs what its first argument names? */
static bool is_interpreter(struct view text, size_t end)
{
	static const char *const programs[] = { "python", "java", "node", "ruby",   "perl", "php",
						"bash",   "sh",   "deno", "dotnet", "bun" };
	size_t tail = pii_run_back(text, end, PII_DIGIT | PII_DOT, 6);
	size_t len = pii_run_back(text, end - tail, PII_LOWER, 8), start = end - tail - len;
	if (start && !pii_is(text.at[start - 1], PII_SLASH))
		return false;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		if (view_is((struct view){ text.at + start, len }, programs[i]))
			return true;
	return false;
}

/* At a blank: the arguments behind a program, to the end of the string. Names of files have blanks
 * too, so what counts is an option, a path, or a program that needs an argument. */
bool pii_find_arguments(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			struct regex_span *span)
{
	(void)rule, (void)from;
	uint8_t next = pii_byte(text, at + 1);
	if (!at || text.at[0] == '[')
		return false;
	return (next == '-' || next == '/' || is_interpreter(text, at)) &&
	       pii_hit(span, at + 1, text.len);
}

/* Does a word for a person end here? */
static bool is_person(struct view text, size_t end)
{
	static const char *const words[] = { "user",     "username", "login",  "account",
					     "customer", "member",   "client", "owner" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t len = strlen(words[i]), n = 0;
		while (n < len && n < end &&
		       (text.at[end - n - 1] | 0x20) == (uint8_t)words[i][len - n - 1])
			n++;
		if (n == len && !(end > len && pii_is(text.at[end - len - 1], PII_ALNUM)))
			return true;
	}
	return false;
}

/* user=alice, "session of user alice", at what follows the word. */
bool pii_find_user_name(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			struct regex_span *span)
{
	(void)rule, (void)from;
	size_t start = at + 1 + (pii_byte(text, at + 1) == ' ' && text.at[at] == ':');
	size_t len = pii_run(text, start, PII_BASE64URL | PII_DOT | PII_HIGH, 64);
	return is_person(text, at) && pii_is(pii_byte(text, start), PII_LETTER | PII_HIGH) &&
	       len >= 2 && pii_hit(span, start, start + len);
}
