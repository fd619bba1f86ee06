/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_STORAGE_TOTALS_H
#define PIPELINE_STORAGE_TOTALS_H

#include "pipeline/storage/storage.h"

/*
 * The small record of a queue: its accounts with their totals. Little-endian: format (4 bytes),
 * number of accounts (4), for each account the length of its name (4), the name, and four totals (8
 * each); then a checksum of all that (8).
 */
enum { TOTALS_NAME_MAX = 1024, TOTALS_ACCOUNTS_MAX = 4096 };

struct storage_account *totals_account(struct storage_account **list, const char *name, size_t len);
void totals_free(struct storage_account **list);

/* The totals as they are after the commit under way; accounts without records are left out. */
void totals_encode(const struct storage_account *list, struct bytes *out);
/* Sets `committed` of the accounts in the list, and adds accounts. False: damaged, and nothing was
 * changed. */
bool totals_decode(struct view data, struct storage_account **list, struct error *err);

#endif
