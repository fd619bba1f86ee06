/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Preloaded: the name NAME resolves to the addresses in the file ADDRESSES, one a line, which is
 * read each time. All other names resolve as usual. */
typedef int resolver(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int append(resolver *real, const char *address, const char *service,
		  const struct addrinfo *hints, struct addrinfo **end)
{
	struct addrinfo numeric = *hints;
	numeric.ai_flags = AI_NUMERICHOST;
	return real(address, service, &numeric, end);
}

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
						       const struct addrinfo *hints,
						       struct addrinfo **result)
{
	const char *name = getenv("NAME"), *path = getenv("ADDRESSES");
	resolver *real = (resolver *)dlsym(RTLD_NEXT, "getaddrinfo");
	if (!name || !path || !node || strcmp(node, name))
		return real(node, service, hints, result);
	char line[64];
	int code = EAI_NONAME;
	FILE *file = fopen(path, "r");
	*result = NULL;
	for (struct addrinfo **end = result; file && fgets(line, sizeof line, file);) {
		line[strcspn(line, "\n")] = '\0';
		if (append(real, line, service, hints, end))
			continue;
		code = 0;
		while (*end)
			end = &(*end)->ai_next;
	}
	if (file)
		fclose(file);
	return code;
}
