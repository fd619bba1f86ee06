/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/kill_rules.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "profile/wire.h"

const char *const kill_scope_names[KILL_SCOPES] = {
	[KILL_EVERYTHING] = "everything",
	[KILL_TENANT] = "tenant",
	[KILL_SERVICE] = "service",
	[KILL_TENANT_SERVICE] = "tenant_service",
	[KILL_ANY_DESTINATION] = "any_destination",
	[KILL_DESTINATION] = "destination",
};

static void rule_fini(struct kill_rule *rule)
{
	memory_free(rule->name);
	memory_free(rule->service);
	memory_free(rule->note);
}

/* ---- order */

static int compare_text(struct view a, struct view b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = len ? memcmp(a.at, b.at, len) : 0;
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static struct view text_of(const char *text)
{
	return text ? view_of(text) : (struct view){ 0 };
}

/* What a rule is about. */
struct subject {
	enum kill_scope scope;
	struct view name, service;
};

static int compare_subjects(const struct subject *a, const struct subject *b)
{
	if (a->scope != b->scope)
		return a->scope < b->scope ? -1 : 1;
	int order = compare_text(a->name, b->name);
	return order ? order : compare_text(a->service, b->service);
}

static struct subject subject_of(const struct kill_rule *rule)
{
	return (struct subject){ rule->scope, text_of(rule->name), text_of(rule->service) };
}

/* A kill precedes an allow of the same. */
static int compare_rules(const void *left, const void *right)
{
	const struct kill_rule *a = left, *b = right;
	struct subject x = subject_of(a), y = subject_of(b);
	int order = compare_subjects(&x, &y);
	return order ? order : (int)a->allow - (int)b->allow;
}

/* The first rule about it; NULL: there is none. */
static const struct kill_rule *find(const struct kill_rules *rules, struct subject subject)
{
	uint32_t low = 0, high = rules->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct subject there = subject_of(&rules->at[middle]);
		if (compare_subjects(&there, &subject) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == rules->count)
		return NULL;
	struct subject there = subject_of(&rules->at[low]);
	return compare_subjects(&there, &subject) ? NULL : &rules->at[low];
}

/* ---- decisions */

static const struct kill_rule *if_kills(const struct kill_rule *rule)
{
	return rule && !rule->allow ? rule : NULL;
}

const struct kill_rule *kill_rules_data(const struct kill_rules *rules, struct view tenant,
					struct view service)
{
	const struct subject subjects[] = {
		{ KILL_TENANT_SERVICE, tenant, service },
		{ KILL_SERVICE, service, { 0 } },
		{ KILL_TENANT, tenant, { 0 } },
		{ KILL_EVERYTHING, { 0 }, { 0 } },
	};
	const struct kill_rule *rule = NULL;
	for (size_t i = 0; i < sizeof subjects / sizeof *subjects && !rule; i++)
		rule = find(rules, subjects[i]);
	return if_kills(rule);
}

const struct kill_rule *kill_rules_request(const struct kill_rules *rules, struct view tenant,
					   bool final)
{
	const uint32_t *allows = rules->of[1];
	if (allows[KILL_SERVICE] || allows[KILL_TENANT_SERVICE] || (!final && allows[KILL_TENANT]))
		return NULL;
	const struct kill_rule *rule = find(rules, (struct subject){ KILL_TENANT, tenant, { 0 } });
	if (rule && !final)
		rule = NULL;
	return if_kills(rule ? rule
			     : find(rules, (struct subject){ KILL_EVERYTHING, { 0 }, { 0 } }));
}

const struct kill_rule *kill_rules_destination(const struct kill_rules *rules, const char *id)
{
	const struct kill_rule *rule =
		find(rules, (struct subject){ KILL_DESTINATION, view_of(id), { 0 } });
	if (!rule)
		rule = find(rules, (struct subject){ KILL_ANY_DESTINATION, { 0 }, { 0 } });
	return if_kills(rule);
}

bool kill_rules_about_data(const struct kill_rules *rules)
{
	for (int scope = 0; scope <= KILL_TENANT_SERVICE; scope++)
		if (rules->of[0][scope])
			return true;
	return false;
}

bool kill_rules_total(const struct kill_rules *rules)
{
	for (int scope = 0; scope <= KILL_TENANT_SERVICE; scope++)
		if (rules->of[1][scope])
			return false;
	return rules->of[0][KILL_EVERYTHING] > 0;
}

bool kill_rules_has(const struct kill_rules *rules, const struct kill_rule *rule)
{
	const struct kill_rule *end = rules->at + rules->count;
	struct subject subject = subject_of(rule);
	for (const struct kill_rule *at = find(rules, subject); at && at < end; at++) {
		struct subject there = subject_of(at);
		if (compare_subjects(&there, &subject))
			return false;
		if (at->allow == rule->allow)
			return true;
	}
	return false;
}

/* ---- sets */

/* Takes the rules. */
static struct kill_rules *make(struct kill_rule *at, uint32_t count)
{
	struct kill_rules *rules = memory_new(sizeof *rules + count * sizeof *at);
	rules->refs = 1;
	rules->count = count;
	if (count)
		memcpy(rules->at, at, count * sizeof *at);
	qsort(rules->at, count, sizeof *at, compare_rules);
	for (uint32_t i = 0; i < count; i++)
		rules->of[rules->at[i].allow][rules->at[i].scope]++;
	return rules;
}

static uint32_t copy(struct kill_rule *to, const struct kill_rules *from)
{
	for (uint32_t i = 0; from && i < from->count; i++)
		to[i] = (struct kill_rule){ .scope = from->at[i].scope,
					    .allow = from->at[i].allow,
					    .name = memory_text(from->at[i].name),
					    .service = memory_text(from->at[i].service),
					    .note = memory_text(from->at[i].note) };
	return from ? from->count : 0;
}

struct kill_rules *kill_rules_join(const struct kill_rules *a, const struct kill_rules *b)
{
	uint32_t count = (a ? a->count : 0) + (b ? b->count : 0);
	struct kill_rule *at = memory_array(count + 1, sizeof *at);
	uint32_t used = copy(at, a);
	copy(at + used, b);
	struct kill_rules *rules = make(at, count);
	memory_free(at);
	return rules;
}

struct kill_rules *kill_rules_ref(struct kill_rules *rules)
{
	if (rules)
		atomic_fetch_add(&rules->refs, 1);
	return rules;
}

void kill_rules_unref(struct kill_rules **slot)
{
	struct kill_rules *rules = *slot;
	*slot = NULL;
	if (!rules || atomic_fetch_sub(&rules->refs, 1) > 1)
		return;
	for (uint32_t i = 0; i < rules->count; i++)
		rule_fini(&rules->at[i]);
	memory_free(rules);
}

/* ---- parsing */

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* Moves the start of the view. */
static void skip(struct view *v, size_t count)
{
	v->at += count;
	v->len -= count;
}

static void skip_blanks(struct view *line)
{
	while (line->len && is_blank(*line->at))
		skip(line, 1);
}

static bool ends_word(const struct view *line)
{
	return !line->len || is_blank(*line->at) || *line->at == '#';
}

static bool read_quoted(struct view *line, struct bytes *word, struct error *err)
{
	skip(line, 1);
	while (line->len && *line->at != '"') {
		bool escape = *line->at == '\\';
		if (escape && (line->len < 2 || (line->at[1] != '"' && line->at[1] != '\\')))
			return error_set(err, ERROR_CONFIG, "only \\\" and \\\\ may be escaped");
		skip(line, escape);
		bytes_add_byte(word, *line->at);
		skip(line, 1);
	}
	if (!line->len)
		return error_set(err, ERROR_CONFIG, "a quoted name has no end");
	skip(line, 1);
	return ends_word(line) ||
	       error_set(err, ERROR_CONFIG, "a blank is missing after a quoted name");
}

/* The next word; empty at the end of the line. */
static bool read_word(struct view *line, struct bytes *word, bool *quoted, struct error *err)
{
	word->len = 0;
	skip_blanks(line);
	*quoted = line->len && *line->at == '"';
	if (*quoted)
		return read_quoted(line, word, err);
	while (!ends_word(line)) {
		bytes_add_byte(word, *line->at);
		skip(line, 1);
	}
	return true;
}

static bool is_word(const struct bytes *word, const char *text)
{
	return view_is(bytes_view(word), text);
}

static bool read_name(struct view *line, struct bytes *word, bool *quoted, char **name,
		      struct error *err)
{
	if (!read_word(line, word, quoted, err))
		return false;
	if (!word->len || word->len > KILL_NAME_MAX)
		return error_set(err, ERROR_CONFIG, "a name must have 1 to %d bytes",
				 (int)KILL_NAME_MAX);
	for (size_t i = 0; i < word->len; i++)
		if (word->at[i] < ' ' || word->at[i] == 0x7f)
			return error_set(err, ERROR_CONFIG, "a name has a control character");
	if (!wire_utf8_slow(word->at, word->len))
		return error_set(err, ERROR_CONFIG, "a name is not valid UTF-8");
	*name = memory_text_of(word->at, word->len);
	return true;
}

static bool read_destination(struct view *line, struct bytes *word, struct kill_rule *rule,
			     struct error *err)
{
	bool quoted;
	rule->scope = KILL_DESTINATION;
	if (!read_name(line, word, &quoted, &rule->name, err))
		return false;
	if (quoted || !is_word(word, "*"))
		return true;
	rule->scope = KILL_ANY_DESTINATION;
	memory_free(rule->name);
	rule->name = NULL;
	return true;
}

static bool read_tenant(struct view *line, struct bytes *word, struct kill_rule *rule,
			struct error *err)
{
	bool quoted;
	struct view rest;
	rule->scope = KILL_TENANT;
	if (!read_name(line, word, &quoted, &rule->name, err))
		return false;
	rest = *line;
	if (!read_word(&rest, word, &quoted, err))
		return false;
	if (quoted || !is_word(word, "service"))
		return true;
	*line = rest;
	rule->scope = KILL_TENANT_SERVICE;
	return read_name(line, word, &quoted, &rule->service, err);
}

static bool read_subject(struct view *line, struct bytes *word, struct kill_rule *rule,
			 struct error *err)
{
	bool quoted;
	if (!read_word(line, word, &quoted, err))
		return false;
	if (is_word(word, "everything")) {
		rule->scope = KILL_EVERYTHING;
		return true;
	}
	if (is_word(word, "destination"))
		return read_destination(line, word, rule, err);
	if (is_word(word, "tenant"))
		return read_tenant(line, word, rule, err);
	rule->scope = KILL_SERVICE;
	if (is_word(word, "service"))
		return read_name(line, word, &quoted, &rule->name, err);
	return error_set(err, ERROR_CONFIG,
			 "`everything`, `tenant`, `service` or `destination` is missing");
}

/* The end of a line: nothing, or a note. */
static bool read_note(struct view *line, struct kill_rule *rule, struct error *err)
{
	skip_blanks(line);
	if (!line->len)
		return true;
	if (*line->at != '#')
		return error_set(err, ERROR_CONFIG, "unexpected words after the rule");
	skip(line, 1);
	skip_blanks(line);
	while (line->len && is_blank(line->at[line->len - 1]))
		line->len--;
	if (line->len && line->len <= KILL_NAME_MAX && wire_utf8_slow(line->at, line->len))
		rule->note = memory_text_of(line->at, line->len);
	return true;
}

ARRAY_TYPE(rule_list, struct kill_rule);

static bool read_line(struct rule_list *list, struct view line, struct bytes *word,
		      struct error *err)
{
	struct kill_rule rule = { 0 };
	bool quoted;
	if (!read_word(&line, word, &quoted, err))
		return false;
	if (!word->len && !quoted)
		return true;
	rule.allow = is_word(word, "allow");
	if (quoted || (!rule.allow && !is_word(word, "kill")))
		return error_set(err, ERROR_CONFIG, "a rule begins with `kill` or `allow`");
	if (list->count >= KILL_RULES_MAX)
		return error_set(err, ERROR_CONFIG, "more than %d rules", (int)KILL_RULES_MAX);
	if (read_subject(&line, word, &rule, err) && read_note(&line, &rule, err)) {
		array_push(list) = rule;
		return true;
	}
	rule_fini(&rule);
	return false;
}

static struct view cut_line(struct view *text)
{
	const uint8_t *end = text->len ? memchr(text->at, '\n', text->len) : NULL;
	struct view line = { text->at, end ? (size_t)(end - text->at) : text->len };
	skip(text, line.len + (end ? 1 : 0));
	if (line.len && line.at[line.len - 1] == '\r')
		line.len--;
	return line;
}

struct kill_rules *kill_rules_parse(struct view text, struct error *err)
{
	struct rule_list list = { 0 };
	struct kill_rules *rules = NULL;
	struct bytes word;
	uint32_t number = 0;
	bool ok = true;
	bytes_init(&word, text.len + 1);
	while (text.len && ok) {
		number++;
		ok = read_line(&list, cut_line(&text), &word, err);
	}
	if (ok)
		rules = make(list.at, list.count);
	else
		error_prefix(err, "line %u", number);
	for (uint32_t i = 0; !ok && i < list.count; i++)
		rule_fini(&list.at[i]);
	memory_free(list.at);
	bytes_fini(&word);
	return rules;
}

static void print_name(const char *name, struct bytes *out)
{
	if (name[strcspn(name, " \t#\"\\*")] == '\0') {
		bytes_add_text(out, name);
		return;
	}
	bytes_add_byte(out, '"');
	for (; *name; name++) {
		if (*name == '"' || *name == '\\')
			bytes_add_byte(out, '\\');
		bytes_add_byte(out, (uint8_t)*name);
	}
	bytes_add_byte(out, '"');
}

void kill_rule_print(const struct kill_rule *rule, struct bytes *out)
{
	static const char *const words[KILL_SCOPES] = {
		[KILL_EVERYTHING] = "everything",
		[KILL_TENANT] = "tenant ",
		[KILL_SERVICE] = "service ",
		[KILL_TENANT_SERVICE] = "tenant ",
		[KILL_ANY_DESTINATION] = "destination *",
		[KILL_DESTINATION] = "destination ",
	};
	bytes_add_text(out, rule->allow ? "allow " : "kill ");
	bytes_add_text(out, words[rule->scope]);
	if (rule->name)
		print_name(rule->name, out);
	if (rule->service) {
		bytes_add_text(out, " service ");
		print_name(rule->service, out);
	}
}
