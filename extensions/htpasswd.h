/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXTENSIONS_HTPASSWD_H
#define EXTENSIONS_HTPASSWD_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * A password file as Apache's htpasswd writes it: lines of `user:hash`. Accepted hashes are bcrypt
 * ($2a$, $2b$, $2y$), SHA-256 and SHA-512 crypt ($5$, $6$), MD5 ($1$ and $apr1$), {SHA} and {SSHA};
 * anything else is a plain password, unless it begins with `$`: then it is a hash of another kind,
 * and an error. So are hashes that would take too long to check.
 */
struct htpasswd;

/* `text` need not end in NUL. err names the line. */
struct htpasswd *htpasswd_new(struct view text, struct error *err);
void htpasswd_unref(struct htpasswd **passwords);

/* The hash of a user's password; NULL: there is no such user. */
const char *htpasswd_find(const struct htpasswd *passwords, const char *user);
/* Does checking a password against this hash take long (a millisecond or more)? */
bool htpasswd_is_slow(const char *hash);
/* Is this the password? In constant time for a given hash. [any thread] */
bool htpasswd_matches(const char *hash, const char *password);

#endif
