/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/redaction_config.h"
#include "processors/roles.h"

/* The three sets of keys. In doubt a key is blocked, and it is neither allowed nor ignored. */
struct key_sets {
	struct key_rules_config allowed, ignored, blocked;
};

static struct key_sets key_sets(const struct redaction_config *config)
{
	return (struct key_sets){
		.allowed = { .everywhere = config->allowed_keys, .keys_name = "allowed_keys" },
		.ignored = { .everywhere = config->ignored_keys,
			     .keys_name = "ignored_keys",
			     .patterns = config->ignored_key_patterns,
			     .search = true,
			     .patterns_name = "ignored_key_patterns" },
		.blocked = { .patterns = config->blocked_key_patterns,
			     .search = true,
			     .doubt = true,
			     .patterns_name = "blocked_key_patterns" },
	};
}

static struct redaction_values_config values_config(const struct redaction_config *config)
{
	return (struct redaction_values_config){ .blocked = &config->blocked_values,
						 .allowed = &config->allowed_values,
						 .hash_function = config->hash_function,
						 .hmac_key = config->hmac_key.text };
}

static bool init_roles(struct redaction_rules *rules, const struct redaction_config *config,
		       struct error *err)
{
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	roles_read(&config->roles, ROLES_ALL, &rules->roles, "", &faults);
	return problems_end(&problems, err);
}

bool redaction_rules_init(struct redaction_rules *rules, const struct redaction_config *config,
			  struct error *err)
{
	const struct key_sets sets = key_sets(config);
	const struct redaction_values_config values = values_config(config);
	*rules = (struct redaction_rules){
		.allow_all_keys = config->allow_all_keys,
		.redact_all_types = config->redact_all_types,
		.structural = config->structural.index == REDACTION_STRUCTURAL_ALLOW,
		.summary = config->summary.index == REDACTION_INFO ||
			   config->summary.index == REDACTION_DEBUG,
	};
	return init_roles(rules, config, err) &&
	       key_rules_init(&rules->allowed, &sets.allowed, err) &&
	       key_rules_init(&rules->ignored, &sets.ignored, err) &&
	       key_rules_init(&rules->blocked, &sets.blocked, err) &&
	       redaction_values_init(&rules->values, &values, err);
}

void redaction_rules_fini(struct redaction_rules *rules)
{
	key_rules_fini(&rules->allowed);
	key_rules_fini(&rules->ignored);
	key_rules_fini(&rules->blocked);
	redaction_values_fini(&rules->values);
}

static void check_sanitizers(const struct redaction_config *config, struct faults *faults)
{
	bool stores = false;
	for (int i = 0; i < REDACTION_STORES; i++)
		stores |= config->db_sanitizer.stores[i].enabled;
	if (config->url_sanitizer.enabled)
		faults_add(faults,
			   "url_sanitizer: not supported; the detector `url_query` of the "
			   "processor `pii`, or a pattern in blocked_values, masks parts of "
			   "URLs");
	if (stores)
		faults_add(faults,
			   "db_sanitizer: not supported, because profiles have no attribute "
			   "db.system and no span names; use blocked_values");
}

static void check(const void *settings, struct faults *faults)
{
	const struct redaction_config *config = settings;
	const struct key_sets sets = key_sets(config);
	const struct redaction_values_config values = values_config(config);
	uint32_t roles;
	check_sanitizers(config, faults);
	roles_read(&config->roles, ROLES_ALL, &roles, "", faults);
	key_rules_check(&sets.ignored, faults);
	key_rules_check(&sets.blocked, faults);
	redaction_values_check(&values, faults);
}

#define SANITIZER_ROWS \
	CONFIG_ROW(struct redaction_sanitizer_config, enabled, .key = "enabled", .def = "false", \
		   .help = "`true` is an error."), \
		CONFIG_ROW(struct redaction_sanitizer_config, attributes, .key = "attributes", \
			   .inert = true, .help = "There is no sanitizer.")

static const struct config_row store_rows[] = { SANITIZER_ROWS, { 0 } };
static const struct config_table store_table = { sizeof(struct redaction_sanitizer_config),
						 store_rows, NULL, false };

static const struct config_row url_rows[] = {
	SANITIZER_ROWS,
	CONFIG_ROW(struct redaction_sanitizer_config, sanitize_span_name,
		   .key = "sanitize_span_name", .inert = true, .help = "Profiles have no spans."),
	{ 0 }
};
static const struct config_table url_table = { sizeof(struct redaction_sanitizer_config), url_rows,
					       NULL, false };

#define STORE(index, name) \
	CONFIG_SECTION(struct redaction_db_config, stores[index], store_table, .key = name, \
		       .help = "Not supported.")

static const struct config_row db_rows[] = {
	STORE(0, "sql"),
	STORE(1, "redis"),
	STORE(2, "valkey"),
	STORE(3, "memcached"),
	STORE(4, "mongo"),
	STORE(5, "opensearch"),
	STORE(6, "es"),
	CONFIG_ROW(struct redaction_db_config, sanitize_span_name, .key = "sanitize_span_name",
		   .inert = true, .help = "Profiles have no spans."),
	{ 0 }
};
static const struct config_table db_table = { sizeof(struct redaction_db_config), db_rows, NULL,
					      false };

static const char *const structural_choices[] = { "allow", "deny", NULL };
static const char *const summary_choices[] = { "silent", "info", "debug", "", NULL };

#define ROW(member, ...) CONFIG_ROW(struct redaction_config, member, .key = #member, __VA_ARGS__)

static const struct config_row rows[] = {
	ROW(allow_all_keys, .def = "false",
	    .help = "`true` permits every key, and every ID and entity reference. `allowed_keys` "
		    "then has no effect."),
	ROW(allowed_keys,
	    .help = "Keys that are permitted, at every site. Others are removed with their "
		    "values. An empty list permits none."),
	ROW(ignored_keys, .help = "Keys whose attributes pass as they are: the other keys of this "
				  "processor do not apply to them."),
	ROW(ignored_key_patterns, .help = "Regular expressions for ignored keys."),
	ROW(blocked_key_patterns,
	    .help = "Regular expressions. The whole value of a matching key is masked, unless "
		    "`allowed_values` matches it."),
	ROW(blocked_values, .help = "Regular expressions. What they match is masked: in values and "
				    "units of permitted attributes, and in every string of "
				    "`roles`."),
	ROW(allowed_values, .help = "Regular expressions. A string in which one of them matches is "
				    "not masked."),
	ROW(redact_all_types, .def = "false",
	    .help = "Also searches values that are not strings, in their spelling as strings "
		    "(bytes in base64). A value that is masked becomes a string."),
	ROW(hash_function,
	    .help = "What replaces a match: `md5`, `sha1`, `sha3` (SHA3-256), `hmac-sha256` or "
		    "`hmac-sha512`, in hex. Default: `****`. Short values can be guessed from a "
		    "hash without a key."),
	ROW(hmac_key, .help = "Key of `hmac-sha256` (at least 32 bytes) or `hmac-sha512` (at least "
			      "64 bytes)."),
	ROW(summary, .def = "silent", .choices = summary_choices,
	    .help = "`info` adds attributes with the number of removed, masked, allowed and "
		    "ignored attributes to resources, scopes and Profiles. `debug` does the same; "
		    "it does not add names of keys. `\"\"` means `silent`."),
	CONFIG_SECTION(struct redaction_config, url_sanitizer, url_table, .key = "url_sanitizer",
		       .help = "Not supported: an error if it is enabled."),
	CONFIG_SECTION(struct redaction_config, db_sanitizer, db_table, .key = "db_sanitizer",
		       .help = "Not supported: an error if one of its stores is enabled."),
	ROW(structural, .def = "allow", .choices = structural_choices,
	    .help = "`deny` also removes the structural attributes (see `allowlist`) whose keys "
		    "are not permitted. Not a key of the Collector."),
	ROW(roles, .help = "`blocked_values` and `allowed_values` apply only to strings of these "
			   "roles (see `pii`). Default: all roles. `[value]`: the values of "
			   "attributes, as in the Collector. Not a key of the Collector."),
	{ 0 }
};

const struct config_table redaction_config_table = { sizeof(struct redaction_config), rows, check,
						     false };
