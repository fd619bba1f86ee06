/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"

/* What names a person or a project in a path. */
#define SEGMENT_MAX 256

#define EFFORT_HOME 90   /* behind its directory */
#define EFFORT_USERS 120 /* their names may have blanks */
#define EFFORT_WORDS 60  /* the same, behind a drive */
#define EFFORT_SHARE 75
#define EFFORT_WINDOWS 80
#define EFFORT_FRONT 370 /* what may be a root */
#define EFFORT_PATH_BYTE 6

/* disk2, nas10: one of a row of mounts. */
static bool is_numbered(struct view word)
{
	static const char *const rows[PII_WORD_MAX + 1] = { [2] = "fs",
							    [3] = "vol"
								  "nas",
							    [4] = "data"
								  "disk" };
	size_t digits = pii_run_back(word, word.len, PII_DIGIT, 4);
	return digits && digits <= 3 &&
	       pii_is_word((struct view){ word.at, word.len - digits }, rows);
}

/* "c", as some shells mount a drive, or "c%3A", as it stands in URLs. */
static bool is_drive(struct view word)
{
	return pii_is(pii_byte(word, 0), PII_LETTER) &&
	       (word.len == 1 ||
		(word.len == 4 && (PII_WORD_IN(word, 1, "%3A") || PII_WORD_IN(word, 1, "%3a"))));
}

/*
 * May a home directory's path begin behind this directory, which is a mount, a container's root or
 * an export? It begins at `slash`. "/app/home" is a program's own.
 */
static bool is_root(struct view text, size_t slash, size_t end)
{
	static const char *const roots[PII_WORD_MAX + 1] = {
		[3] = "var"
		      "usr"
		      "mnt"
		      "nfs"
		      "net"
		      "srv"
		      "opt",
		[4] = "root"
		      "host"
		      "diff"
		      "data"
		      "Data"
		      "gpfs",
		[5] = "upper"
		      "media",
		[6] = "rootfs"
		      "hostfs"
		      "merged"
		      "export"
		      "lustre",
		[7] = "private",
		[8] = "hostroot"
		      "snapshot",
	};
	static const char *const parents[PII_WORD_MAX + 1] = {
		[3] = "mnt"
		      "net"
		      "nfs",
		[4] = "gpfs"
		      "wsl$",
		[5] = "media",
		[6] = "lustre",
		[7] = "Volumes",
		[13] = "wsl.localhost",
	};
	struct view name = { text.at + slash + 1, end - slash - 1 };
	if (is_drive(name) || pii_is_word(name, roots) || is_numbered(name))
		return true;
	size_t parent = 0;
	while (parent < 16 && parent < slash && text.at[slash - parent - 1] != '/')
		parent++;
	return name.len && parent && slash > parent && text.at[slash - parent - 1] == '/' &&
	       pii_is_word((struct view){ text.at + slash - parent, parent }, parents);
}

/* "GET /home/dashboard": a route, not a path. */
static bool is_route(struct view text, size_t at)
{
	static const char *const methods[PII_WORD_MAX + 1] = {
		[3] = "GET"
		      "PUT",
		[4] = "POST"
		      "HEAD",
		[5] = "PATCH"
		      "TRACE",
		[6] = "DELETE",
		[7] = "OPTIONS",
	};
	if (!at || text.at[at - 1] != ' ')
		return false;
	size_t len = pii_run_back(text, at - 1, PII_BASE64URL, 8);
	return pii_is_word((struct view){ text.at + at - 1 - len, len }, methods);
}

/* Is the name that begins behind `slash` the host of a URL of files? "http://host/home" is a page.
 */
static bool is_file_host(struct view text, size_t slash)
{
	static const char *const schemes[PII_WORD_MAX + 1] = {
		[3] = "ssh"
		      "scp"
		      "nfs"
		      "smb",
		[4] = "file"
		      "sftp",
		[7] = "git+ssh",
		[13] = "vscode-remote",
	};
	if (slash < 3 || text.at[slash - 1] != '/' || text.at[slash - 2] != ':')
		return false;
	size_t len = pii_run_back(text, slash - 2, PII_LOWER | PII_DASH, 16);
	if (pii_at(text, slash - 2 - len - 1) == '+')
		len += 1 + pii_run_back(text, slash - 2 - len - 1, PII_LOWER, 16);
	return pii_is_word((struct view){ text.at + slash - 2 - len, len }, schemes);
}

/* "-I/home": the option of a compiler. */
static bool is_option(struct view text, size_t at)
{
	return at > 1 && text.at[at - 2] == '-' && pii_is(text.at[at - 1], PII_LETTER) &&
	       !(at > 2 && pii_is(text.at[at - 3], PII_BASE64URL));
}

/* Does the path begin at `at`, or behind a root? */
static bool is_home_front(struct pii_seen *seen, struct view text, size_t at)
{
	if (!at)
		return true;
	if (!pii_is(text.at[at - 1], PII_BASE64URL))
		return !is_route(text, at);
	if (is_option(text, at) || pii_ends_escape(text, at))
		return true;
	size_t name = 0;
	if (!pii_spend(&seen->runs, EFFORT_FRONT))
		return false;
	while (name < 65 && name < at && text.at[at - name - 1] != '/')
		name++;
	pii_spend(&seen->runs, EFFORT_PATH_BYTE * name);
	return name <= 64 && name < at &&
	       (is_root(text, at - name - 1, at) || is_file_host(text, at - name - 1));
}

/* "." and "..", which are not names. */
static bool is_dots(struct view text, size_t at, size_t len)
{
	return len && len <= 2 && text.at[at] == '.' && text.at[at + len - 1] == '.';
}

/* "C:\": a drive. */
static bool is_drive_at(struct view text, size_t at)
{
	return pii_at(text, at + 1) == ':' && pii_is_at(text, at, PII_LETTER) &&
	       pii_is_at(text, at + 2, PII_SLASH);
}

/* Does a path end here, though a blank may follow? What follows then is an option or a path. */
static bool is_path_end(struct view text, size_t at)
{
	uint8_t next = pii_at(text, at + 1);
	return pii_at(text, at) != ' ' || next == '/' || next == '-' || is_drive_at(text, at + 1);
}

/* The rest of a name of several words, each behind a blank: they end at a slash, or begin with
 * capitals and end the path. Where they end. */
static size_t words_end(struct view text, size_t end)
{
	bool capital = true;
	size_t at = end;
	for (int words = 0; words < 3 && pii_at(text, at) == ' '; words++) {
		size_t len = pii_run(text, at + 1, PII_NAME, 64);
		if (!len || is_drive_at(text, at + 1))
			break;
		capital = capital && pii_is(text.at[at + 1], PII_UPPER);
		at += 1 + len;
		if (pii_is_at(text, at, PII_SLASH) || (capital && is_path_end(text, at)))
			return at;
	}
	return end;
}

/* "alice/../bob": another's home, beside that of the first. */
static size_t siblings_end(struct view text, size_t end)
{
	while (PII_WORD_AT(text, end, "/../")) {
		size_t len = pii_run(text, end + 4, PII_NAME, SEGMENT_MAX);
		if (!len || is_dots(text, end + 4, len))
			break;
		end += 4 + len;
	}
	return end;
}

/* /home/NAME, /home2/NAME or /Users/NAME, with any number of slashes and "./" between. For JSON,
 * both slashes may be escaped (\/home\/). */
bool pii_find_home(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		   struct regex_span *span)
{
	(void)rule;
	bool users = PII_WORD_AT(text, at + 1, "Users");
	size_t start = at, name = at + (users ? sizeof "Users" : sizeof "home");
	if (!users && !PII_WORD_AT(text, at + 1, "home"))
		return false;
	name += users ? 0 : pii_run(text, name, PII_DIGIT, 2);
	if (at && text.at[at - 1] == '\\' && pii_at(text, name) == '\\')
		start--, name++;
	if (pii_at(text, name) != '/')
		return false;
	if (!pii_spend(&seen->runs, EFFORT_HOME + (users ? EFFORT_USERS : 0)))
		return false;
	while (pii_at(text, name) == '/' || PII_WORD_AT(text, name, "./"))
		name += text.at[name] == '/' ? 1 : 2;
	size_t len = pii_run(text, name, PII_NAME, SEGMENT_MAX);
	if (!len || is_dots(text, name, len) || !is_home_front(seen, text, start))
		return false;
	size_t end = name + len;
	if (users)
		end = words_end(text, end);
	return pii_hit(span, name, siblings_end(text, end));
}

/* Where an escaped slash of either kind ends, %2F or %5C, whose % may be escaped; 0: it is none. */
static size_t escaped_slash_end(struct view text, size_t at)
{
	size_t digits = at + 1;
	if (pii_at(text, at) != '%')
		return 0;
	while (PII_WORD_AT(text, digits, "25"))
		digits += 2;
	uint8_t first = pii_at(text, digits), second = pii_at(text, digits + 1) | 0x20;
	return (first == '2' && second == 'f') || (first == '5' && second == 'c') ? digits + 2 : 0;
}

/* The length of a character of an escaped name: itself, or the escape of a blank or of a byte above
 * ASCII. */
static size_t escaped_at(struct view text, size_t at)
{
	uint8_t byte = pii_at(text, at), high = pii_at(text, at + 1);
	if (pii_is(byte, PII_BASE64URL | PII_DOT | PII_TILDE | PII_HIGH))
		return 1;
	if (byte != '%')
		return 0;
	if (PII_WORD_AT(text, at, "%20"))
		return 3;
	return (high >= '8' && pii_is(high, PII_HEX)) && pii_is_at(text, at + 2, PII_HEX) ? 3 : 0;
}

/* %2Fhome%2Falice, or %252F and so on; at what stands in front of "2F" */
bool pii_find_home_escaped(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t start = at, home = at + 3;
	while (start > 1 && text.at[start] == '5' && text.at[start - 1] == '2')
		start -= 2;
	if (escaped_slash_end(text, start) != home)
		return false;
	size_t word = PII_WORD_AT(text, home, "home")                                        ? 4
		      : PII_WORD_AT(text, home + 1, "sers") && (text.at[home] | 0x20) == 'u' ? 5
											     : 0;
	size_t name = word ? escaped_slash_end(text, home + word) : 0, end = name, len = 0;
	if (!name)
		return false;
	if (start && pii_is(text.at[start - 1], PII_BASE64URL | PII_DOT) &&
	    !pii_ends_escape(text, start))
		return false;
	for (size_t n; len < 64 && (n = escaped_at(text, end)); len++)
		end += n;
	pii_spend(&seen->runs, 2 * EFFORT_PATH_BYTE * len);
	return pii_hit(span, name, end);
}

/* The length of the directory of homes that stands here; 0: it is another. */
static size_t homes_at(struct view text, size_t at)
{
	if (PII_LETTERS_AT(text, at, "users"))
		return sizeof "users" - 1;
	if (PII_LETTERS_AT(text, at, "home"))
		return sizeof "home" - 1;
	bool settings = PII_LETTERS_AT(text, at, "documents") && pii_at(text, at + 9) == ' ' &&
			PII_LETTERS_AT(text, at + 10, "and") && pii_at(text, at + 13) == ' ' &&
			PII_LETTERS_AT(text, at + 14, "settings");
	return settings ? sizeof "documents and settings" - 1 : 0;
}

/* A drive's letter, a colon, and up to four of either slash. */
static bool has_drive(struct view text, size_t at)
{
	if (at >= 2 && text.at[at - 2] != ':' && !pii_is(text.at[at - 2], PII_SLASH))
		return false;
	size_t slashes = pii_run_back(text, at, PII_SLASH, 5);
	return slashes && slashes <= 4 && at >= slashes + 2 && text.at[at - slashes - 1] == ':' &&
	       pii_is(text.at[at - slashes - 2], PII_LETTER);
}

/* "\\?\UNC": where long names of shares begin; between the names are `one` slashes. */
static bool is_unc(struct view text, size_t end, size_t one)
{
	if (!PII_WORD_BEFORE(text, end, "UNC") || pii_run_back(text, end - 3, PII_SLASH, 5) != one)
		return false;
	size_t mark = end - 3 - one;
	return mark && text.at[mark - 1] == '?' &&
	       pii_run_back(text, mark - 1, PII_SLASH, 5) == 2 * one;
}

/* \\server\, or \\server\share\ and one more, or \\?\UNC\ and these. All backslashes may be
 * doubled, as in JSON. */
static bool has_share(struct pii_seen *seen, struct view text, size_t at)
{
	if (text.at[at - 1] != '\\')
		return false;
	size_t one = pii_run_back(text, at, PII_SLASH, 5), end = at - one;
	if (one > 2)
		return false;
	for (int names = 0; names < 3; names++) {
		size_t name = pii_run_back(text, end, PII_NAME, 64);
		size_t slashes = pii_run_back(text, end - name, PII_SLASH, 5);
		if (!pii_spend(&seen->runs, EFFORT_SHARE + EFFORT_PATH_BYTE * name) || !name ||
		    name == 64)
			return false;
		end -= name + slashes;
		if (slashes == one && is_unc(text, end, one))
			return true;
		if (slashes == 2 * one)
			return true;
		if (slashes != one)
			return false;
	}
	return false;
}

/* \Device\HarddiskVolume3\, %SystemDrive%\ */
static bool has_device(struct pii_seen *seen, struct view text, size_t at)
{
	if (text.at[at - 1] != '\\' || !pii_spend(&seen->runs, EFFORT_SHARE))
		return false;
	size_t name = pii_run_back(text, at - 1, PII_NAME, 32), start = at - 1 - name;
	pii_spend(&seen->runs, EFFORT_PATH_BYTE * name);
	return (name && PII_WORD_AT(text, start, "HarddiskVolume")) ||
	       PII_WORD_BEFORE(text, at - 1, "%SystemDrive%");
}

/* At the word "Users". A name that a slash follows may hold blanks. "App\Users\List" is a class.
 */
bool pii_find_home_windows(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t word = homes_at(text, at);
	bool home = word == sizeof "home" - 1;
	if (!word)
		return false;
	if (!pii_spend(&seen->runs, EFFORT_WINDOWS))
		return false;
	bool share = has_share(seen, text, at);
	if (!share && (home || !(has_drive(text, at) || has_device(seen, text, at))))
		return false;
	size_t slashes = pii_run(text, at + word, PII_SLASH, 5), name = at + word + slashes;
	if (!slashes || slashes > 4)
		return false;
	/* "\\server\home\users\alice": the second one counts. */
	if (share && pii_find_home_windows(rule, text, name, seen, span))
		return true;
	size_t len = pii_run(text, name, PII_WINDOWS_NAME, 64);
	pii_spend(&seen->runs, EFFORT_PATH_BYTE * len);
	if (len && pii_is_at(text, name + len, PII_SLASH))
		return pii_hit(span, name, name + len);
	len = pii_run(text, name, PII_WINDOWS_WORD, SEGMENT_MAX);
	pii_spend(&seen->runs, EFFORT_WORDS + EFFORT_PATH_BYTE * len);
	return len && pii_hit(span, name, words_end(text, name + len));
}

/* A segment of a path and a slash of these behind it: its end; 0: there is none. */
static size_t segment_end(struct pii_seen *seen, struct view text, size_t at, bool backslash)
{
	size_t len = pii_run(text, at, PII_SEGMENT, SEGMENT_MAX);
	uint8_t back = pii_at(text, at + len);
	pii_spend(&seen->runs, EFFORT_PATH_BYTE * len);
	return len && (back == '/' || (backslash && back == '\\')) ? at + len : 0;
}

/* Group and project, or a name twice. */
static bool project_at(struct pii_seen *seen, struct view text, size_t at, bool backslash,
		       struct regex_span *span)
{
	size_t first = segment_end(seen, text, at, backslash);
	size_t second = first ? segment_end(seen, text, first + 1, backslash) : 0;
	return second && pii_hit(span, at, second);
}

bool pii_find_project(const struct pii_rule *rule, struct view text, size_t at,
		      struct pii_seen *seen, struct regex_span *span)
{
	return !pii_is_repeated(rule, text, at) &&
	       project_at(seen, text, at + rule->literal_len, false, span);
}

/* /_work/... and /__w/..., with slashes of either kind: GitHub's and Azure's agents */
bool pii_find_project_agent(const struct pii_rule *rule, struct view text, size_t at,
			    struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t word = PII_WORD_AT(text, at + 1, "_work") ? 5
		      : PII_WORD_AT(text, at + 1, "__w") ? 3
							 : 0;
	size_t end = at + 1 + word;
	if (!word || pii_at(text, end) != text.at[at])
		return false;
	/* "/_work/_work/a/": the inner one counts. */
	bool again = pii_has_at(text, end, (const char *)text.at + at, word + 2);
	return !again && project_at(seen, text, end + 1, text.at[at] == '\\', span);
}

/* /builds/... where a path begins */
bool pii_find_project_builds(const struct pii_rule *rule, struct view text, size_t at,
			     struct pii_seen *seen, struct regex_span *span)
{
	return !(at && pii_is(text.at[at - 1], PII_BASE64URL | PII_DOT)) &&
	       project_at(seen, text, at + rule->literal_len, false, span);
}

/* Where the projects are of a user of CI systems: GitHub's runner, Azure's, Travis, GitLab's; its
 * length, 0: it is another user. */
static size_t user_place(struct view text, size_t at)
{
#define PLACE(place) (PII_WORD_AT(text, at, place) ? sizeof(place) - 1 : 0)
	switch (pii_at(text, at)) {
	case 'r':
		return PLACE("runner/"
			     "work/");
	case 'v':
		return PLACE("vsts/"
			     "work/");
	case 't':
		return PLACE("travis/build/");
	case 'g':
		return PLACE("gitlab-runner/builds/");
	default:
		return 0;
	}
}

/* Behind the home of such a user. */
bool pii_find_project_home(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t user = at + (pii_at(text, at + 1) == 'U' ? sizeof "/Users" : sizeof "/home");
	size_t place = user_place(text, user);
	return place && (PII_WORD_AT(text, at, "/home/") || PII_WORD_AT(text, at, "/Users/")) &&
	       project_at(seen, text, user + place, false, span);
}

/* D:\a\..., at the slash behind the colon */
bool pii_find_project_windows(const struct pii_rule *rule, struct view text, size_t at,
			      struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	return at >= 2 && pii_is(text.at[at - 2], PII_LETTER) && pii_at(text, at + 1) == 'a' &&
	       pii_is_at(text, at + 2, PII_SLASH) && project_at(seen, text, at + 3, true, span);
}

static bool segment_at(struct pii_seen *seen, struct view text, size_t at, struct regex_span *span)
{
	size_t end = segment_end(seen, text, at, false);
	return end && pii_hit(span, at, end);
}

/* Does "jenkins", or jenkins-2, end here? */
static bool is_jenkins(struct pii_seen *seen, struct view text, size_t end)
{
	static const size_t len = sizeof "jenkins" - 1;
	size_t word = pii_run_back(text, end, PII_BASE64URL, 32 + len);
	pii_spend(&seen->runs, 2 * EFFORT_PATH_BYTE * word);
	for (; word >= len; word--)
		if (PII_WORD_AT(text, end - word, "jenkins"))
			return true;
	return false;
}

/* At "/workspace/". */
bool pii_find_workspace(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	return (PII_WORD_BEFORE(text, at, "/agent") || is_jenkins(seen, text, at)) &&
	       segment_at(seen, text, at + rule->literal_len, span);
}

/* At the directory "work". */
bool pii_find_agent_work(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	return (PII_WORD_BEFORE(text, at, "/agent/") ||
		PII_WORD_BEFORE(text, at, "/buildAgent/")) &&
	       segment_at(seen, text, at + rule->literal_len, span);
}

/* A user's name, and a digest behind it. */
bool pii_find_bazel(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		    struct regex_span *span)
{
	size_t start = at + rule->literal_len,
	       end = start + pii_run(text, start, PII_SEGMENT, SEGMENT_MAX);
	size_t digest = 0;
	pii_spend(&seen->runs, EFFORT_PATH_BYTE * (end - start));
	if (end > start && pii_at(text, end) == '/')
		while (digest < 32 && pii_is_at(text, end + 1 + digest, PII_HEX) &&
		       !pii_is_at(text, end + 1 + digest, PII_UPPER))
			digest++;
	return pii_hit(span, start, digest == 32 ? end + 33 : end);
}

bool pii_find_go_build(const struct pii_rule *rule, struct view text, size_t at,
		       struct pii_seen *seen, struct regex_span *span)
{
	(void)seen;
	size_t start = at + rule->literal_len, len = pii_run(text, start, PII_DIGIT, 20);
	return len >= 4 && pii_hit(span, start, start + len);
}
