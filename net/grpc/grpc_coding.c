/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_coding.h"

#include <grpc/compression.h>
#include <grpc/slice.h>
#include <stdint.h>
#include <string.h>

/* Numbers that core does not use. Its header compression has no index for a number from
 * GRPC_COMPRESS_ALGORITHMS_COUNT on. It asserts that the number is not that count itself. */
enum { ALGORITHM_ZSTD = GRPC_COMPRESS_ALGORITHMS_COUNT + 1, ALGORITHM_SNAPPY };

static const struct algorithm {
	enum coding coding; /* of our requests */
	int number;
	const char *name;
	/* In the metadata of our calls, so that they differ from what a server sends. */
	const char *metadata;
} algorithms[] = {
	{ CODING_IDENTITY, GRPC_COMPRESS_NONE, "identity", NULL },
	{ CODING_ZLIB, GRPC_COMPRESS_DEFLATE, "deflate", NULL },
	{ CODING_GZIP, GRPC_COMPRESS_GZIP, "gzip", "gzip" },
	{ CODING_ZSTD, ALGORITHM_ZSTD, "zstd", "send zstd" },
	/* grpc-go sends and expects frames. */
	{ CODING_SNAPPY_FRAMED, ALGORITHM_SNAPPY, "snappy", "send snappy" },
};
enum { COUNT = sizeof algorithms / sizeof *algorithms };

static const struct algorithm *algorithm_of(enum coding coding)
{
	for (size_t i = 0; i < COUNT; i++)
		if (algorithms[i].coding == coding)
			return &algorithms[i];
	return NULL;
}

const char *grpc_coding_metadata(enum coding coding)
{
	const struct algorithm *a = algorithm_of(coding);
	return a ? a->metadata : NULL;
}

/* ---- in place of core's functions (src/core/lib/compression/compression_internal.cc of 1.51) */

/* const char *grpc_core::CompressionAlgorithmAsString(grpc_compression_algorithm) */
__attribute__((visibility("default"))) const char *name_of_algorithm(int number) __asm__(
	"_ZN9grpc_core28CompressionAlgorithmAsStringE26grpc_compression_algorithm");

/* absl::optional<grpc_compression_algorithm>
 * grpc_core::ParseCompressionAlgorithm(absl::string_view), which has two words and is returned in
 * one: whether there is a value, and in the upper half the value. */
__attribute__((visibility("default"))) uint64_t
algorithm_of_name(const char *name, size_t len) __asm__(
	"_ZN9grpc_core25ParseCompressionAlgorithmEN4absl7debian311string_viewE");

const char *name_of_algorithm(int number)
{
	for (size_t i = 0; i < COUNT; i++)
		if (algorithms[i].number == number)
			return algorithms[i].name;
	return NULL;
}

static bool equal(const char *text, const char *name, size_t len)
{
	return text && strlen(text) == len && !memcmp(text, name, len);
}

/* Core ends a call whose response has a number that it does not know. Responses are therefore
 * `identity` to core, and grpc_reply recognises what they are. */
uint64_t algorithm_of_name(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT; i++) {
		const struct algorithm *a = &algorithms[i];
		bool own = a->number < GRPC_COMPRESS_ALGORITHMS_COUNT;
		if (equal(a->metadata, name, len))
			return (uint64_t)a->number << 32 | 1;
		if (equal(a->name, name, len))
			return own ? (uint64_t)a->number << 32 | 1 : 1;
	}
	return 0;
}

bool grpc_coding_check(enum coding coding, struct error *err)
{
	const struct algorithm *a = algorithm_of(coding);
	const char *name = NULL;
	grpc_compression_algorithm number = GRPC_COMPRESS_NONE;
	if (a && a->number < GRPC_COMPRESS_ALGORITHMS_COUNT)
		return true;
	bool named =
		a &&
		grpc_compression_algorithm_name((grpc_compression_algorithm)a->number, &name) &&
		!strcmp(name, a->name);
	bool parsed =
		a && grpc_compression_algorithm_parse(grpc_slice_from_static_string(a->metadata),
						      &number);
	return (named && parsed && (int)number == a->number) ||
	       error_set(err, ERROR_CONFIG,
			 "compression: the gRPC library here cannot announce zstd and snappy; use "
			 "gzip or none");
}
