/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "pipeline/component.h"
#include "processors/pii_config.h"
#include "processors/pii_page.h"
#include "processors/structural.h"
#include "processors/value.h"

#include <math.h>
#include <stdio.h>

/*
 * Masks personal data and secrets in texts. A text is scanned once per request and class of roles
 * (memo), and once per worker as long as its verdict is remembered (pii_scan.h). The dictionary is
 * walked by its records, so what no record names is not looked at: it does not leave.
 */
struct pii {
	struct pii_engine engine;
	const struct pii_config *config;
	const struct host *host;
	/* Made at the first hit; the registry returns the same series to every thread. */
	_Atomic(struct metric_series *) masked[PII_DETECTORS_MAX][ROLE_COUNT];
};

struct scratch {
	struct value_memo memo;
	struct pii_scratch scan;
};

static const struct metric masked_metric = {
	"otelcol_processor_pii_masked_strings", METRIC_COUNTER, "{strings}",
	"Strings in which a detector found a match, by detector and role. A string counts once "
	"per request; in attributes, once per site."
};
static const struct metric *const metrics[] = { &masked_metric, NULL };

static const char *detector_name(const struct pii *self, int detector)
{
	return detector < PII_PATTERNS ? pii_detectors[detector].name
				       : self->config->patterns.names[detector - PII_PATTERNS];
}

/* One request. */
struct pass {
	struct pii *self;
	struct scratch *scratch;
	struct profiles *p;
	enum site site;
	unsigned class; /* of the site's role */
	bool numbers;   /* does the key of the attribute permit that numbers are scanned? */
};

static void count_hit(struct pii *self, int detector, enum site_role role)
{
	struct metric_series *series = atomic_load(&self->masked[detector][role]);
	if (!series) {
		const struct metric_label labels[] = {
			{ "processor", self->host->id },
			{ "detector", detector_name(self, detector) },
			{ "role", site_role_names[role] },
			{ 0 },
		};
		series = metrics_series(self->host->metrics, &masked_metric, labels);
		atomic_store(&self->masked[detector][role], series);
	}
	metric_add(series, 1);
}

static void note(struct pass *pass, int detector, struct view key)
{
	struct audit *audit = pass->p->audit;
	const char *name = detector_name(pass->self, detector);
	char what[80];
	if (!audit)
		return;
	snprintf(what, sizeof what, "pii: %s", name);
	audit->note(audit, pass->site, what, key,
		    (struct audit_rule){ .row = detector < PII_PATTERNS ? "detectors" : "patterns",
					 .name = name });
}

static void tell(struct pass *pass, enum site_role role, uint64_t hits, struct view key)
{
	for (int i = 0; hits >> i; i++) {
		if (!(hits >> i & 1))
			continue;
		count_hit(pass->self, i, role);
		note(pass, i, key);
	}
}

static struct pii_verdict scan(struct pass *pass, enum site_role role, struct view text,
			       struct view key)
{
	const struct pii_engine *engine = &pass->self->engine;
	struct pii_verdict verdict = { .outcome = PII_CLEAN };
	if (text.len && engine->active[engine->class_of[role]])
		verdict = pii_scan(engine, &pass->scratch->scan, role, text);
	if (verdict.outcome != PII_CLEAN)
		tell(pass, role, verdict.hits, key);
	return verdict;
}

/* The string that stands for this one: itself, a masked one, or "" for a dropped one. */
static uint32_t scrub_string(struct pass *pass, enum site_role role, uint32_t string,
			     struct view key)
{
	struct pii_verdict verdict = scan(pass, role, string_view(pass->p, string), key);
	if (verdict.outcome == PII_CLEAN)
		return string;
	return verdict.outcome == PII_DROPPED
		       ? 0
		       : profiles_text_new(pass->p, verdict.text.at, verdict.text.len);
}

static __attribute__((noinline)) void scrub_doubtful(struct pass *pass, uint32_t *string,
						     uint8_t *changed)
{
	uint32_t fresh = 0, *memo = value_memo_at(&pass->scratch->memo, *string, &fresh);
	if (!*memo)
		*memo = scrub_string(pass, sites[pass->site].role, *string, view_of("")) + 1;
	uint32_t stays = *memo - 1;
	if (stays != *string)
		*changed = 1;
	*string = stays;
}

static void scrub_text(struct profiles *p, uint32_t *string, uint8_t *changed, void *context)
{
	struct pass *pass = context;
	struct scratch *scratch = pass->scratch;
	uint32_t text = *string;
	if (text < scratch->memo.count && !scratch->memo.at[text]) {
		struct hash128 key = pii_key(pass->class, string_view(p, text));
		p->strings.at[text].hash = (uint32_t)key.low;
		if (pii_known_clean(&scratch->scan, key)) {
			scratch->memo.at[text] = text + 1;
			return;
		}
	}
	scrub_doubtful(pass, string, changed);
}

/* Class by class, for one text may mean different things as a file and as a unit. */
static void scrub_texts(struct pass *pass)
{
	const struct pii_engine *engine = &pass->self->engine;
	for (unsigned class = 0; class < ROLE_COUNT; class ++) {
		if (!engine->active[class])
			continue;
		pass->class = class;
		struct value_memo *memo = &pass->scratch->memo;
		value_memo_clear(memo, pass->p->strings.count);
		struct sites_settled settled = { memo->at, memo->count };
		for (enum site site = SITE_SCOPE_NAME; site < SITE_COUNT; site++) {
			pass->site = site;
			if (engine->class_of[sites[site].role] == class)
				sites_each_text(pass->p, site, settled, scrub_text, pass);
		}
	}
}

enum { DIGITS_ROOM = 24 }; /* of an int64, and a NUL */

/* Numbers are data, unless the operator names their key. */
static bool is_number_key(const struct pass *pass, const struct attribute *a)
{
	const struct strings *keys = &pass->self->config->number_keys;
	struct view key = string_view(pass->p, a->key);
	for (size_t i = 0; i < keys->count; i++)
		if (view_is(key, keys->at[i]))
			return true;
	return false;
}

/* A whole number is scanned as its digits. */
static bool digits_of(const struct attribute *a, char room[DIGITS_ROOM], struct view *out)
{
	double number = attribute_number(a);
	long long integer = attribute_integer(a);
	if (a->type == VALUE_DOUBLE) {
		if (!(fabs(number) < 0x1p63) || number != trunc(number))
			return false;
		integer = (long long)number;
	} else if (a->type != VALUE_INT) {
		return false;
	}
	*out = (struct view){ (uint8_t *)room,
			      (size_t)snprintf(room, DIGITS_ROOM, "%lld", integer) };
	return true;
}

static void replace_value(struct profiles *p, struct attribute *a, struct view text)
{
	if (a->type == VALUE_BYTES) {
		a->bytes = profiles_bytes_new(p, text.at, text.len);
	} else {
		a->type = VALUE_STRING;
		a->string = profiles_text_new(p, text.at, text.len);
	}
}

static enum value_change scrub_value(struct pass *pass, struct attribute *a)
{
	char room[DIGITS_ROOM];
	struct view text;
	if (a->type == VALUE_STRING)
		text = string_view(pass->p, a->string);
	else if (a->type == VALUE_BYTES)
		text = span_view(pass->p, a->bytes);
	else if (!(pass->numbers || is_number_key(pass, a)) || !digits_of(a, room, &text))
		return VALUE_SAME;
	struct pii_verdict verdict = scan(pass, ROLE_VALUE, text, string_view(pass->p, a->key));
	if (verdict.outcome == PII_CLEAN)
		return VALUE_SAME;
	if (verdict.outcome == PII_DROPPED)
		return VALUE_REMOVED;
	replace_value(pass->p, a, verdict.text);
	a->changed = 1;
	return VALUE_CHANGED;
}

static enum value_change scrub_nested(void *context, bool keyed, struct attribute *child)
{
	(void)keyed;
	return scrub_value(context, child);
}

/* The attribute that stands for this one; 0: none. */
static uint32_t scrub_attribute(struct pass *pass, uint32_t index)
{
	struct profiles *p = pass->p;
	struct attribute a = p->attributes.at[index];
	pass->numbers = is_number_key(pass, &a);
	enum value_change change =
		structural_is_id(p, pass->site, &a) ? VALUE_SAME : scrub_value(pass, &a);
	if (change == VALUE_REMOVED)
		return 0;
	uint32_t unit = scrub_string(pass, ROLE_UNIT, a.unit, string_view(p, a.key));
	if (unit != a.unit) {
		a.unit = unit;
		change = VALUE_CHANGED;
	}
	if (value_is_nested(&a)) {
		struct list inner = value_rewrite(p, &a, scrub_nested, pass);
		if (inner.first != a.children.first || inner.count != a.children.count)
			change = VALUE_CHANGED;
		a.children = inner;
	}
	if (change == VALUE_SAME)
		return index;
	a.changed = 1;
	return profiles_attribute_new(p, a);
}

static void scrub_list(struct profiles *p, struct list *list, uint8_t *changed, void *context)
{
	struct pass *pass = context;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		uint32_t index = p->indices.at[list->first + i], fresh = 0;
		uint32_t *memo = value_memo_at(&pass->scratch->memo, index, &fresh);
		if (!*memo)
			*memo = scrub_attribute(pass, index) + 1;
		uint32_t stays = *memo - 1;
		if (stays != index)
			*changed = 1;
		if (stays)
			p->indices.at[list->first + kept++] = stays;
	}
	list->count = kept;
}

static bool pii_process(void *instance, void *worker, struct profiles *p, struct error *err)
{
	struct scratch *scratch = worker;
	struct pass pass = { .self = instance, .scratch = scratch, .p = p };
	scrub_texts(&pass);
	for (pass.site = SITE_RESOURCE; pass.site <= SITE_MAPPING; pass.site++) {
		value_memo_clear(&scratch->memo, p->attributes.count);
		sites_each_list(p, pass.site, scrub_list, &pass);
	}
	value_memo_trim(&scratch->memo);
	return !p->over_cap || profiles_over_cap(p, err);
}

static void pii_scratch_destroy(void *instance, void *worker)
{
	(void)instance;
	struct scratch *scratch = worker;
	value_memo_fini(&scratch->memo);
	pii_scratch_fini(&scratch->scan);
}

static bool pii_create(void *instance, const void *settings, const struct host *host,
		       struct error *err)
{
	struct pii *self = instance;
	self->config = settings;
	self->host = host;
	return pii_config_engine(self->config, &self->engine, err);
}

static void pii_destroy(void *instance)
{
	pii_engine_fini(&((struct pii *)instance)->engine);
}

static void pii_describe(struct bytes *out)
{
	bytes_add_text(out, "| role | sites |\n|---|---|\n| `value` | attribute values, nested "
			    "ones included |\n| `unit` | units of attributes |\n");
	for (enum site_role role = ROLE_SCOPE; role < ROLE_COUNT; role++) {
		bytes_format(out, "| `%s` |", site_role_names[role]);
		for (enum site site = SITE_SCOPE_NAME; site < SITE_COUNT; site++)
			if (sites[site].role == role)
				bytes_format(out, " `%s`", sites[site].name);
		bytes_add_text(out, " |\n");
	}
}

static const struct processor_ops pii_ops = {
	.scratch_size = sizeof(struct scratch),
	.process = pii_process,
	.scratch_fini = pii_scratch_destroy,
};

const struct component_factory pii_processor = {
	.type = "pii",
	.help = "Masks, hashes or drops personal data and secrets in strings.",
	.manual = "`pii: {}` runs every detector that is on by default with the action `mask` on "
		  "every string site without keys and on every attribute value and unit. Keys are "
		  "left to the allow-list. [The policy's detectors](../POLICY.md) lists what each "
		  "of them matches and leaves alone, with examples.\n\n"
		  "`mask` replaces a match with `****` (with `*` in paths). `hash` replaces it "
		  "with `hash_` and 16 hex digits of its HMAC-SHA256, so that equal inputs give "
		  "equal tokens. `drop` removes the whole attribute (inside an array or map: the "
		  "element), and empties any other string. Where matches overlap, `drop` takes "
		  "precedence over `mask`, and `mask` over `hash`.\n\n"
		  "Numbers are not scanned, except below `number_keys`. IDs are not scanned: build "
		  "IDs of mappings that are structural for `allowlist`, and the attributes "
		  "`trace_id` and `span_id` of 16 and 8 bytes in hex. A value of decimal digits "
		  "only is not treated as an ID, because card numbers also have 16 digits.\n\n"
		  "A string is replaced as a whole (`too_long`) if it is larger than 8 KiB and "
		  "could contain a match, if it has more than 512 matches, if the search for one "
		  "of your patterns exceeds its limit, or if it is so dense with what looks like "
		  "a match that the search would take several times as long as in other strings. "
		  "The effort is counted, not timed, so a string always has the same result.",
	.kind = COMPONENT_PROCESSOR,
	.processor = &pii_ops,
	.size = sizeof(struct pii),
	.config = &pii_config_table,
	.metrics = metrics,
	.create = pii_create,
	.destroy = pii_destroy,
	.describe = pii_describe,
	.page = pii_page,
};
