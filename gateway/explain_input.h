/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_EXPLAIN_INPUT_H
#define GATEWAY_EXPLAIN_INPUT_H

#include "base/bytes.h"
#include "base/error.h"
#include "profile/profiles.h"

/*
 * The profiles in a file, for `portcullis explain`: pprof; OTLP of any generation, as protobuf or
 * JSON; what the exporter `file` writes in any format; messages of gRPC with their frames. Each may
 * be compressed (gzip, zstd, framed snappy). A document is a pprof or a request of OTLP. Older
 * generations and JSON are translated when they are read, as receivers do it.
 */
struct explain_document {
	struct bytes body;
	bool pprof;
};

struct explain_input {
	const char *format; /* of the first document: "pprof", "OTLP", "OTLP/JSON" */
	struct explain_document *at;
	size_t count;
	size_t bytes; /* of the file */
};

/* path "-": standard input. fini must be called also after a failure. */
bool explain_input_read(struct explain_input *input, const char *path, struct error *err);
void explain_input_fini(struct explain_input *input);

/* Decodes a document into p, which is reset first. attributes: added to the resource of a pprof;
 * NULL: none. */
bool explain_input_decode(const struct explain_document *document, struct profiles *p,
			  struct request *request, const struct metadatum *attributes,
			  struct error *err);

#endif
