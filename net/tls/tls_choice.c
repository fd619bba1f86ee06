/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_choice.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { TLS_1_2 = 0x0303, TLS_1_3 = 0x0304 };
enum { ECDHE_RSA = 1, ECDHE_ECDSA = 2 };
enum { AES_128_GCM = 1, AES_256_GCM = 2, CHACHA20_POLY1305 = 4, AES_128_CBC = 8, AES_256_CBC = 16 };
enum { AUTHENTICATED = AES_128_GCM | AES_256_GCM | CHACHA20_POLY1305 };

struct suite {
	const char *name, *openssl;
	unsigned exchange; /* 0: a suite of TLS 1.3 */
	unsigned cipher;
};

/* In the order in which they are offered by default. The default has no CBC suites (RFC 9113
 * appendix A). */
static const struct suite all_suites[] = {
	{ "TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", 0, AES_128_GCM },
	{ "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", 0, AES_256_GCM },
	{ "TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256", 0, CHACHA20_POLY1305 },
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256", ECDHE_ECDSA,
	  AES_128_GCM },
	{ "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", ECDHE_RSA,
	  AES_128_GCM },
	{ "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384", ECDHE_ECDSA,
	  AES_256_GCM },
	{ "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384", ECDHE_RSA,
	  AES_256_GCM },
	{ "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305",
	  ECDHE_ECDSA, CHACHA20_POLY1305 },
	{ "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", ECDHE_RSA,
	  CHACHA20_POLY1305 },
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA", ECDHE_ECDSA,
	  AES_128_CBC },
	{ "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA", ECDHE_RSA, AES_128_CBC },
	{ "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA", ECDHE_ECDSA,
	  AES_256_CBC },
	{ "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA", ECDHE_RSA, AES_256_CBC },
};

static const struct curve {
	const char *name, *openssl, *gnutls;
} all_curves[] = {
	{ "X25519", "X25519", "+GROUP-X25519" },
	{ "P256", "P-256", "+GROUP-SECP256R1" },
	{ "P384", "P-384", "+GROUP-SECP384R1" },
	{ "P521", "P-521", "+GROUP-SECP521R1" },
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The entries of the configuration, each once, in its order. */
struct chosen {
	bool tls_1_2, tls_1_3;
	const struct suite *suites[COUNT(all_suites)];
	const struct curve *curves[COUNT(all_curves)];
	size_t suite_count, curve_count;
	unsigned exchanges, ciphers, ciphers_1_3; /* of the suites */
};

static bool read_version(const char *key, const char *text, int *version, struct faults *faults)
{
	if (!text || !*text)
		return true;
	if (strcmp(text, "1.2") == 0 || strcmp(text, "1.3") == 0)
		return *version = text[2] == '2' ? TLS_1_2 : TLS_1_3, true;
	if (strcmp(text, "1.0") == 0 || strcmp(text, "1.1") == 0)
		return faults_add(faults,
				  "%s: TLS %s is not supported: the security level of the TLS "
				  "libraries excludes it; use \"1.2\" or \"1.3\"",
				  key, text);
	return faults_add(faults, "%s: unsupported TLS version; use \"1.2\" or \"1.3\"", key);
}

bool tls_choice_versions(const char *min_version, const char *max_version, bool *tls_1_2,
			 bool *tls_1_3, struct faults *faults)
{
	int min = TLS_1_2, max = TLS_1_3;
	bool ok = read_version("min_version", min_version, &min, faults);
	ok &= read_version("max_version", max_version, &max, faults);
	*tls_1_2 = min == TLS_1_2;
	*tls_1_3 = max == TLS_1_3;
	if (ok && min > max)
		return faults_relate(faults, "max_version",
				     "min_version cannot be greater than max_version");
	return ok;
}

static bool has_suite(const struct chosen *c, const struct suite *suite)
{
	for (size_t i = 0; i < c->suite_count; i++)
		if (c->suites[i] == suite)
			return true;
	return false;
}

static void add_suite(struct chosen *c, const struct suite *suite)
{
	if (has_suite(c, suite))
		return;
	c->suites[c->suite_count++] = suite;
	c->exchanges |= suite->exchange;
	c->ciphers |= suite->cipher;
	c->ciphers_1_3 |= suite->exchange ? 0 : suite->cipher;
}

static void read_suite(const char *name, size_t i, struct chosen *c, struct faults *faults)
{
	size_t at = 0;
	while (at < COUNT(all_suites) && strcmp(name, all_suites[at].name) != 0)
		at++;
	if (at < COUNT(all_suites))
		add_suite(c, &all_suites[at]);
	else
		faults_add(
			faults,
			"cipher_suites[%zu]: unknown or insecure; supported are "
			"TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, "
			"TLS_CHACHA20_POLY1305_SHA256 and "
			"TLS_ECDHE_{RSA,ECDSA}_WITH_{AES_128_GCM_SHA256,AES_256_GCM_SHA384,CHACHA20_POLY1305_SHA256,AES_128_CBC_SHA,AES_256_CBC_SHA}",
			i);
}

static void read_suites(const struct strings *names, struct chosen *c, struct faults *faults)
{
	for (size_t i = 0; i < names->count; i++)
		read_suite(names->at[i], i, c, faults);
	if (!c->suite_count || c->exchanges || !c->tls_1_2)
		return;
	c->tls_1_2 = false;
	if (!c->tls_1_3)
		faults_relate(faults, "max_version",
			      "cipher_suites: none of the suites belongs to TLS 1.2, but "
			      "max_version is \"1.2\"");
}

static void add_curve(struct chosen *c, const struct curve *curve)
{
	for (size_t i = 0; i < c->curve_count; i++)
		if (c->curves[i] == curve)
			return;
	c->curves[c->curve_count++] = curve;
}

static void read_curves(const struct strings *names, struct chosen *c, struct faults *faults)
{
	for (size_t i = 0; i < names->count; i++) {
		size_t at = 0;
		while (at < COUNT(all_curves) && strcmp(names->at[i], all_curves[at].name) != 0)
			at++;
		if (at < COUNT(all_curves))
			add_curve(c, &all_curves[at]);
		else
			faults_add(faults,
				   "curve_preferences[%zu]: not supported; use X25519, P256, P384 "
				   "or P521",
				   i);
	}
}

static void read_all(const struct tls_server_config *config, struct chosen *c,
		     struct faults *faults)
{
	*c = (struct chosen){ 0 };
	tls_choice_versions(config->min_version, config->max_version, &c->tls_1_2, &c->tls_1_3,
			    faults);
	read_suites(&config->cipher_suites, c, faults);
	read_curves(&config->curve_preferences, c, faults);
}

void tls_choice_check(const struct tls_server_config *config, struct faults *faults)
{
	struct chosen c;
	read_all(config, &c, faults);
}

static bool choose(const struct tls_server_config *config, struct chosen *c, struct error *err)
{
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	read_all(config, c, &faults);
	return problems_end(&problems, err);
}

static void choose_defaults(struct chosen *c)
{
	bool suites = !c->suite_count, curves = !c->curve_count;
	for (size_t i = 0; suites && i < COUNT(all_suites); i++)
		if (all_suites[i].exchange && (all_suites[i].cipher & AUTHENTICATED))
			add_suite(c, &all_suites[i]);
	for (size_t i = 0; curves && i < COUNT(all_curves); i++)
		add_curve(c, &all_curves[i]);
}

static void join(char *list, size_t room, const char *name)
{
	size_t len = strlen(list);
	snprintf(list + len, room - len, "%s%s", len ? ":" : "", name);
}

bool tls_choice_openssl(const struct tls_server_config *config, struct tls_choice *out,
			struct error *err)
{
	struct chosen c;
	if (!choose(config, &c, err))
		return false;
	*out = (struct tls_choice){ .min_version = c.tls_1_2 ? TLS_1_2 : TLS_1_3,
				    .max_version = c.tls_1_3 ? TLS_1_3 : TLS_1_2,
				    .ordered = c.suite_count || c.curve_count };
	choose_defaults(&c);
	for (size_t i = 0; i < c.suite_count; i++)
		if (c.suites[i]->exchange)
			join(out->ciphers, sizeof out->ciphers, c.suites[i]->openssl);
		else
			join(out->suites, sizeof out->suites, c.suites[i]->openssl);
	for (size_t i = 0; i < c.curve_count; i++)
		join(out->groups, sizeof out->groups, c.curves[i]->openssl);
	return true;
}

/* Would GnuTLS offer it, given the chosen ciphers, key exchanges and versions? */
static bool implied(const struct chosen *c, const struct suite *suite)
{
	return (suite->cipher & c->ciphers) &&
	       (suite->exchange ? c->tls_1_2 && (suite->exchange & c->exchanges)
				: c->tls_1_3 && c->ciphers_1_3);
}

static bool check_product(const struct chosen *c, struct error *err)
{
	if (c->suite_count && c->tls_1_3 && !(c->ciphers & AUTHENTICATED))
		return error_set(err, ERROR_CONFIG,
				 "cipher_suites: HTTP servers need a cipher for TLS 1.3: add a "
				 "suite with GCM or CHACHA20_POLY1305, or set max_version to "
				 "\"1.2\"");
	for (size_t i = 0; i < COUNT(all_suites); i++)
		if (implied(c, &all_suites[i]) && !has_suite(c, &all_suites[i]))
			return error_set(err, ERROR_CONFIG,
					 "cipher_suites: HTTP servers cannot select ciphers and "
					 "key exchanges in pairs: these suites would also "
					 "enable %s; add it or remove suites",
					 all_suites[i].name);
	return true;
}

static void join_suites(char *list, size_t room, const struct chosen *c)
{
	static const struct {
		unsigned bit;
		const char *name;
	} ciphers[] = {
		{ AES_128_GCM, "+AES-128-GCM" },
		{ AES_256_GCM, "+AES-256-GCM" },
		{ CHACHA20_POLY1305, "+CHACHA20-POLY1305" },
		{ AES_128_CBC, "+AES-128-CBC" },
		{ AES_256_CBC, "+AES-256-CBC" },
	};
	join(list, room, "-MAC-ALL:+AEAD:+SHA1:-CIPHER-ALL");
	for (size_t i = 0; i < COUNT(ciphers); i++)
		if (c->ciphers & ciphers[i].bit)
			join(list, room, ciphers[i].name);
	if (!c->exchanges)
		return;
	join(list, room, "-KX-ALL");
	if (c->exchanges & ECDHE_ECDSA)
		join(list, room, "+ECDHE-ECDSA");
	if (c->exchanges & ECDHE_RSA)
		join(list, room, "+ECDHE-RSA");
}

static void join_curves(char *list, size_t room, const struct chosen *c)
{
	join(list, room, "-GROUP-ALL");
	for (size_t i = 0; i < c->curve_count; i++)
		join(list, room, c->curves[i]->gnutls);
}

char *tls_choice_gnutls(const struct tls_server_config *config, struct error *err)
{
	struct chosen c;
	char list[512] = "NORMAL:-VERS-ALL";
	if (!choose(config, &c, err) || !check_product(&c, err))
		return NULL;
	if (c.tls_1_3)
		join(list, sizeof list, "+VERS-TLS1.3");
	if (c.tls_1_2)
		join(list, sizeof list, "+VERS-TLS1.2");
	if (c.suite_count)
		join_suites(list, sizeof list, &c);
	if (c.curve_count)
		join_curves(list, sizeof list, &c);
	if (c.suite_count || c.curve_count)
		join(list, sizeof list, "%SERVER_PRECEDENCE");
	return memory_text(list);
}
