/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_config.h"
#include "processors/roles.h"

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

static bool set_action(const struct pii_defaults *defaults, struct pii_engine *engine, int detector,
		       const struct choice *own, const struct strings *role_names,
		       struct error *err)
{
	uint32_t roles = 0;
	uint8_t action = action_of[own->index ? own->index - 1 : defaults->action.index];
	if (!roles_read(role_names, defaults->roles, &roles, err))
		return false;
	if (action == PII_HASH && !defaults->has_key)
		return error_set(err, ERROR_CONFIG,
				 "action hash requires an hmac_key of at least %d bytes",
				 PII_KEY_MIN);
	for (int role = ROLE_KEY + 1; role < ROLE_COUNT; role++)
		if (roles >> role & 1)
			engine->actions[role][detector] = action;
	return true;
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

static bool set_patterns(const struct pii_config *config, const struct pii_defaults *defaults,
			 struct pii_engine *engine, char *patterns[PATTERNS_MAX], struct error *err)
{
	const struct pii_pattern_config *items = config->patterns.at;
	if (config->patterns.count > PATTERNS_MAX)
		return error_set(err, ERROR_CONFIG, "patterns: more than %d are not supported",
				 PATTERNS_MAX);
	for (size_t i = 0; i < config->patterns.count; i++) {
		patterns[i] = items[i].pattern;
		if (!set_action(defaults, engine, (int)(PII_PATTERNS + i), &items[i].action,
				&items[i].roles, err) ||
		    (!regex_check_cost(patterns[i], REGEX_NOT_EMPTY, err) &&
		     !error_prefix(err, "pattern")))
			return error_prefix(err, "patterns[%zu]", i);
	}
	return true;
}

bool pii_config_engine(const struct pii_config *config, struct pii_engine *engine,
		       struct error *err)
{
	char *patterns[PATTERNS_MAX];
	struct pii_defaults defaults = { config->action, 0, config->hmac_key.text };
	*engine = (struct pii_engine){ 0 };
	if (action_of[config->action.index] == PII_HASH && !defaults.has_key)
		return error_set(err, ERROR_CONFIG,
				 "action: hash requires an hmac_key of at least %d bytes",
				 PII_KEY_MIN);
	if (!roles_read(&config->roles, ROLES_ALL, &defaults.roles, err))
		return false;
	if (config->hmac_key.text) {
		struct view key = view_of(config->hmac_key.text);
		if (key.len < PII_KEY_MIN)
			return error_set(err, ERROR_CONFIG, "hmac_key must have at least %d bytes",
					 PII_KEY_MIN);
		digest_key_init(&engine->hmac, key);
	}
	for (int i = 0; i < PII_BUILT_IN; i++) {
		const struct pii_detector_config *detector = &config->detectors.at[i];
		if (detector->optional.enabled &&
		    !set_action(&defaults, engine, i, &detector->action, &detector->roles, err))
			return error_prefix(err, "detectors::%s", pii_detector_names[i]);
	}
	if (!set_patterns(config, &defaults, engine, patterns, err))
		return false;
	if (config->normalize_paths)
		normalize(engine);
	return pii_engine_init(engine, patterns, config->patterns.count, err);
}

static bool check(const void *settings, struct error *err)
{
	struct pii_engine engine;
	bool ok = pii_config_engine(settings, &engine, err);
	pii_engine_fini(&engine);
	return ok;
}

static const struct config_row detector_rows[] = {
	CONFIG_ROW(struct pii_detector_config, action, .key = "action", .def = "default",
		   .choices = own_actions, .help = "`default` is the processor's `action`."),
	CONFIG_ROW(struct pii_detector_config, roles, .key = "roles",
		   .help = "Only strings of these roles are scanned. Default: the "
			   "processor's `roles`."),
	{ 0 }
};
static const struct config_table detector_table = { sizeof(struct pii_detector_config),
						    detector_rows, NULL, true };

#define DETECTOR(detector, name, presence_, help_) \
	CONFIG_SECTION(struct pii_detectors_config, at[detector], detector_table, .key = name, \
		       .presence = presence_, .help = help_)

static const struct config_row detectors_rows[] = {
	DETECTOR(PII_EMAIL, "email", PRESENCE_SOME,
		 "Email addresses, but not module versions (`a@v1.2`) or systemd units."),
	DETECTOR(PII_IPV4, "ipv4", PRESENCE_SOME,
		 "IPv4 addresses. Four-part version numbers (`1.2.3.4`) look the same and are "
		 "masked too; if you have such versions, set `enabled: false`."),
	DETECTOR(PII_IPV6, "ipv6", PRESENCE_SOME,
		 "IPv6 addresses, in full form or, for assigned ranges, in shortened form; not "
		 "C++ names."),
	DETECTOR(PII_JWT, "jwt", PRESENCE_SOME,
		 "JSON Web Tokens. The first part must decode to a header."),
	DETECTOR(PII_ACCESS_KEY, "access_key", PRESENCE_SOME,
		 "Keys of AWS, Google, Azure, GitHub, GitLab, Slack, Stripe, npm, SendGrid, "
		 "OpenAI and Anthropic, by prefix and length; private keys in PEM."),
	DETECTOR(PII_CARD, "card", PRESENCE_SOME,
		 "Payment card numbers, checked by issuer range, length and Luhn digit."),
	DETECTOR(PII_SSN, "ssn", PRESENCE_SOME,
		 "US social security numbers with dashes, in the ranges that are issued."),
	DETECTOR(PII_PHONE, "phone", PRESENCE_SOME,
		 "Phone numbers: international with `+`, North American with separators."),
	DETECTOR(PII_PAN, "pan", PRESENCE_SOME, "Indian Permanent Account Numbers."),
	DETECTOR(PII_AADHAAR, "aadhaar", PRESENCE_SOME,
		 "Indian Aadhaar numbers, checked by their Verhoeff digit."),
	DETECTOR(PII_UUID, "uuid", PRESENCE_DEFAULT,
		 "UUIDs. Disabled unless this key is "
		 "present."),
	DETECTOR(PII_BEARER, "bearer", PRESENCE_SOME, "The token after `Bearer`."),
	DETECTOR(PII_HOME_DIRECTORY, "home_directory", PRESENCE_SOME,
		 "The user name in the path of a home directory."),
	DETECTOR(PII_URL_QUERY, "url_query", PRESENCE_SOME,
		 "The query after the `?` of a URL, or of any string with `?name=value`."),
	{ 0 }
};
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
	CONFIG_SECTION(struct pii_config, detectors, detectors_table, .key = "detectors",
		       .help = "Settings of the built-in detectors. `enabled: false` disables "
			       "a detector."),
	CONFIG_ITEMS(struct pii_config, patterns, CONFIG_MAP, pattern_table, .key = "patterns",
		     .help = "Custom patterns by name, at most 32."),
	{ 0 }
};

const struct config_table pii_config_table = { sizeof(struct pii_config), rows, check, false };
