"""Prints vectors.json: messages to check an implementation of HOOT01 and HOOT02 with.

It shares no code with the Go package; it needs python3-msgpack.
"""

import datetime
import json
import uuid

import msgpack

READY, REQUEST, REPLY, HEARTBEAT, DISCONNECT, HEARTBEAT_REPLY = range(1, 7)
EMPTY, MSGPACK, BINARY, JSON = range(4)
ID = uuid.UUID("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def encode(content, body):
    if content == EMPTY:
        return b""
    if content == MSGPACK:
        return msgpack.packb(body, datetime=True)
    if content == BINARY:
        return body
    return json.dumps(body, ensure_ascii=False).encode()


def frames(command, content, body, service="hootenanny", trace="", identity=(), protocol="HOOT01"):
    return [*identity, protocol.encode(), command.to_bytes(2, "big"), content.to_bytes(2, "big"),
            ID.bytes, service.encode(), trace.encode(), body]


def message(name, why, command, content, body=None, reads=None, **rest):
    """reads is the body as JSON where that differs from what was encoded."""
    raw = encode(content, body)
    vector = {
        "name": name,
        "why": why,
        "frames": [f.hex() for f in frames(command, content, raw, **rest)],
        "protocol": rest.get("protocol", "HOOT01"),
        "identity": [i.hex() for i in rest.get("identity", ())],
        "command": command,
        "content_type": content,
        "request_id": str(ID),
        "service": rest.get("service", "hootenanny"),
        "traceparent": rest.get("trace", ""),
    }
    if content == BINARY:
        vector["body_hex"] = raw.hex()
    elif content != EMPTY:
        vector["body"] = body if reads is None else reads
    return vector


def invalid(name, why, parts):
    return {"name": name, "why": why, "frames": [p.hex() for p in parts]}


def broadcast(body, content=JSON):
    return {"name": body["type"], "frame": encode(content, body).hex(), "content_type": content, "body": body}


schema = {"type": "object", "properties": {"abc": {"type": "string"}}, "required": ["abc"]}
catalog = {
    "protocol": "HOOT01",
    "protocols": ["HOOT01", "HOOT02"],
    "tools": [
        {"name": "abc_parse", "description": "Parse a tune", "input_schema": schema, "read_only": True},
        {"name": "job_cancel", "idempotent": True},
    ],
    "accepts_binary": True,
    "broadcasts": "tcp://127.0.0.1:5581",
}
call = {"type": "tool_call", "name": "abc_parse", "arguments": {"abc": "X:1\nK:C\nCDEF|", "strict": None}}
success = {"type": "success", "result": {"text": "4 notes", "data": {"note_count": 4, "title": "Ünïcode ♫"}}}
error = {"type": "error", "code": "invalid_params", "message": "abc: no K: field", "details": {"line": 1}}
good = frames(HEARTBEAT, EMPTY, b"")


def changed(at, part):
    return [part if i == at else p for i, p in enumerate(good)]


print(json.dumps({
    "about": "Messages of HOOT01 and HOOT02; frames are hexadecimal, from first to last. See docs/backends.md.",
    "messages": [
        message("ready-ask", "a front end asks what a backend can do", READY, EMPTY),
        message("ready", "a backend says what it can do", READY, JSON, catalog),
        message("ready-msgpack", "the same in MessagePack", READY, MSGPACK, catalog),
        message("ready-names", "tools may be names alone", READY, JSON,
                {"protocol": "HOOT01", "tools": ["abc_parse", "midi_info"], "accepts_binary": False}),
        message("request", "a call with a trace", REQUEST, JSON, call, trace=TRACE),
        message("request-msgpack", "the same in MessagePack", REQUEST, MSGPACK, call, trace=TRACE),
        message("request-flat", "the older form of a call: the type is the tool", REQUEST, JSON,
                {"type": "abc_parse", "abc": "X:1\nK:C\nCDEF|"}),
        message("request-identity", "as a ROUTER receives it: the identity comes first", REQUEST, JSON, call,
                identity=[b"\x00\x80\x00\x41\xa7"]),
        message("request-identities", "through a proxy there are several, and a delimiter", REQUEST, JSON, call,
                identity=[b"proxy", b"client", b""]),
        message("request-binary", "bytes as they are", REQUEST, BINARY, b"MThd\x00\x00\x00\x06"),
        message("request-no-service", "the service may be empty", REQUEST, JSON, call, service=""),
        message("reply-success", "text and data", REPLY, JSON, success, trace=TRACE),
        message("reply-success-msgpack", "the same in MessagePack", REPLY, MSGPACK, success),
        message("reply-text-only", "data may be null", REPLY, JSON,
                {"type": "success", "result": {"text": "done", "data": None}}),
        message("reply-error", "code, message, details", REPLY, JSON, error),
        message("reply-error-msgpack", "the same in MessagePack", REPLY, MSGPACK, error),
        message("reply-odd-msgpack", "what JSON lacks is read as what comes nearest", REPLY, MSGPACK,
                {"type": "success", "result": {"text": "odd", "data": {
                    "binary": b"\x00\xff", "big": 2**64 - 1, "small": -(2**63), "nan": float("nan"),
                    "time": datetime.datetime(2026, 1, 2, 3, 4, 5, 600000, datetime.timezone.utc),
                    "keys": {7: "seven"}, "deep": [[[]]], "half": 0.5}}},
                reads={"type": "success", "result": {"text": "odd", "data": {
                    "binary": "AP8=", "big": 2**64 - 1, "small": -(2**63), "nan": None,
                    "time": "2026-01-02T03:04:05.6Z", "keys": {"7": "seven"}, "deep": [[[]]], "half": 0.5}}}),
        message("heartbeat", "in HOOT01 the answer is the same seven frames", HEARTBEAT, EMPTY),
        message("heartbeat-2", "in HOOT02 it is a question", HEARTBEAT, EMPTY, protocol="HOOT02"),
        message("heartbeat-reply-2", "and has an answer of its own", HEARTBEAT_REPLY, EMPTY, protocol="HOOT02"),
        message("request-2", "everything else is as in HOOT01", REQUEST, JSON, call, protocol="HOOT02", identity=[b"me"]),
        message("disconnect", "the sender is about to go", DISCONNECT, EMPTY),
    ],
    "invalid": [
        invalid("nothing", "no frames", []),
        invalid("no-magic", "another protocol", [b"HOOT03"] + good[1:]),
        invalid("short", "the body is missing", good[:-1]),
        invalid("long", "a frame too many", good + [b""]),
        invalid("command-0", "no such command", changed(1, b"\x00\x00")),
        invalid("command-6", "HOOT01 has no such command", changed(1, b"\x00\x06")),
        invalid("command-7", "no such command", [b"HOOT02", b"\x00\x07"] + good[2:]),
        invalid("command-short", "a command has two bytes", changed(1, b"\x04")),
        invalid("content-4", "no such content type", changed(2, b"\x00\x04")),
        invalid("content-long", "a content type has two bytes", changed(2, b"\x00\x00\x00")),
        invalid("id-short", "an id has sixteen bytes", changed(3, ID.bytes[:15])),
        invalid("service-utf8", "a service is UTF-8", changed(4, b"\xff")),
        invalid("trace-utf8", "a traceparent is UTF-8", changed(5, b"\xff")),
        invalid("empty-with-body", "content type empty has no body", changed(6, b"{}")),
    ],
    "broadcasts": [
        broadcast({"type": "config_update", "key": "tempo", "value": {"bpm": 120}}),
        broadcast({"type": "shutdown", "reason": "upgrade"}),
        broadcast({"type": "script_invalidate", "hash": "5d41402abc4b2a76b9719d911017c592"}),
        broadcast({"type": "job_state_changed", "job_id": "j1", "state": "complete", "result": {"n": 1}}),
        broadcast({"type": "progress", "job_id": str(ID), "percent": 0.25, "message": "rendering"}),
        broadcast({"type": "progress", "job_id": "j1", "percent": 1.0, "message": "done"}, MSGPACK),
        broadcast({"type": "artifact_created", "artifact_id": "artifact_5d41402abc4b",
                   "content_hash": "5d41402abc4b2a76b9719d911017c592", "tags": ["type:midi"], "creator": "ann"}),
        broadcast({"type": "transport_state_changed", "state": "playing", "position_beats": 4.5, "tempo_bpm": 120.0}),
        broadcast({"type": "marker_reached", "position_beats": 16.0, "marker_type": "section", "metadata": {"name": "B"}}),
        broadcast({"type": "beat_tick", "beat": 17, "position_beats": 17.0, "tempo_bpm": 120.0}, MSGPACK),
        broadcast({"type": "log", "level": "info", "message": "ready", "source": "hootenanny"}),
        broadcast({"type": "device_connected", "name": "a later kind: pass it on"}),
    ],
}, indent=1, ensure_ascii=False))
