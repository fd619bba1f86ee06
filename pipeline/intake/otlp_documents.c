/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/otlp_documents.h"

#include "pipeline/intake/peers.h"
#include "profile/otlp/decode_otlp.h"

/* The sender has shown several generations, so an ambiguous request of it can be of any. */
#define SEVERAL UINT64_C(15)
#define GENERATION_MASK UINT64_C(15)

const char *const otlp_schemas[] = { "auto", "v1.3", "v1.4",  "v1.6", "v1.7",
				     "v1.8", "v1.9", "v1.10", NULL };

const struct metric otlp_documents_metric = {
	"otelcol_receiver_otlp_requests", METRIC_COUNTER, "{requests}",
	"Requests by the generation of OTLP in which they were sent: 1.3, 1.4 (and 1.5), 1.6, 1.7, "
	"1.8, 1.9, 1.10 (and newer), or ambiguous (rejected)."
};

void otlp_documents_init(struct otlp_documents *documents, const struct host *host,
			 enum otlp_generation schema)
{
	documents->schema = schema;
	for (int i = 0; i < OTLP_GENERATIONS; i++) {
		const struct metric_label labels[] = { { "receiver", host->id },
						       { "generation", otlp_generation_names[i] },
						       { 0 } };
		documents->requests[i] =
			metrics_series(host->metrics, &otlp_documents_metric, labels);
	}
}

void otlp_documents_settle(struct inbound *in, enum otlp_generation generation)
{
	struct otlp_documents *documents = in->receiver;
	bool counted = in->dialect != OTLP_UNKNOWN; /* on an I/O thread, before a worker took it */
	in->dialect = (uint8_t)generation;
	if (!counted)
		metric_add(documents->requests[generation], 1);
}

static _Atomic uint64_t *slot_of(struct otlp_documents *documents, const struct inbound *in)
{
	return &documents->senders[in->peer->key.low % OTLP_SENDERS];
}

static void remember(struct otlp_documents *documents, const struct inbound *in,
		     enum otlp_generation generation)
{
	_Atomic uint64_t *slot = slot_of(documents, in);
	uint64_t key = in->peer->key.high & ~GENERATION_MASK;
	uint64_t known = atomic_load_explicit(slot, memory_order_relaxed);
	uint64_t now = key | generation;
	if (known == now || known == (key | SEVERAL))
		return;
	if ((known & ~GENERATION_MASK) == key && known & GENERATION_MASK)
		now = key | SEVERAL;
	atomic_store_explicit(slot, now, memory_order_relaxed);
}

static enum otlp_generation remembered(struct otlp_documents *documents, const struct inbound *in)
{
	uint64_t known = atomic_load_explicit(slot_of(documents, in), memory_order_relaxed);
	uint64_t key = in->peer->key.high & ~GENERATION_MASK;
	bool usable = (known & ~GENERATION_MASK) == key && known != (key | SEVERAL);
	return usable ? (enum otlp_generation)(known & GENERATION_MASK) : OTLP_UNKNOWN;
}

static bool is_among(uint32_t candidates, enum otlp_generation generation)
{
	return generation != OTLP_UNKNOWN && candidates >> generation & 1;
}

/* OTLP_UNKNOWN: nothing decides. */
static enum otlp_generation choose(struct otlp_documents *documents, const struct inbound *in,
				   uint32_t candidates)
{
	if (!(candidates & (candidates - 1)))
		return (enum otlp_generation)__builtin_ctz(candidates);
	if (documents->schema != OTLP_UNKNOWN)
		return is_among(candidates, documents->schema) ? documents->schema : OTLP_UNKNOWN;
	enum otlp_generation earlier = remembered(documents, in);
	return is_among(candidates, earlier) ? earlier : OTLP_UNKNOWN;
}

bool otlp_documents_decode(struct inbound *in, struct profiles *profiles, struct error *err)
{
	struct otlp_documents *documents = in->receiver;
	struct otlp_layout layout = { .known = in->dialect ? OTLP_CURRENT : OTLP_UNKNOWN };
	bool decoded = decode_otlp_any(profiles, &layout, err);
	if (in->dialect)
		return decoded;
	enum otlp_generation generation = choose(documents, in, layout.candidates);
	bool only = !(layout.candidates & (layout.candidates - 1));
	otlp_documents_settle(in, generation);
	if (only && (layout.shown || generation != OTLP_CURRENT))
		remember(documents, in, generation);
	if (generation == OTLP_UNKNOWN)
		return decode_otlp_refuse(layout.candidates, err);
	in->again = !only || generation != OTLP_CURRENT;
	return decoded && !in->again;
}

bool otlp_documents_translate(struct inbound *in, struct view *body, struct bytes *out,
			      struct error *err)
{
	if (in->dialect == OTLP_UNKNOWN || in->dialect == OTLP_CURRENT)
		return true;
	if (!bridge_otlp(in->dialect, *body, out, err))
		return false;
	*body = bytes_view(out);
	return true;
}
