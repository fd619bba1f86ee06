/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_config.h"
#include "processors/roles.h"

#include <stdio.h>
#include <string.h>

#define PATTERNS_MAX (PII_DETECTORS_MAX - PII_PATTERNS)

static const uint8_t action_of[] = { PII_MASK, PII_HASH, PII_DROP };
static const char *const actions[] = { "mask", "hash", "drop", NULL };
/* Of a detector: the first is the processor's own. */
static const char *const own_actions[] = { "default", "mask", "hash", "drop", NULL };

/* What the processor says for all its detectors. */
struct pii_defaults {
	struct choice action;
	uint32_t roles;
	bool has_key;
};

/* Where a detector searches by default: in the processor's roles, of its own if it has any. */
static uint32_t default_roles(const struct pii_defaults *defaults, int detector)
{
	uint32_t own = detector < PII_PATTERNS ? pii_detectors[detector].roles : 0;
	return own ? defaults->roles & own : defaults->roles;
}

/* at: where the action stands, with ": " at the end. */
static void set_action(const struct pii_defaults *defaults, struct pii_engine *engine, int detector,
		       const struct choice *own, const struct strings *role_names, const char *at,
		       struct faults *faults)
{
	uint32_t roles = 0;
	uint8_t action = action_of[own->index ? own->index - 1 : defaults->action.index];
	roles_read(role_names, default_roles(defaults, detector), &roles, at, faults);
	if (own->index && action == PII_HASH && !defaults->has_key)
		faults_relate(faults, "hmac_key",
			      "%saction hash requires an hmac_key of at least %d bytes", at,
			      PII_KEY_MIN);
	for (int role = ROLE_KEY + 1; role < ROLE_COUNT; role++)
		if (roles >> role & 1)
			engine->actions[role][detector] = action;
}

/* Paths are normalised whatever the detectors do: only a drop goes before. */
static void normalize(struct pii_engine *engine)
{
	static const enum site_role paths[] = { ROLE_FUNCTION, ROLE_FILE, ROLE_MAPPING };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		uint8_t *of_role = engine->actions[paths[i]];
		of_role[PII_WORKSPACE] = PII_MASK;
		if (of_role[PII_HOME_DIRECTORY] != PII_DROP)
			of_role[PII_HOME_DIRECTORY] = PII_MASK;
	}
}

enum { AT_TEXT = 64 };

static void set_pattern(const struct pii_config *config, size_t i,
			const struct pii_defaults *defaults, struct pii_engine *engine,
			struct faults *faults)
{
	const struct pii_pattern_config *item =
		(const struct pii_pattern_config *)config->patterns.at + i;
	char at[AT_TEXT];
	struct error why;
	snprintf(at, sizeof at, "patterns[%zu]: ", i);
	set_action(defaults, engine, (int)(PII_PATTERNS + i), &item->action, &item->roles, at,
		   faults);
	if (item->pattern && !regex_check_cost(item->pattern, REGEX_NOT_EMPTY, &why))
		faults_add(faults, "%spattern: %s", at, why.text);
}

static void set_detector(const struct pii_config *config, int i,
			 const struct pii_defaults *defaults, struct pii_engine *engine,
			 struct faults *faults)
{
	const struct pii_detector_config *detector = &config->detectors.at[i];
	char at[AT_TEXT];
	snprintf(at, sizeof at, "detectors::%s: ", pii_detectors[i].name);
	if (detector->optional.enabled)
		set_action(defaults, engine, i, &detector->action, &detector->roles, at, faults);
}

static void set_key(const struct pii_config *config, struct pii_engine *engine,
		    struct faults *faults)
{
	const char *key = config->hmac_key.text;
	if (action_of[config->action.index] == PII_HASH && !key)
		faults_relate(faults, "hmac_key",
			      "action: hash requires an hmac_key of at least %d bytes",
			      PII_KEY_MIN);
	if (key && strlen(key) < PII_KEY_MIN)
		faults_add(faults, "hmac_key must have at least %d bytes", PII_KEY_MIN);
	if (key)
		digest_key_init(&engine->hmac, view_of(key));
}

/* All but the custom patterns. */
static void prepare(const struct pii_config *config, struct pii_engine *engine,
		    struct faults *faults)
{
	struct pii_defaults defaults = { config->action, 0, config->hmac_key.text };
	*engine = (struct pii_engine){ 0 };
	set_key(config, engine, faults);
	roles_read(&config->roles, ROLES_ALL, &defaults.roles, "", faults);
	for (int i = 0; i < PII_BUILT_IN; i++)
		set_detector(config, i, &defaults, engine, faults);
	if (config->patterns.count > PATTERNS_MAX)
		faults_add(faults, "patterns: more than %d are not supported", PATTERNS_MAX);
	for (size_t i = 0; i < config->patterns.count && i < PATTERNS_MAX; i++)
		set_pattern(config, i, &defaults, engine, faults);
	if (config->normalize_paths)
		normalize(engine);
}

bool pii_config_engine(const struct pii_config *config, struct pii_engine *engine,
		       struct error *err)
{
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	const struct pii_pattern_config *items = config->patterns.at;
	char *patterns[PATTERNS_MAX];
	prepare(config, engine, &faults);
	bool ok = problems_end(&problems, err);
	for (size_t i = 0; ok && i < config->patterns.count; i++)
		patterns[i] = items[i].pattern;
	return ok && pii_engine_init(engine, patterns, config->patterns.count, err);
}

static void check(const void *settings, struct faults *faults)
{
	struct pii_engine engine;
	prepare(settings, &engine, faults);
	pii_engine_fini(&engine);
}

static const struct config_row detector_rows[] = {
	CONFIG_ROW(struct pii_detector_config, action, .key = "action", .def = "default",
		   .choices = own_actions, .help = "`default` is the processor's `action`."),
	CONFIG_ROW(struct pii_detector_config, roles, .key = "roles",
		   .help = "Only strings of these roles are scanned. Default: the "
			   "processor's `roles`, and of these the detector's own, if it has any."),
	{ 0 }
};
static const struct config_table detector_table = { sizeof(struct pii_detector_config),
						    detector_rows, NULL, true };

/* clang-format off */
#define PII_DETECTOR(detector, name, on_, roles_, matches_, leaves_, ...) \
	CONFIG_SECTION(struct pii_detectors_config, at[PII_##detector], detector_table, .key = name, \
		       .presence = on_ ? PRESENCE_SOME : PRESENCE_DEFAULT, \
		       .help = matches_ " Not matched: " leaves_),
/* clang-format on */
#define PII_PART(...)

static const struct config_row detectors_rows[] = {
#include "processors/pii_table.h"
	{ 0 }
};

#undef PII_DETECTOR
#undef PII_PART

static const struct config_table detectors_table = { sizeof(struct pii_detectors_config),
						     detectors_rows, NULL, false };

static const struct config_row pattern_rows[] = {
	CONFIG_ROW(struct pii_pattern_config, pattern, .key = "pattern", .required = true,
		   .help = "A regular expression (PCRE2). An expression that a hostile string "
			   "could make expensive is an error."),
	CONFIG_ROW(struct pii_pattern_config, action, .key = "action", .def = "default",
		   .choices = own_actions, .help = "`default` is the processor's `action`."),
	CONFIG_ROW(struct pii_pattern_config, roles, .key = "roles",
		   .help = "Only strings of these roles are scanned. Default: the "
			   "processor's `roles`."),
	{ 0 }
};
static const struct config_table pattern_table = { sizeof(struct pii_pattern_config), pattern_rows,
						   NULL, false };

static const struct config_row rows[] = {
	CONFIG_ROW(struct pii_config, action, .key = "action", .def = "mask", .choices = actions,
		   .help = "What to do with a match: `mask`, `hash` or `drop`."),
	CONFIG_ROW(struct pii_config, hmac_key, .key = "hmac_key",
		   .help = "Key for `hash`, at least 32 bytes. Gateways with the same key "
			   "produce the same tokens."),
	CONFIG_ROW(struct pii_config, roles, .key = "roles",
		   .help = "Only strings of these roles are scanned. Default: all roles."),
	CONFIG_ROW(struct pii_config, normalize_paths, .key = "normalize_paths", .def = "true",
		   .help = "In function names, files and mappings, replaces user names in home "
			   "directories and the projects and IDs of build workspaces with `*`, "
			   "regardless of `roles` and `home_directory`."),
	CONFIG_ROW(struct pii_config, number_keys, .key = "number_keys",
		   .help = "Keys of attributes whose whole numbers are scanned as their decimal "
			   "digits, in nested values too. A number that matches becomes a string. "
			   "Default: none."),
	CONFIG_SECTION(struct pii_config, detectors, detectors_table, .key = "detectors",
		       .help = "Settings of the built-in detectors. `enabled: false` disables "
			       "a detector."),
	CONFIG_ITEMS(struct pii_config, patterns, CONFIG_MAP, pattern_table, .key = "patterns",
		     .help = "Custom patterns by name, at most 32."),
	{ 0 }
};

const struct config_table pii_config_table = { sizeof(struct pii_config), rows, check, false };
