package hootproto

import "encoding/json"

// Broadcast is a message of one frame on a backend's PUB socket: an object whose
// member "type" names one of the types below.
type Broadcast interface{ broadcast() string }

// The broadcasts.
type (
	// ConfigUpdate: a setting changed.
	ConfigUpdate struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	// Shutdown: the backend is about to exit.
	Shutdown struct {
		Reason string `json:"reason"`
	}
	// ScriptInvalidate: a script changed.
	ScriptInvalidate struct {
		Hash string `json:"hash"`
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
	// ArtifactCreated: an artifact was created.
	ArtifactCreated struct {
		ArtifactID  string   `json:"artifact_id"`
		ContentHash string   `json:"content_hash"`
		Tags        []string `json:"tags"`
		Creator     string   `json:"creator,omitempty"`
	}
	// TransportStateChanged: playback started or stopped.
	TransportStateChanged struct {
		Project       string  `json:"project,omitempty"`
		State         string  `json:"state"`
		PositionBeats float64 `json:"position_beats"`
		TempoBPM      float64 `json:"tempo_bpm"`
	}
	// MarkerReached: playback reached a marker of the timeline.
	MarkerReached struct {
		Project       string          `json:"project,omitempty"`
		PositionBeats float64         `json:"position_beats"`
		MarkerType    string          `json:"marker_type"`
		Metadata      json.RawMessage `json:"metadata,omitempty"`
	}
	// BeatTick: playback reached a beat.
	BeatTick struct {
		Project       string  `json:"project,omitempty"`
		Beat          uint64  `json:"beat"`
		PositionBeats float64 `json:"position_beats"`
		TempoBPM      float64 `json:"tempo_bpm"`
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

func (ConfigUpdate) broadcast() string          { return "config_update" }
func (Shutdown) broadcast() string              { return "shutdown" }
func (ScriptInvalidate) broadcast() string      { return "script_invalidate" }
func (JobStateChanged) broadcast() string       { return "job_state_changed" }
func (Progress) broadcast() string              { return "progress" }
func (ArtifactCreated) broadcast() string       { return "artifact_created" }
func (TransportStateChanged) broadcast() string { return "transport_state_changed" }
func (MarkerReached) broadcast() string         { return "marker_reached" }
func (BeatTick) broadcast() string              { return "beat_tick" }
func (Log) broadcast() string                   { return "log" }
func (o RawBroadcast) broadcast() string        { return o.Type }

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

// DecodeBroadcast decodes a broadcast.
func DecodeBroadcast(frame []byte) (Broadcast, error) {
	o, err := ParseBroadcast(frame)
	if err != nil {
		return nil, err
	}
	return o.Decode()
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
func (o RawBroadcast) Decode() (Broadcast, error) {
	b, err := decodeBroadcast(o.Type, o.Raw)
	if err != nil {
		return nil, malformed("read broadcast %s: %v", o.Type, err)
	}
	return b, nil
}

func decodeBroadcast(kind string, raw json.RawMessage) (Broadcast, error) {
	switch kind {
	case ConfigUpdate{}.broadcast():
		return read[ConfigUpdate](raw)
	case Shutdown{}.broadcast():
		return read[Shutdown](raw)
	case ScriptInvalidate{}.broadcast():
		return read[ScriptInvalidate](raw)
	case JobStateChanged{}.broadcast():
		return read[JobStateChanged](raw)
	case Progress{}.broadcast():
		return read[Progress](raw)
	case ArtifactCreated{}.broadcast():
		return read[ArtifactCreated](raw)
	case TransportStateChanged{}.broadcast():
		return read[TransportStateChanged](raw)
	case MarkerReached{}.broadcast():
		return read[MarkerReached](raw)
	case BeatTick{}.broadcast():
		return read[BeatTick](raw)
	case Log{}.broadcast():
		return read[Log](raw)
	default:
		return RawBroadcast{Type: kind, Raw: raw}, nil
	}
}

func read[T Broadcast](raw json.RawMessage) (Broadcast, error) {
	var b T
	err := json.Unmarshal(raw, &b)
	return b, err
}
