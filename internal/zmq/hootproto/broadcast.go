package hootproto

import "encoding/json"

// Broadcast is a message of one frame on a backend's PUB socket: an object whose
// member "type" names one of the types below, or another one.
type Broadcast interface{ broadcast() string }

// The broadcasts that either end reads or makes. docs/backends.md lists others, which
// are passed on as they came.
type (
	// Shutdown: the backend is about to exit.
	Shutdown struct {
		Reason string `json:"reason"`
	}
	// JobStateChanged: a job started, ended or was cancelled.
	JobStateChanged struct {
		JobID  string          `json:"job_id"`
		State  string          `json:"state"`
		Result json.RawMessage `json:"result,omitempty"`
	}
	// Progress is the progress of a job, from 0 to 1. The job may be a running call:
	// then JobID is the id of its request. Done and Total are the same in units of
	// the work; without Total the total is unknown.
	Progress struct {
		JobID   string  `json:"job_id"`
		Percent float64 `json:"percent"`
		Message string  `json:"message"`
		Done    float64 `json:"done,omitempty"`
		Total   float64 `json:"total,omitempty"`
	}
	// Log is a line of the backend's log. JobID is the job or the call it belongs
	// to, as in Progress.
	Log struct {
		Level   string `json:"level"`
		Message string `json:"message"`
		Source  string `json:"source"`
		JobID   string `json:"job_id,omitempty"`
	}
	// RawBroadcast is an undecoded broadcast.
	RawBroadcast struct {
		Type string
		Raw  json.RawMessage
	}
)

func (Shutdown) broadcast() string        { return "shutdown" }
func (JobStateChanged) broadcast() string { return "job_state_changed" }
func (Progress) broadcast() string        { return "progress" }
func (Log) broadcast() string             { return "log" }
func (o RawBroadcast) broadcast() string  { return o.Type }

// MarshalJSON returns the broadcast unchanged.
func (o RawBroadcast) MarshalJSON() ([]byte, error) { return o.Raw, nil }

// EncodeBroadcast encodes b as the only frame of a message, in JSON or
// MessagePack.
func EncodeBroadcast(content ContentType, b Broadcast) ([]byte, error) {
	if o, ok := b.(RawBroadcast); ok {
		return FromJSON(content, o.Raw)
	}
	raw, err := tagged(b.broadcast(), b)
	if err != nil {
		return nil, err
	}
	return FromJSON(content, raw)
}

// ParseBroadcast reads only the type of a broadcast, so that it can be forwarded
// unchanged. The first byte distinguishes JSON from MessagePack: an object begins
// with { in JSON and never in MessagePack.
func ParseBroadcast(frame []byte) (RawBroadcast, error) {
	content := MsgPack
	if len(frame) > 0 && frame[0] == '{' {
		content = JSON
	}
	raw, err := ToJSON(content, frame)
	if err != nil {
		return RawBroadcast{}, err
	}
	kind, err := kindOf(raw)
	return RawBroadcast{Type: kind, Raw: raw}, err
}

// Decode decodes the broadcast by its type, or returns it unchanged if the type is
// unknown.
func (o RawBroadcast) Decode() (b Broadcast, err error) {
	switch o.Type {
	case Shutdown{}.broadcast():
		b, err = read[Shutdown](o.Raw)
	case JobStateChanged{}.broadcast():
		b, err = read[JobStateChanged](o.Raw)
	case Progress{}.broadcast():
		b, err = read[Progress](o.Raw)
	case Log{}.broadcast():
		b, err = read[Log](o.Raw)
	default:
		return o, nil
	}
	if err != nil {
		return nil, malformed("read broadcast %s: %v", o.Type, err)
	}
	return b, nil
}

func read[T Broadcast](raw json.RawMessage) (Broadcast, error) {
	var b T
	err := json.Unmarshal(raw, &b)
	return b, err
}
