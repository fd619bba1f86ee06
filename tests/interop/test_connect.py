# SPDX-License-Identifier: Apache-2.0
"""`validate --connect` before real peers: each exporter's question is answered, and nothing is stored. A peer without the
service that the exporter needs is named."""
import time

from interop.gate import connect

PLAIN = "tls: {insecure: true}"


def window():
    now = time.time_ns() // 10 ** 6
    return now - 3600 * 1000, now + 3600 * 1000


def test_pyroscope_is_reached_by_all_its_protocols(pyroscope):
    place = "127.0.0.1:%d" % pyroscope.port["http"]
    assert connect({"pyroscope": "endpoint: 'http://%s'" % place,
                    "otlp_http": "endpoint: 'http://%s'" % place,
                    "otlp_grpc": "endpoint: '%s', %s" % (place, PLAIN)}) == []
    assert list(pyroscope.profile_types(*window())) == []


def test_parca_is_reached_and_has_no_otlp_over_http(parca):
    place = "127.0.0.1:%d" % parca.port["http"]
    assert connect({"parca": "endpoint: '%s', %s" % (place, PLAIN),
                    "otlp_grpc": "endpoint: '%s', %s" % (place, PLAIN)}) == []
    assert len(connect({"otlp_http": "endpoint: 'http://%s'" % place})) == 1
    assert list(parca.profile_types()) == []


def test_a_collector_is_reached_over_grpc_and_http(collector):
    text = collector.TEXT.replace('{port:otlp}"}', '{port:otlp}"}, http: {endpoint: "127.0.0.1:{port:http}"}')
    with collector(text) as c:
        assert connect({"otlp_grpc": "endpoint: '127.0.0.1:%d', %s" % (c.port["otlp"], PLAIN),
                        "otlp_grpc/zstd": "endpoint: '127.0.0.1:%d', compression: zstd, %s" % (c.port["otlp"], PLAIN),
                        "otlp_http": "endpoint: 'http://127.0.0.1:%d'" % c.port["http"],
                        "otlp_http/json": "endpoint: 'http://127.0.0.1:%d', encoding: json" % c.port["http"]}) == []
        assert connect({"parca": "endpoint: '127.0.0.1:%d', %s" % (c.port["otlp"], PLAIN)}) == [
            "the destination does not accept data: unimplemented (grpc_status 12)"]
        assert "resource profiles" not in c.process.log(None)
