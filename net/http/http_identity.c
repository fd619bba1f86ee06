/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_identity.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

void http_identity_unref(struct http_identity **slot)
{
	struct http_identity *identity = *slot;
	*slot = NULL;
	if (!identity || atomic_fetch_sub(&identity->refs, 1) != 1)
		return;
	for (int i = 0; i < 3; i++) {
		if (identity->files[i] >= 0)
			close(identity->files[i]);
		memory_free(identity->paths[i]);
	}
	tls_release(&identity->material);
	memory_free(identity);
}

static bool put_file(struct http_identity *identity, int i, const char *pem, struct error *err)
{
	if (!pem)
		return true;
	size_t len = strlen(pem);
	identity->files[i] = memfd_create("pem", MFD_CLOEXEC);
	if (identity->files[i] < 0 || write(identity->files[i], pem, len) != (ssize_t)len)
		return error_set(err, ERROR_CONFIG, "cannot store a certificate in memory: %s",
				 strerror(errno));
	identity->paths[i] = memory_format("/proc/self/fd/%d", identity->files[i]);
	return true;
}

struct http_identity *http_identity_new(const struct tls_client_config *tls, struct error *err)
{
	struct http_identity *identity = memory_new(sizeof *identity);
	struct tls_material *m = &identity->material;
	identity->refs = 1;
	identity->files[HTTP_CA] = identity->files[HTTP_CERTIFICATE] = identity->files[HTTP_KEY] =
		-1;
	bool ok = !tls || ((tls_load_client(tls, m, err) || error_prefix(err, "tls")) &&
			   put_file(identity, HTTP_CA, m->ca, err) &&
			   put_file(identity, HTTP_CERTIFICATE, m->cert, err) &&
			   put_file(identity, HTTP_KEY, m->key, err));
	if (!ok)
		http_identity_unref(&identity);
	return identity;
}
