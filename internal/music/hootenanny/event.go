package hootenanny

// TransportStateChanged: playback started, stopped or moved.
type TransportStateChanged struct {
	State    string  `json:"state"`
	Position float64 `json:"position_beats"`
	Tempo    float64 `json:"tempo_bpm"`
}

// EventType is "transport.state_changed".
func (TransportStateChanged) EventType() string { return "transport.state_changed" }

// BeatTick: playback reached a beat.
type BeatTick struct {
	Beat     uint64  `json:"beat"`
	Position float64 `json:"position_beats"`
	Tempo    float64 `json:"tempo_bpm"`
}

// EventType is "beat.tick".
func (BeatTick) EventType() string { return "beat.tick" }

// MarkerReached: playback reached a marker.
type MarkerReached struct {
	ID       string  `json:"marker_id"`
	Position float64 `json:"position_beats"`
	Type     string  `json:"marker_type"`
	Metadata object  `json:"metadata,omitempty"`
}

// EventType is "marker.reached".
func (MarkerReached) EventType() string { return "marker.reached" }

// RegionEntered: playback entered a region.
type RegionEntered struct {
	Region
}

// EventType is "region.entered".
func (RegionEntered) EventType() string { return "region.entered" }

// RegionLeft: playback left a region.
type RegionLeft struct {
	Region
}

// EventType is "region.left".
func (RegionLeft) EventType() string { return "region.left" }
