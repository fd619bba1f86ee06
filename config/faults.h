/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_FAULTS_H
#define CONFIG_FAULTS_H

#include "config/problems.h"

struct config_table;

/*
 * Where the check of a section reports what is wrong (struct config_table). A check goes through
 * all its rules and reports each that is broken. A text begins with the key at fault, if there is
 * one: "tls: cert_file: cannot read ...", "list[2]::key: must be ..." or "`key` must be ...". The
 * error gets the position of that key in the file, or of the closest one around it that is set. A
 * text never repeats a value, which ${...} may have brought.
 *
 * A key whose value could not be bound has its default, or nothing. A further error about a key
 * that has one already is not reported, so a check needs no condition for it.
 */
struct faults {
	const struct config_table *table; /* NULL: the section comes from no file */
	const struct node *node;          /* of the section; NULL: it is not set */
	const char *path;                 /* of the section */
	struct problems *problems;
};

/* Both return false. */
bool faults_add(struct faults *faults, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool faults_take(struct faults *faults, const struct error *why);
/* The same for a rule that depends on further keys of the section: on all that `others` names,
 * separated by spaces. If one of them has an error, nothing is known about the rule, and nothing is
 * reported. */
bool faults_relate(struct faults *faults, const char *others, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Is the value of this key of the section ("a", "list[2]::key") what the operator wants? False: it
 * has an error, or it may be set by a name with a mistake or in a source that could not be read. */
bool faults_know(const struct faults *faults, const char *key);

#endif
