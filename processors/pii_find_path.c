/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"
#include "processors/pii_text.h"

/* What names a person or a project in a path. */
#define SEGMENT_MAX 256

static bool is_any(struct view word, const char *const *words)
{
	for (; *words; words++)
		if (view_is(word, *words))
			return true;
	return false;
}

/* disk2, nas10: one of a row of mounts. */
static bool is_numbered(struct view word)
{
	static const char *const rows[] = { "data", "disk", "vol", "nas", "fs", NULL };
	size_t digits = pii_run_back(word, word.len, PII_DIGIT, 4);
	return digits && digits <= 3 && is_any((struct view){ word.at, word.len - digits }, rows);
}

/*
 * May a home directory's path begin behind this directory, which is a mount, a container's root or
 * an export? It begins at `slash`. "/app/home" is a program's own.
 */
static bool is_root(struct view text, size_t slash, size_t end, size_t from)
{
	static const char *const roots[] = { "root",   "rootfs", "host",    "hostfs",   "hostroot",
					     "merged", "diff",   "upper",   "snapshot", "data",
					     "Data",   "export", "var",     "usr",      "mnt",
					     "nfs",    "net",    "private", "srv",      "media",
					     "opt",    "gpfs",   "lustre",  NULL };
	static const char *const parents[] = { "Volumes", "mnt",  "media",  "net",
					       "nfs",     "gpfs", "lustre", NULL };
	struct view name = { text.at + slash + 1, end - slash - 1 };
	if (slash >= from && ((name.len == 1 && pii_is(name.at[0], PII_LETTER)) ||
			      is_any(name, roots) || is_numbered(name)))
		return true;
	size_t parent = 0;
	while (parent < 8 && parent < slash && text.at[slash - parent - 1] != '/')
		parent++;
	return name.len && parent && slash > parent && slash - parent > from &&
	       text.at[slash - parent - 1] == '/' &&
	       is_any((struct view){ text.at + slash - parent, parent }, parents);
}

/* Does the path begin at `at`, or behind a root? */
static bool is_home_front(struct view text, size_t at, size_t from)
{
	if (!at)
		return true;
	if (at <= from)
		return false;
	if (!pii_is(text.at[at - 1], PII_BASE64URL))
		return true;
	size_t name = 0;
	while (name < 65 && name < at && text.at[at - name - 1] != '/')
		name++;
	return name <= 64 && name < at && is_root(text, at - name - 1, at, from);
}

/* /home/NAME or /Users/NAME, with any number of slashes between. */
bool pii_find_home(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		   struct regex_span *span)
{
	size_t name = at + strlen(rule->literal);
	while (pii_byte(text, name) == '/')
		name++;
	size_t len = pii_run(text, name, PII_NAME, SEGMENT_MAX);
	return len && is_home_front(text, at, *from) && pii_hit(span, name, name + len);
}

/* The length of the word in front of a name; 0: there is none. */
static size_t users_at(struct view text, size_t at)
{
	static const char *const words[] = { "users", "documents and settings" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = 0;
		while (words[i][n] &&
		       (words[i][n] == ' ' ? pii_byte(text, at + n) == ' '
					   : (pii_byte(text, at + n) | 0x20) == words[i][n]))
			n++;
		if (!words[i][n])
			return n;
	}
	return 0;
}

/* A backslash, or a drive's letter, colon and up to four of either slash. */
static bool is_windows_front(struct view text, size_t at, size_t from)
{
	if (at - 1 >= from && text.at[at - 1] == '\\')
		return true;
	size_t colon = at - pii_run_back(text, at, PII_SLASH, 5);
	return colon < at && at - colon <= 4 && colon >= from + 2 && text.at[colon - 1] == ':' &&
	       pii_is(text.at[colon - 2], PII_LETTER);
}

/* At the word "Users". A name that a slash follows may hold blanks. */
bool pii_find_home_windows(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			   struct regex_span *span)
{
	(void)rule;
	size_t word = users_at(text, at);
	if (!word || !is_windows_front(text, at, *from))
		return false;
	size_t slashes = pii_run(text, at + word, PII_SLASH, 5), name = at + word + slashes;
	if (!slashes || slashes > 4)
		return false;
	size_t len = pii_run(text, name, PII_WINDOWS_NAME, 64);
	if (!len || !pii_is(pii_byte(text, name + len), PII_SLASH))
		len = pii_run(text, name, PII_WINDOWS_WORD, SEGMENT_MAX);
	return pii_hit(span, name, name + len);
}

/* A segment of a path and a slash of these behind it: its end; 0: there is none. */
static size_t segment_end(struct view text, size_t at, bool backslash)
{
	size_t len = pii_run(text, at, PII_SEGMENT, SEGMENT_MAX);
	uint8_t back = pii_byte(text, at + len);
	return len && (back == '/' || (backslash && back == '\\')) ? at + len : 0;
}

/* Group and project, or a name twice. */
static bool project_at(struct view text, size_t at, bool backslash, struct regex_span *span)
{
	size_t first = segment_end(text, at, backslash);
	size_t second = first ? segment_end(text, first + 1, backslash) : 0;
	return second && pii_hit(span, at, second);
}

bool pii_find_project(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		      struct regex_span *span)
{
	(void)from;
	return project_at(text, at + strlen(rule->literal), false, span);
}

/* /builds/... where a path begins */
bool pii_find_project_builds(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			     struct regex_span *span)
{
	if (at && (at <= *from || pii_is(text.at[at - 1], PII_BASE64URL | PII_DOT)))
		return false;
	return pii_find_project(rule, text, at, from, span);
}

/* Behind the home of a user that builds. */
bool pii_find_project_home(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			   struct regex_span *span)
{
	static const char *const places[] = { "/"
					      "work/",
					      "/build/", "/builds/" };
	(void)from;
	size_t end = segment_end(text, at + strlen(rule->literal), false);
	for (size_t i = 0; end && i < sizeof places / sizeof *places; i++)
		if (pii_has_at(text, end, places[i], strlen(places[i])))
			return project_at(text, end + strlen(places[i]), false, span);
	return false;
}

/* D:\a\..., at the slash behind the colon */
bool pii_find_project_windows(const struct pii_rule *rule, struct view text, size_t at,
			      size_t *from, struct regex_span *span)
{
	(void)rule;
	return at >= *from + 2 && pii_is(text.at[at - 2], PII_LETTER) &&
	       pii_byte(text, at + 1) == 'a' && pii_is(pii_byte(text, at + 2), PII_SLASH) &&
	       project_at(text, at + 3, true, span);
}

static bool segment_at(struct view text, size_t at, struct regex_span *span)
{
	size_t end = segment_end(text, at, false);
	return end && pii_hit(span, at, end);
}

/* Does "jenkins", or jenkins-2, end here? */
static bool is_jenkins(struct view text, size_t end, size_t from)
{
	static const size_t len = sizeof "jenkins" - 1;
	size_t word = pii_run_back(text, end, PII_BASE64URL, 32 + len);
	if (word > end - from)
		word = end - from;
	for (; word >= len; word--)
		if (PII_WORD_AT(text, end - word, "jenkins"))
			return true;
	return false;
}

/* At "/workspace/". */
bool pii_find_workspace(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			struct regex_span *span)
{
	bool agent = PII_WORD_BEFORE(text, at, "/agent") && at >= *from + 6;
	return (agent || is_jenkins(text, at, *from)) &&
	       segment_at(text, at + strlen(rule->literal), span);
}

/* At the directory "work". */
bool pii_find_agent_work(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			 struct regex_span *span)
{
	size_t front = PII_WORD_BEFORE(text, at, "/agent")        ? 6
		       : PII_WORD_BEFORE(text, at, "/buildAgent") ? 11
								  : 0;
	return front && at >= *from + front && segment_at(text, at + strlen(rule->literal), span);
}

/* A user's name, and a digest behind it. */
bool pii_find_bazel(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		    struct regex_span *span)
{
	(void)from;
	size_t start = at + strlen(rule->literal),
	       end = start + pii_run(text, start, PII_SEGMENT, SEGMENT_MAX);
	size_t digest = 0;
	if (end > start && pii_byte(text, end) == '/')
		while (digest < 32 && pii_is(pii_byte(text, end + 1 + digest), PII_HEX) &&
		       !pii_is(pii_byte(text, end + 1 + digest), PII_UPPER))
			digest++;
	return pii_hit(span, start, digest == 32 ? end + 33 : end);
}

bool pii_find_go_build(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		       struct regex_span *span)
{
	(void)from;
	size_t start = at + strlen(rule->literal), len = pii_run(text, start, PII_DIGIT, 20);
	return len >= 4 && pii_hit(span, start, start + len);
}
