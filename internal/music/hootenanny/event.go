package hootenanny

// TransportStateChanged says that music began to play, stopped, or went elsewhere.
type TransportStateChanged struct {
	State    string  `json:"state"`
	Position float64 `json:"position_beats"`
	Tempo    float64 `json:"tempo_bpm"`
}

// EventType is "transport.state_changed".
func (TransportStateChanged) EventType() string { return "transport.state_changed" }

// BeatTick is one beat of the music that plays.
type BeatTick struct {
	Beat     uint64  `json:"beat"`
	Position float64 `json:"position_beats"`
	Tempo    float64 `json:"tempo_bpm"`
}

// EventType is "beat.tick".
func (BeatTick) EventType() string { return "beat.tick" }

// MarkerReached is a point of the timeline that playing came to.
type MarkerReached struct {
	ID       string  `json:"marker_id"`
	Position float64 `json:"position_beats"`
	Type     string  `json:"marker_type"`
	Metadata object  `json:"metadata,omitempty"`
}

// EventType is "marker.reached".
func (MarkerReached) EventType() string { return "marker.reached" }

// RegionEntered is a region of the timeline that playing came into.
type RegionEntered struct {
	Region
}

// EventType is "region.entered".
func (RegionEntered) EventType() string { return "region.entered" }

// RegionLeft is a region of the timeline that playing came out of.
type RegionLeft struct {
	Region
}

// EventType is "region.left".
func (RegionLeft) EventType() string { return "region.left" }
