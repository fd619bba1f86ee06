# SPDX-License-Identifier: Apache-2.0
"""The one visible list of partners; several of one name are versions of it, the oldest first. INTEROP_NEWEST=1: of
each the newest only, which builds and runs in half the time."""
import os

from interop import agents
from interop.clients import GrpcGo, Grpcio, GrpcJava, GrpcJs, Grpcurl, H2spec, Nghttp2
from interop.collector import Collector, KafkaCollector, RedactionProcessor
from interop.foreign import Foreign
from interop.gotool import GoPprof
from interop.kafka import Kafka, OldKafka
from interop.parca import NewParca, Parca
from interop.pdata import OlderPdata, Pdata
from interop.pyroscope import NewPyroscope, Pyroscope

EVERY = [Collector, KafkaCollector, RedactionProcessor, Pyroscope, NewPyroscope, Parca, NewParca, OldKafka, Kafka, Foreign, OlderPdata, Pdata, GoPprof, GrpcGo,
         GrpcJava, GrpcJs, Grpcio, Grpcurl, Nghttp2, H2spec, *agents.ALL]
ALL = list({partner.name: partner for partner in EVERY}.values()) if os.environ.get("INTEROP_NEWEST") else EVERY


def versions(fixture):
    return [partner for partner in ALL if partner.fixture == fixture]


def of(item):
    """Those that a test is about: of several versions, the one that its fixture has taken."""
    taken = item.callspec.params if hasattr(item, "callspec") else {}
    return [partner for partner in ALL
            if partner.fixture in item.fixturenames and taken.get(partner.fixture, partner) is partner]
