/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_KAFKA_MANUAL_H
#define RECEIVERS_KAFKA_MANUAL_H

#define KAFKA_RECEIVER_MANUAL \
	"The receivers of all gateways with the same `group_id` share the partitions of the " \
	"topics. Each message is one request.\n\n" \
	"**Nothing is lost.** The offset of a message is committed only after the message was " \
	"acknowledged, as `ack` says. With `durable`, it is then in the queue on disk of each " \
	"required exporter. Up to `max_in_flight` messages are processed at a time, and of each " \
	"partition the offset is committed up to which all are done. After a crash, messages " \
	"from there on are read again, so some arrive twice. With `deduplicate`, a message that " \
	"one of our `kafka` exporters has sent twice is dropped.\n\n" \
	"**When a message is refused for now** (memory is short, all queues are full, a " \
	"destination that `ack` waits for did not take it), the receiver keeps the message and " \
	"pauses all partitions, so the Kafka client drops what it has fetched. The membership in " \
	"the group stays. The messages that wait are tried again as `error_backoff` says, and " \
	"then reading continues.\n\n" \
	"**Messages that can never be accepted**, such as those that cannot be decoded or that " \
	"are larger than `max_message_bytes`, are skipped by default. Each one is logged with " \
	"its topic, partition and offset, and counted as failed in " \
	"`otelcol_kafka_receiver_messages`.\n\n" \
	"**Rebalancing.** When the group takes partitions away, messages in processing " \
	"have 5 seconds to be acknowledged. Their offsets are committed, and then the partitions " \
	"go to other members. What was not acknowledged in this time is read again by them.\n\n" \
	"**Headers** that are text are metadata of the request: `service::tenant`, " \
	"`metadata_keys` of `batch`, and `routing` read them. A message may have 64 headers with " \
	"16384 bytes together. With encoding `pprof`, all of them become resource attributes, as " \
	"pprof has no other place for these; name at least `service.name`. Attributes and " \
	"metadata pass the policy like all others.\n\n" \
	"Certificates and keys are read again on SIGHUP and at `tls::reload_interval`. If they " \
	"have changed, a new client joins the group, and the old one leaves it with its last " \
	"message.\n\n" \
	"If an offset is not there any more, because the topic's retention has removed the " \
	"message, reading continues at `initial_offset`."

#endif
