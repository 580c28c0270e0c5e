package hootenanny

// TransportStateChanged is published when playback starts, stops or moves.
type TransportStateChanged struct {
	Project  string  `json:"project"`
	State    string  `json:"state"`
	Position float64 `json:"position_beats"`
	Tempo    float64 `json:"tempo_bpm"`
}

// EventType is "transport.state_changed".
func (TransportStateChanged) EventType() string { return "transport.state_changed" }

// BeatTick is published when playback reaches a beat.
type BeatTick struct {
	Project  string  `json:"project"`
	Beat     uint64  `json:"beat"`
	Position float64 `json:"position_beats"`
	Tempo    float64 `json:"tempo_bpm"`
}

// EventType is "beat.tick".
func (BeatTick) EventType() string { return "beat.tick" }

// MarkerReached is published when playback reaches a marker.
type MarkerReached struct {
	Project  string  `json:"project"`
	ID       string  `json:"marker_id"`
	Position float64 `json:"position_beats"`
	Type     string  `json:"marker_type"`
	Metadata object  `json:"metadata,omitempty"`
}

// EventType is "marker.reached".
func (MarkerReached) EventType() string { return "marker.reached" }

// RegionEntered is published when playback enters a region.
type RegionEntered struct {
	Project string `json:"project"`
	Region
}

// EventType is "region.entered".
func (RegionEntered) EventType() string { return "region.entered" }

// RegionLeft is published when playback leaves a region.
type RegionLeft struct {
	Project string `json:"project"`
	Region
}

// EventType is "region.left".
func (RegionLeft) EventType() string { return "region.left" }
