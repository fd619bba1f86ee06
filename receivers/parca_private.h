/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PARCA_PRIVATE_H
#define RECEIVERS_PARCA_PRIVATE_H

#include "pipeline/intake/duplicates.h"
#include "pipeline/intake/grpc_intake.h"
#include "pipeline/intake/http_intake.h"
#include "profile/stores/raw_request.h"

/*
 * The receiver parca: parca.c (factory), parca_documents.c (the profiles of a request),
 * parca_http.c (the routes of gRPC-gateway and its replies).
 *
 * Each profile of a WriteRawRequest is a document. The labels of its series become resource
 * attributes with the same keys, except service_name, which becomes service.name.
 */
enum parca_names { PARCA_NAMES_LEGACY, PARCA_NAMES_UTF8 };

struct parca_receiver_config {
	struct {
		struct rpc_server_config grpc;
		struct http_server_config http;
	} protocols;
	struct choice labels; /* enum parca_names */
	struct label_limits limits;
	struct choice ack;
	struct duplicates_config deduplicate;
};

enum parca_unsupported { PARCA_NORMALIZED, PARCA_EXECUTABLE_INFO, PARCA_UNSUPPORTED };

struct parca_receiver {
	const struct parca_receiver_config *config;
	struct grpc_intake *grpc; /* NULL: not configured */
	struct http_intake *http; /* NULL: not configured */
	struct metric_series *unsupported[PARCA_UNSUPPORTED];
};

/* One request, of either transport. */
struct parca_request {
	union {
		struct inbound in;
		struct grpc_intake_request grpc;
		struct http_intake_request http;
	};
	struct raw_request raw;
	uint32_t settled; /* the last series whose labels have been checked and renamed */
};

enum { PARCA_ROUTES = 3 };

extern const struct http_intake_route parca_http_routes[PARCA_ROUTES];

/* The members of a document_format. */
enum inbound_next parca_documents_next(struct inbound *in, uint32_t index, struct view body,
				       struct view *document, struct error *err);
bool parca_documents_decode(struct inbound *in, struct profiles *profiles, struct error *err);

/* clang-format off */
#define PARCA_DOCUMENTS \
	.next = parca_documents_next, .decode = parca_documents_decode, .packed = true, \
	.tables_factor = sizeof(struct sample) + 4
/* clang-format on */

#define PARCA_NO_ARROW \
	"profiles in Apache Arrow are not supported; start parca-agent with a version that sends " \
	"WriteRaw, or send OTLP"

#endif
