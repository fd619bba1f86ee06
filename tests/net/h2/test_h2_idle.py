# SPDX-License-Identifier: Apache-2.0
"""Memory for connections is used up: the idle ones give way, oldest first, before a client is refused."""
import contextlib
import time

import pytest

from harness import h2
from harness.h2 import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, frame
from harness.served import Served, build
from test_rpc_server import wait_for

pytestmark = pytest.mark.threads
COST, ASLEEP_COST = 16384, 2048  # net/h2/private.h
WAITING_MAX = 1024  # net/h2/listener.c
NO_LONGER_JUST_ANSWERED_S = .5
CALL = frame(HEADERS, END_HEADERS, h2.headers(h2.HEALTH)) + frame(DATA, END_STREAM, bytes(5))


@pytest.fixture(scope="module")
def program():
    return build("net/h2/rpc_serve")


def source(i):
    """One of many peers, each of which has only a few connections."""
    return "127.0.%d.%d" % (1 + i // 200 % 5, 1 + i % 200)


def called(held, s, i):
    connection = held.enter_context(h2.connected(s.port, source(i)))
    with contextlib.suppress(OSError):
        connection.sendall(PREFACE + CALL)
    return connection


def answered(connection):
    """Whether the call has its response; otherwise the server has closed the connection."""
    received, at = b"", 0
    while True:
        while len(received) - at >= 9:
            end = at + 9 + int.from_bytes(received[at:at + 3], "big")
            if len(received) < end:
                break
            if received[at + 3] in (HEADERS, DATA) and received[at + 4] & END_STREAM:
                return True
            at = end
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return False
        if not part:
            return False
        received += part


def closed(connection):
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def at_rest(s):
    """What is held when it changes no more: each connection falls asleep by itself."""
    seen = []
    wait_for(lambda: seen.append(int(s.ask("held"))) or (len(seen) >= 8 and len(set(seen[-8:])) == 1))
    return seen[-1]


def test_more_clients_at_once_than_may_wait_are_all_served(program):
    """All connections have called just now, and there is room for no other. 76 more clients come than may wait."""
    with Served(program) as s, contextlib.ExitStack() as held:
        assert s.ask("room %d" % (200 * COST)) == "ok"
        clients = [called(held, s, i) for i in range(200 + WAITING_MAX + 76)]
        assert all(answered(c) for c in clients)
        assert int(s.ask("held")) <= 200 * COST


def test_idle_connections_give_way_to_a_client_that_wakes_its_connection(program):
    """It has connected before, and its connection was charged less while there was no call on it."""
    with Served(program) as s, contextlib.ExitStack() as held:
        old = [called(held, s, i) for i in range(4)]
        assert all(answered(c) for c in old)
        time.sleep(NO_LONGER_JUST_ANSWERED_S)
        client = held.enter_context(h2.connected(s.port, source(4)))
        client.sendall(PREFACE)
        room = at_rest(s)
        assert room <= 4 * COST + ASLEEP_COST
        assert s.ask("room %d" % room) == "ok"
        client.sendall(CALL)
        assert answered(client)
        wait_for(lambda: any(closed(c) for c in old))


def test_an_idle_connection_on_another_thread_gives_way_too(program):
    """Of two threads, one has the idle connection, and the other, which then had fewer, the one that wakes."""
    with Served(program) as s, contextlib.ExitStack() as held:
        old = called(held, s, 0)
        assert answered(old)
        client = held.enter_context(h2.connected(s.port, source(1)))
        client.sendall(PREFACE)
        wait_for(lambda: int(s.ask("held")) == COST + ASLEEP_COST)
        time.sleep(NO_LONGER_JUST_ANSWERED_S)
        assert s.ask("room %d" % (2 * COST - 1)) == "ok"
        client.sendall(CALL)
        assert answered(client)
        wait_for(lambda: closed(old))


def test_a_client_that_ends_its_sleeping_connection_does_not_wait_for_memory(program):
    with Served(program) as s:
        with h2.connected(s.port, source(0)) as client:
            client.sendall(PREFACE)
            wait_for(lambda: int(s.ask("held")) == ASLEEP_COST)
            assert s.ask("room 0") == "ok"
        wait_for(lambda: int(s.ask("held")) == 0)


def test_nothing_gives_way_to_a_peer_that_has_more_connections(program):
    with Served(program) as s, contextlib.ExitStack() as held:
        old = [called(held, s, i) for i in range(4)]
        assert all(answered(c) for c in old)
        time.sleep(NO_LONGER_JUST_ANSWERED_S)
        clients = [held.enter_context(h2.connected(s.port, source(4))) for _ in range(3)]
        for client in clients:
            client.sendall(PREFACE)
        room = at_rest(s)
        assert room <= 4 * COST + 3 * ASLEEP_COST
        assert s.ask("room %d" % room) == "ok"
        clients[0].sendall(CALL)
        assert not answered(clients[0])
        assert not any(closed(c) for c in old)
