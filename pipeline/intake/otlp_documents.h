/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_OTLP_DOCUMENTS_H
#define PIPELINE_INTAKE_OTLP_DOCUMENTS_H

#include "pipeline/component.h"
#include "pipeline/intake/documents.h"
#include "profile/otlp/bridge.h"

#include <stdatomic.h>

/*
 * The documents of receivers of OTLP, for all transports: an ExportProfilesServiceRequest of any
 * generation. The options of the intake have this as `receiver`; in->dialect is an enum
 * otlp_generation.
 *
 * A request is decoded as one of the current layout. If its content shows another one, it is
 * translated and decoded again. If the content does not decide, the setting `schema` does, or else
 * what the sender has shown earlier, if that is possible for this request. Otherwise the request is
 * rejected.
 */
enum { OTLP_SENDERS = 1024 };

struct otlp_documents {
	enum otlp_generation schema; /* OTLP_UNKNOWN: auto */
	struct metric_series *requests[OTLP_GENERATIONS];
	/* What each sender has shown: the upper bits of its key and a generation. Senders share
	 * slots, and the last one stays. */
	_Atomic uint64_t senders[OTLP_SENDERS];
};

extern const struct metric otlp_documents_metric;
bool otlp_documents_translate(struct inbound *in, struct view *body, struct bytes *out,
			      struct error *err);
bool otlp_documents_decode(struct inbound *in, struct profiles *profiles, struct error *err);

/* The format of a body in protobuf. A string of some letters or a sample of few numbers is the
 * densest document. */
#define OTLP_DOCUMENTS \
	{ \
		.translate = otlp_documents_translate, .decode = otlp_documents_decode, \
		.tables_factor = 16, \
	}

/* The choices of a key `schema`, by enum otlp_generation. */
extern const char *const otlp_schemas[];

/* Borrowed by requests, so it must live until the intake is released. */
void otlp_documents_init(struct otlp_documents *documents, const struct host *host,
			 enum otlp_generation schema);

/* The generation of the request is known, and its document will be in the current layout: for
 * formats that name it. Counts it. [worker] */
void otlp_documents_settle(struct inbound *in, enum otlp_generation generation);

#endif
