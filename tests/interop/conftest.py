# SPDX-License-Identifier: Apache-2.0
"""The partners as fixtures, each version in turn, and the table of what was shown with each.

A test belongs to the partners among its fixtures. Where one cannot be had, the test is skipped with the reason, and the
table says so. A fixture lasts for one file of tests, which therefore starts with empty stores.
"""
import os
import signal

import pytest

from interop import partners, process, table
from interop.pyroscope import ROOMY


def pytest_configure(config):
    # A runner that is asked to end unwinds, and its partners and directories go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config.pluginmanager.register(table.Table(config, os.environ.get("INTEROP_TABLE")))


def started(partner, **options):
    """A running partner for `with`, or a skip with the reason."""
    try:
        partner.installed()
    except process.Absent as reason:
        pytest.skip(str(reason))
    return partner(**options)


def versions(fixture):
    return {"params": partners.versions(fixture), "ids": lambda partner: partner.version}


@pytest.fixture(scope="module", **versions("pyroscope"))
def pyroscope(request):
    with started(request.param, options=ROOMY) as partner:
        yield partner


@pytest.fixture(scope="module", **versions("parca"))
def parca(request):
    with started(request.param) as partner:
        yield partner


@pytest.fixture(scope="module")
def collector():
    """The class: each test configures its own."""
    started(partners.Collector, text="")
    return partners.Collector


@pytest.fixture(scope="module")
def collector_kafka():
    """The same, with the components of Kafka."""
    started(partners.KafkaCollector, text="")
    return partners.KafkaCollector


@pytest.fixture(scope="module")
def redaction_processor():
    return started(partners.RedactionProcessor)


@pytest.fixture(scope="module")
def kafka():
    """The class."""
    started(partners.Kafka)
    return partners.Kafka


@pytest.fixture(scope="module")
def old_kafka():
    started(partners.OldKafka)
    return partners.OldKafka


@pytest.fixture(scope="module")
def kafka_broker(kafka):
    with kafka() as broker:
        yield broker


@pytest.fixture(scope="module", **versions("pdata"))
def pdata(request):
    """The class."""
    started(request.param)
    return request.param


@pytest.fixture(scope="module")
def foreign():
    with started(partners.Foreign) as partner:
        yield partner


@pytest.fixture(scope="module")
def gotool():
    return started(partners.GoPprof)


@pytest.fixture(params=partners.versions("client"), ids=lambda client: client.name)
def client(request):
    return started(request.param)


@pytest.fixture(params=partners.versions("agent"), ids=lambda agent: "%s-%s" % (agent.name, agent.shown_version()))
def agent(request):
    return started(request.param)


@pytest.fixture(scope="module")
def grpcurl():
    return started(partners.Grpcurl)


@pytest.fixture(scope="module")
def nghttp2():
    return started(partners.Nghttp2)


@pytest.fixture(scope="module")
def h2spec():
    return started(partners.H2spec)
