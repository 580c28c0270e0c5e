package hootproto

import "encoding/json"

// Broadcast is something a backend tells everybody on its PUB socket: a message
// of one frame, an object whose type says which of these it is.
type Broadcast interface{ broadcast() string }

// The broadcasts.
type (
	// ConfigUpdate is a setting that changed.
	ConfigUpdate struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	// Shutdown is a backend about to end.
	Shutdown struct {
		Reason string `json:"reason"`
	}
	// ScriptInvalidate is a script that is no longer what it was.
	ScriptInvalidate struct {
		Hash string `json:"hash"`
	}
	// JobStateChanged is a job that began, ended or was called off.
	JobStateChanged struct {
		JobID  string          `json:"job_id"`
		State  string          `json:"state"`
		Result json.RawMessage `json:"result,omitempty"`
	}
	// Progress is how far a job is, from 0 to 1. The job may be a call under
	// way: then JobID is the id of its request. Done and Total are the same in
	// units of the work; with no Total nobody knows how much there is.
	Progress struct {
		JobID   string  `json:"job_id"`
		Percent float64 `json:"percent"`
		Message string  `json:"message"`
		Done    float64 `json:"done,omitempty"`
		Total   float64 `json:"total,omitempty"`
	}
	// ArtifactCreated is something new in the store.
	ArtifactCreated struct {
		ArtifactID  string   `json:"artifact_id"`
		ContentHash string   `json:"content_hash"`
		Tags        []string `json:"tags"`
		Creator     string   `json:"creator,omitempty"`
	}
	// TransportStateChanged is music that began to play, or stopped.
	TransportStateChanged struct {
		State         string  `json:"state"`
		PositionBeats float64 `json:"position_beats"`
		TempoBPM      float64 `json:"tempo_bpm"`
	}
	// MarkerReached is a point of the timeline that playing came to.
	MarkerReached struct {
		PositionBeats float64         `json:"position_beats"`
		MarkerType    string          `json:"marker_type"`
		Metadata      json.RawMessage `json:"metadata,omitempty"`
	}
	// BeatTick is one beat of the music.
	BeatTick struct {
		Beat          uint64  `json:"beat"`
		PositionBeats float64 `json:"position_beats"`
		TempoBPM      float64 `json:"tempo_bpm"`
	}
	// Log is a line of the backend's log. JobID names the job or the call it is
	// about, as that of Progress does.
	Log struct {
		Level   string `json:"level"`
		Message string `json:"message"`
		Source  string `json:"source"`
		JobID   string `json:"job_id,omitempty"`
	}
	// RawBroadcast is a broadcast we do not know, as it came.
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

// MarshalJSON writes the broadcast as it came.
func (o RawBroadcast) MarshalJSON() ([]byte, error) { return o.Raw, nil }

// EncodeBroadcast is b as the one frame of a message, in JSON or MessagePack.
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

// DecodeBroadcast reads a broadcast.
func DecodeBroadcast(frame []byte) (Broadcast, error) {
	o, err := ParseBroadcast(frame)
	if err != nil {
		return nil, err
	}
	return o.Decode()
}

// ParseBroadcast reads no more of a broadcast than its type, so that it can be passed
// on as it came. Its first byte tells JSON from MessagePack: an object begins with
// { in one and never in the other.
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

// Decode is the broadcast as what its type says it is, or as it came.
func (o RawBroadcast) Decode() (Broadcast, error) {
	b, err := recognise(o.Type, o.Raw)
	if err != nil {
		return nil, malformed("read broadcast %s: %v", o.Type, err)
	}
	return b, nil
}

// recognise reads a broadcast of a type.
func recognise(kind string, raw json.RawMessage) (Broadcast, error) {
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
