/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bridge_tool [-g GENERATION] [-m MAX] FILE...: the generation that the content of each request
 * shows (several names: ambiguous), or the given one, and the request in the current layout as hex,
 * or "error" and the reason.
 */
#include "base/memory.h"
#include "profile/otlp/bridge.h"
#include "profile/otlp/decode_layout.h"
#include "profile/otlp/decode_otlp.h"

#include <stdio.h>
#include <stdlib.h>

static struct bytes read_file(const char *path)
{
	struct bytes body;
	FILE *file = fopen(path, "rb");
	bytes_init(&body, PROFILES_INPUT_MAX);
	if (!file)
		exit(1);
	for (size_t got = 1; got; body.len += got) {
		if (!bytes_reserve(&body, 65536))
			exit(1);
		got = fread(body.at + body.len, 1, 65536, file);
	}
	memset(body.at + body.len, 0, BYTES_SLACK);
	fclose(file);
	return body;
}

static uint32_t generation_of(const char *name)
{
	for (uint32_t i = 1; i < OTLP_GENERATIONS; i++)
		if (!strcmp(otlp_generation_names[i], name))
			return UINT32_C(1) << i;
	exit(2);
}

/* As the receiver asks. */
static uint32_t judge(struct view request)
{
	static struct profiles p;
	struct otlp_layout layout = { 0 };
	struct error err = { 0 };
	if (!profiles_reset(&p, NULL, request, 1u << 30))
		exit(3);
	decode_otlp_any(&p, &layout, &err);
	return layout.candidates;
}

static void show(struct view request, uint32_t candidates, size_t max)
{
	struct error err = { 0 };
	struct bytes out;
	bytes_init(&out, max);
	for (uint32_t rest = candidates; rest; rest &= rest - 1)
		printf("%s%s", rest == candidates ? "" : ",",
		       otlp_generation_names[__builtin_ctz(rest)]);
	bool only = !(candidates & (candidates - 1));
	bool current = candidates == UINT32_C(1) << OTLP_CURRENT;
	if (!only) {
		puts(" ambiguous");
	} else if (current ? !bytes_add(&out, request.at, request.len)
			   : !bridge_otlp((enum otlp_generation)__builtin_ctz(candidates), request,
					  &out, &err)) {
		printf(" error %s\n", err.kind ? err.text : "memory");
	} else {
		putchar(' ');
		for (size_t i = 0; i < out.len; i++)
			printf("%02x", out.at[i]);
		putchar('\n');
	}
	bytes_fini(&out);
}

int main(int argc, char **argv)
{
	uint32_t given = 0;
	size_t max = 1 << 28;
	int i = 1;
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (argv[i][1] == 'g')
			given = generation_of(argv[i + 1]);
		else
			max = strtoul(argv[i + 1], NULL, 10);
	}
	for (; i < argc; i++) {
		struct bytes body = read_file(argv[i]);
		struct view request = bytes_view(&body);
		show(request, given ? given : judge(request), max);
		bytes_fini(&body);
	}
	return 0;
}
