"""While a cassette is active nothing else reaches a network, whatever the transport, and nobody can overlook it."""

import asyncio
import contextlib
import socket
import ssl
import threading
import urllib.request

import httpx2
import openai
import pytest
import websockets.asyncio.client
import websockets.exceptions
import websockets.sync.client

from gnl_middleware.cassettes import CassetteMissError, NetworkRefusedError, use_cassette
from tests.cassettes.clients import WAYS, post
from tests.servers.answering import AnsweringServer


@pytest.fixture
def listener():
    """A server that must never be connected to, and tells whether it was."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


def raw_socket(host, port):
    with socket.create_connection((host, port), timeout=5):
        pass


def datagram(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"secret", (host, port))


def in_a_thread(host, port):
    errors = []

    def connect():
        try:
            raw_socket(host, port)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    raise errors[0]


def websocket(host, port):
    with websockets.sync.client.connect(f"ws://{host}:{port}/v1/realtime", open_timeout=5):
        pass


def websocket_async(host, port):
    async def connect():
        async with websockets.asyncio.client.connect(f"ws://{host}:{port}/v1/realtime", open_timeout=5):
            pass

    asyncio.run(connect())


def event_loop(host, port):
    async def connect():
        _, writer = await asyncio.open_connection(host, port, ssl=ssl.create_default_context())
        writer.close()

    asyncio.run(connect())


TRANSPORTS = [raw_socket, datagram, in_a_thread, websocket, websocket_async, event_loop]


@pytest.mark.parametrize("connect", TRANSPORTS, ids=lambda function: function.__name__)
def test_no_transport_gets_out(tmp_path, listener, connect):
    """A connection of any kind is refused before it opens, with the target and the cassette in the message."""
    port = listener.getsockname()[1]

    with pytest.raises(NetworkRefusedError, match=rf"127\.0\.0\.1:{port} was refused.*some\.yaml"):  # noqa: SIM117
        with use_cassette(tmp_path / "some.yaml"):
            connect("127.0.0.1", port)


@pytest.mark.parametrize("look_up", [socket.gethostbyname, lambda host: socket.getaddrinfo(host, 80)])
def test_no_name_is_looked_up(tmp_path, look_up):
    """Even the question for an address would leave the machine, so it is refused."""
    with pytest.raises(NetworkRefusedError, match=r"api\.openai\.com"), use_cassette(tmp_path / "some.yaml"):
        look_up("api.openai.com")


@pytest.mark.parametrize("way", WAYS)
def test_a_miss_never_goes_live(tmp_path, listener, way):
    """A request that is not recorded reaches no server, whatever the client (B44)."""
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat"

    with pytest.raises(CassetteMissError) as missed, use_cassette(tmp_path / "none.yaml"):
        post(way, url, {"n": 1})

    assert (missed.value.reason, missed.value.uri) == ("no_cassette", url)


def test_an_sdk_cannot_hide_a_miss(tmp_path):
    """Whatever the OpenAI client and the agent make of a miss, leaving the block raises the miss itself."""
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:1/v1", max_retries=0)

    with pytest.raises(CassetteMissError) as missed, use_cassette(tmp_path / "none.yaml"):
        with contextlib.suppress(Exception):
            client.chat.completions.create(model="any", messages=[{"role": "user", "content": "hello"}])
        answer = "I could not reach the model, sorry."  # what an agent does that goes on from any error

    assert answer
    assert missed.value.uri == "http://127.0.0.1:1/v1/chat/completions"


def test_a_refused_connection_cannot_be_hidden(tmp_path, listener):
    """Code that catches any error and goes on does not turn a test green."""
    with (
        pytest.raises(NetworkRefusedError),
        use_cassette(tmp_path / "none.yaml"),
        contextlib.suppress(Exception),
    ):
        raw_socket(*listener.getsockname())


def test_an_error_of_the_test_itself_is_raised_where_nothing_was_refused(tmp_path):
    """A block that fails for a reason of its own raises that reason."""
    with pytest.raises(ZeroDivisionError), use_cassette(tmp_path / "none.yaml"):
        raise ZeroDivisionError


def test_telemetry_is_refused_without_failing_anything(tmp_path):
    """What SDKs report about themselves from a thread goes nowhere, and fails no test."""
    with use_cassette(tmp_path / "none.yaml"), pytest.raises(CassetteMissError):
        httpx2.post("https://api.openai.com/v1/traces/ingest", json={"data": []})


def test_a_server_of_the_test_is_reached_where_it_is_named(tmp_path):
    """`allow_hosts` opens what belongs to the test, by address and by name, and nothing else."""
    with AnsweringServer() as server:
        for hosts in (["127.0.0.1"], ["localhost"]):
            with use_cassette(tmp_path / "none.yaml", allow_hosts=hosts):
                raw_socket("127.0.0.1", server.port)
        with (
            pytest.raises(NetworkRefusedError),
            use_cassette(tmp_path / "none.yaml", allow_hosts=["db.test"]),
        ):
            raw_socket("127.0.0.1", server.port)


def test_recording_reaches_only_what_it_records(tmp_path):
    """While recording, a name that no recorded request went to is not looked up."""
    with pytest.raises(NetworkRefusedError), use_cassette(tmp_path / "new.yaml", record=True):
        socket.getaddrinfo("api.openai.com", 443)


def test_the_network_is_open_again_afterwards(tmp_path):
    """What a cassette shuts it opens again, also when the block failed."""
    with AnsweringServer() as server:
        with pytest.raises(CassetteMissError), use_cassette(tmp_path / "none.yaml"):
            post("httpx", server.url, {})

        assert urllib.request.urlopen(server.url, timeout=5).status == 200  # noqa: S310


def test_sockets_within_the_machine_stay_open(tmp_path):
    """Pipes between processes and event loops are no network: they go on working."""
    first, second = socket.socketpair()
    with use_cassette(tmp_path / "none.yaml"), first, second:
        first.sendall(b"x")
        assert second.recv(1) == b"x"
        asyncio.run(asyncio.sleep(0))
