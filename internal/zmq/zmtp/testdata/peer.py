"""A peer made with real libzmq, for the tests of the Go sockets.

    peer.py ROLE ENDPOINT [HEARTBEAT_MS]

It prints one line when it is ready ("on ENDPOINT"), then does what its role
says until its standard input closes. With HEARTBEAT_MS it sends heartbeats so
often, and gives a peer up that is silent five times as long. PEER_SECRET in the
environment is its secret key for CURVE, PEER_SERVER the public key of the other
end if that is the server.
"""

import os
import sys
import threading
import traceback

import zmq

role, endpoint = sys.argv[1:3]
beat = int(sys.argv[3]) if len(sys.argv) > 3 else 0
context = zmq.Context()


def say(*words):
    print(*words, flush=True)


def socket(kind):
    s = context.socket(kind)
    s.linger = 0
    if "PEER_SECRET" in os.environ:
        s.curve_secretkey = os.environb[b"PEER_SECRET"]
        s.curve_publickey = zmq.curve_public(os.environb[b"PEER_SECRET"])
        if "PEER_SERVER" in os.environ:
            s.curve_serverkey = os.environb[b"PEER_SERVER"]
        else:
            s.curve_server = True
    if beat:
        s.heartbeat_ivl, s.heartbeat_timeout, s.heartbeat_ttl = beat, 4 * beat, 5 * beat
    return s


def watch(s):
    """Print each handshake and each disconnection that libzmq sees."""
    monitor = s.get_monitor_socket(
        zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
    )

    def run():
        from zmq.utils.monitor import recv_monitor_message

        while True:
            try:
                event = recv_monitor_message(monitor)["event"]
            except zmq.ZMQError:
                return
            say("up" if event == zmq.EVENT_HANDSHAKE_SUCCEEDED else "down")

    threading.Thread(target=run, daemon=True).start()


def bind(s):
    s.bind(endpoint)
    say("on", s.last_endpoint.decode())


def connect(s):
    s.connect(endpoint)
    say("on", endpoint)


def echo(s):
    while True:
        s.send_multipart(s.recv_multipart())


def router():
    s = socket(zmq.ROUTER)
    watch(s)
    bind(s)
    echo(s)


def dealer():
    s = socket(zmq.DEALER)
    s.identity = b"python"
    watch(s)
    connect(s)
    s.send_multipart([b"hello", b"from", b"libzmq"])
    echo(s)


def publisher():
    """An XPUB: prints each subscription, and answers it with two messages."""
    s = socket(zmq.XPUB)
    bind(s)
    while True:
        subscription = s.recv()
        say("subscription", subscription.hex())
        if subscription[:1] == b"\x01":
            s.send_multipart([b"other", b"not for you"])
            s.send_multipart([subscription[1:] + b".1", b"for you", bytes(70000)])


def subscriber():
    s = socket(zmq.SUB)
    connect(s)
    s.subscribe(b"job.")
    s.subscribe(b"end")
    while True:
        frames = s.recv_multipart()
        say("got", *[f.hex() for f in frames])
        if frames[0] == b"job.stop":
            s.unsubscribe(b"job.")


def run():
    try:
        globals()[role]()
    except Exception:
        traceback.print_exc()
        os._exit(1)


threading.Thread(target=run, daemon=True).start()
sys.stdin.read()
