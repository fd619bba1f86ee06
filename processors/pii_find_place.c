/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"

/* What is personal in some places only: detectors that an operator enables. */

/* The name of a directory, behind the rule's literal. */
bool pii_find_directory(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	(void)seen;
	size_t start = at + rule->literal_len;
	while (pii_at(text, start) == '/' || PII_WORD_AT(text, start, "./"))
		start += text.at[start] == '/' ? 1 : 2;
	size_t len = pii_run(text, start, PII_SEGMENT, 256);
	return len && pii_is_at(text, start + len, PII_SLASH) && !pii_is_repeated(rule, text, at) &&
	       pii_hit(span, start, start + len);
}

static bool is_letter(struct view text, size_t at)
{
	return pii_is_at(text, at, PII_LETTER);
}

static bool is_blank(uint8_t byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Where a statement begins: behind blanks, brackets and a comment. */
#define STATEMENT_FRONT_MAX 64

static size_t statement_start(struct view text)
{
	size_t at = 0;
	for (int comments = 0; comments < 4; comments++) {
		while (at < STATEMENT_FRONT_MAX &&
		       (is_blank(pii_at(text, at)) || pii_at(text, at) == '('))
			at++;
		const char *mark = PII_WORD_AT(text, at, "/*")   ? "*/"
				   : PII_WORD_AT(text, at, "--") ? "\n"
								 : NULL;
		if (!mark)
			break;
		size_t left =
			text.len - at < STATEMENT_FRONT_MAX ? text.len - at : STATEMENT_FRONT_MAX;
		const uint8_t *end = memmem(text.at + at, left, mark, strlen(mark));
		at = end ? (size_t)(end - text.at) + strlen(mark) : at;
	}
	return at;
}

/* Does the string begin as a statement does? */
static bool is_statement(struct view text)
{
	static const char *const verbs[] = { "SELECT", "INSERT", "UPDATE",  "DELETE", "MERGE",
					     "WITH",   "CALL",   "REPLACE", "EXEC",   "EXPLAIN",
					     "UPSERT", "VALUES", "CREATE",  "ALTER",  "GRANT",
					     "COPY",   "DECLARE" };
	size_t at = statement_start(text);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		size_t n = 0;
		while (verbs[i][n] && (pii_at(text, at + n) & 0xdf) == verbs[i][n])
			n++;
		if (!verbs[i][n] && is_blank(pii_at(text, at + n)))
			return true;
	}
	return false;
}

/* 'O''Brien': what stands between the quotation marks. Everything up to the last one goes where a
 * backslash stands in front of one, for it depends on the database what the mark means; and where a
 * comment, a line or a name seems to end inside, for the mark may be an apostrophe: "don't". */
bool pii_find_sql_string(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	size_t end = at + 1, names = 0;
	bool doubtful = false;
	(void)rule;
	if (!is_statement(text)) {
		seen->from = text.len;
		return false;
	}
	while (end < text.len && (text.at[end] != '\'' || pii_at(text, end + 1) == '\'')) {
		doubtful |= text.at[end] == '\n' || PII_WORD_AT(text, end, "*/");
		names += text.at[end] == '"';
		end += text.at[end] == '\'' ? 2 : 1;
		doubtful |= pii_at(text, end) == '\'' && text.at[end - 1] == '\\';
	}
	end = end < text.len ? end : text.len;
	if (doubtful || names % 2) {
		const uint8_t *last = memrchr(text.at + end, '\'', text.len - end);
		end = last ? (size_t)(last - text.at) : text.len;
	}
	seen->from = end + 1;
	return pii_hit(span, at + 1, end);
}

/* 42, 4.2, 4e2, 0x2a */
static size_t sql_number_end(struct view text, size_t at)
{
	if (pii_at(text, at) == '0' && (pii_at(text, at + 1) | 0x20) == 'x')
		return at + 2 + pii_run(text, at + 2, PII_HEX, SIZE_MAX);
	size_t end = at + pii_run(text, at, PII_DIGIT | PII_DOT, SIZE_MAX), power = end + 1;
	power += pii_at(text, power) == '-' || pii_at(text, power) == '+';
	if ((pii_at(text, end) | 0x20) == 'e' && pii_is_at(text, power, PII_DIGIT))
		end = power + pii_run(text, power, PII_DIGIT, SIZE_MAX);
	return end;
}

bool pii_find_sql_number(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	size_t end = sql_number_end(text, at);
	(void)rule;
	if (!is_statement(text)) {
		seen->from = text.len;
		return false;
	}
	return !is_letter(text, end) && pii_hit(span, at, end);
}

/* Is the first word a program that runs what its first argument names? */
static bool is_interpreter(struct view text, size_t end)
{
	static const char *const programs[] = { "python", "java", "node", "ruby",   "perl", "php",
						"bash",   "sh",   "deno", "dotnet", "bun" };
	end -= PII_WORD_BEFORE(text, end, ".exe") ? 4 : 0;
	size_t tail = pii_run_back(text, end, PII_DIGIT | PII_DOT, 6);
	size_t len = pii_run_back(text, end - tail, PII_LOWER, 8), start = end - tail - len;
	if (start && !pii_is(text.at[start - 1], PII_SLASH))
		return false;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		if (view_is((struct view){ text.at + start, len }, programs[i]))
			return true;
	return false;
}

/* "-x", "--x", "/x", "x=y" */
static bool is_argument(struct view text, size_t at)
{
	uint8_t first = pii_at(text, at), second = pii_at(text, at + 1);
	if (first == '-')
		return second == '-' || pii_is(second, PII_ALNUM);
	size_t name = pii_run(text, at, PII_BASE64URL | PII_DOT, 64);
	return first == '/' || (name && pii_at(text, at + name) == '=');
}

/* At a blank: the arguments behind a program, to the end of the string. Names of files have blanks
 * too, so what counts is an option, a path, a setting, or a program that needs an argument. */
bool pii_find_arguments(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	if (!at || text.at[0] == '[')
		return false;
	return (is_argument(text, at + 1) || is_interpreter(text, at)) &&
	       pii_hit(span, at + 1, text.len);
}

/* "of user", not "client connected": where the word for a person begins. */
static bool is_behind_preposition(struct view text, size_t start)
{
	return PII_WORD_BEFORE(text, start, "of ") || PII_WORD_BEFORE(text, start, "for ") ||
	       PII_WORD_BEFORE(text, start, "by ") || PII_WORD_BEFORE(text, start, "as ") ||
	       PII_WORD_BEFORE(text, start, "from ");
}

/* Does a word for a person end here? In prose, it needs a preposition. */
static bool is_person(struct view text, size_t end, bool prose)
{
	static const char *const words[] = { "user",   "username", "user_name", "user-name",
					     "login",  "account",  "customer",  "member",
					     "client", "owner" };
	uint8_t front = pii_at(text, end - 2) | 0x20, last = pii_at(text, end - 1) | 0x20;
	/* Most words differ here. */
	if (front != (last == 'r' ? 'e' : last == 'e' ? 'm' : last == 'n' ? 'i' : 'n'))
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t len = strlen(words[i]), n = 0;
		while (n < len && n < end &&
		       (text.at[end - n - 1] | 0x20) == ((uint8_t)words[i][len - n - 1] | 0x20))
			n++;
		if (n == len && !(end > len && pii_is(text.at[end - len - 1], PII_ALNUM)))
			return !prose || is_behind_preposition(text, end - len);
	}
	return false;
}

/* "user_id", "client-pool-1", "account sync": what programs have of a person, in front of what is
 * no letter. */
static bool is_common(struct view text, size_t at)
{
	static const char words[] =
		" account agent api app auth cache channel client code connection"
		" connections context controller count cpu data db default defined"
		" dispatcher error event events executor factory false filter front frontend"
		" group groups grpc handler has hash home http id ids info interface io is"
		" key keys kind limit list listener login logout loop manager mode model"
		" module name names null none number page pool process profile profiles"
		" provider query queue request requests response role roles rpc scheduler"
		" server service services session sessions set settings side space state"
		" status storage store stream sync system table task tasks tcp thread"
		" threads time timeout timer token true type types undefined unknown update"
		" user value version watcher worker workers ";
	char word[18] = " ";
	size_t len = pii_run(text, at, PII_LETTER, 16);
	for (size_t i = 0; i < len; i++)
		word[1 + i] = (char)(text.at[at + i] | 0x20);
	word[1 + len] = ' ';
	return len < 16 && memmem(words, sizeof words - 1, word, len + 2);
}

static bool is_quote(uint8_t byte)
{
	return byte == '"' || byte == '\'';
}

/* May a name end here, by what stands in front of it and behind it? "client/list.go" is a file,
 * "client-go@v1" a module, and in prose nothing may follow. */
static bool is_name_end(struct view text, size_t end, uint8_t mark)
{
	uint8_t back = pii_at(text, end);
	size_t extension = pii_run_back(text, end, PII_LOWER, 5);
	if (mark == ' ')
		return !back || strchr(",;)]", back);
	return back != '@' &&
	       !(mark == '/' && extension && extension < 5 && text.at[end - extension - 1] == '.');
}

/* The length of a name in quotation marks. Where it ends as the word for another does ("user='a,
 * login='b'"), what stands behind that word is left to it. */
static size_t quoted_length(struct view text, size_t start)
{
	size_t end = start;
	while (end < text.len && end - start < 64 && text.at[end] != text.at[start - 1])
		end++;
	size_t word = end;
	while (word > start && text.at[word - 1] == ' ')
		word--;
	bool assigned = word > start && (text.at[word - 1] == '=' || text.at[word - 1] == ':');
	return (assigned && is_person(text, word - 1, false) ? word - 1 : end) - start;
}

/* The length of a name at `start`, behind a mark. */
static size_t user_length(struct view text, size_t start, uint8_t mark)
{
	if (is_quote(text.at[start - 1]))
		return quoted_length(text, start);
	size_t len = pii_run(text, start, PII_BASE64URL | PII_DOT | PII_HIGH, 64);
	bool assigned = mark == '=' || mark == ':';
	if (assigned && (pii_at(text, start + len) == '@' || pii_at(text, start + len) == '\\'))
		len += 1 + pii_run(text, start + len + 1, PII_BASE64URL | PII_DOT | PII_HIGH, 64);
	return is_name_end(text, start + len, mark) ? len : 0;
}

/* user=alice, "user": "alice", "session of user alice", at what follows the word. */
bool pii_find_user_name(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	size_t mark = at + is_quote(text.at[at]);
	mark += PII_WORD_AT(text, mark, " : ") || PII_WORD_AT(text, mark, " = ");
	size_t start = mark + 1;
	bool assigned = pii_at(text, mark) == ':' || pii_at(text, mark) == '=';
	if ((mark > at && !assigned) || !is_person(text, at, pii_at(text, mark) == ' '))
		return false;
	start += assigned && pii_at(text, start) == ' ';
	start += assigned && is_quote(pii_at(text, start));
	if (!pii_is_at(text, start, PII_LETTER | PII_HIGH) || is_common(text, start))
		return false;
	size_t len = user_length(text, start, text.at[mark]);
	return len >= 2 && pii_hit(span, start, start + len);
}
