"""A client with pyzmq alone: it sends every kind of message to a hootserver, and prints the answers as JSON."""
import json
import sys
import uuid
import msgpack
import zmq

READY, REQUEST, REPLY, HEARTBEAT, DISCONNECT = range(1, 6)
EMPTY, MSGPACK, BINARY, JSON = range(4)
TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
context = zmq.Context()
dealer = context.socket(zmq.DEALER)
dealer.linger = 1000
dealer.rcvtimeo = 30000
dealer.connect(sys.argv[1])


def send(command, content=EMPTY, body=b""):
    request_id = uuid.uuid4()
    dealer.send_multipart([b"HOOT01", command.to_bytes(2, "big"), content.to_bytes(2, "big"), request_id.bytes, b"", TRACE, body])
    return request_id


def receive():
    magic, command, content, request_id, service, trace, body = dealer.recv_multipart()
    assert magic == b"HOOT01" and trace in (b"", TRACE), (magic, trace)
    content = int.from_bytes(content, "big")
    value = {EMPTY: lambda: None, JSON: lambda: json.loads(body), MSGPACK: lambda: msgpack.unpackb(body)}[content]()
    return int.from_bytes(command, "big"), uuid.UUID(bytes=request_id), content, value


def ask(command, content=EMPTY, body=b""):
    request_id = send(command, content, body)
    answered, answered_id, answered_content, value = receive()
    assert answered_id == request_id, "an answer to another request"
    return answered, answered_content, value


def call(name, arguments, content=JSON):
    body = {"type": "tool_call", "name": name, "arguments": arguments}
    command, answered, value = ask(REQUEST, content, json.dumps(body).encode() if content == JSON else msgpack.packb(body))
    assert command == REPLY and answered == content, (command, answered)
    return value


received = {"ready": ask(READY)[2], "heartbeat": ask(HEARTBEAT)[0]}
received["json"] = call("object", {"text": "grüß dich", "big": 2**53 + 1})
received["msgpack"] = call("object", {"text": "grüß dich", "big": 2**53 + 1}, MSGPACK)
received["fault"] = call("fault", {"text": "x"})
received["missing"] = call("no such tool", {})

sub = context.socket(zmq.SUB)
sub.rcvtimeo = 100
sub.connect(received["ready"]["broadcasts"])
sub.subscribe(b"")
progress, asked = None, []
while progress is None:  # broadcasts before the publisher has the subscription are lost
    slow = send(REQUEST, JSON, json.dumps({"type": "tool_call", "name": "wait", "arguments": {"text": "x"}}).encode())
    asked.append(str(slow))
    try:
        progress = json.loads(sub.recv())
    except zmq.Again:
        pass
    cancel = send(REQUEST, JSON, json.dumps({"type": "tool_cancel", "request_id": str(slow)}).encode())
    answers = {}
    for _ in range(2):
        _, answered_id, _, value = receive()
        answers[answered_id] = value
received["progress"], received["progress_is_ours"] = progress, progress["job_id"] in asked  # it may belong to an earlier call
received["cancel"], received["cancelled"] = answers[cancel], answers[slow]
send(DISCONNECT)
print(json.dumps(received))
