package llm

// Usage is the usage of answers. Input excludes tokens read from or written to the
// provider's cache.
type Usage struct {
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	CacheRead  int64   `json:"cache_read_input_tokens"`
	CacheWrite int64   `json:"cache_creation_input_tokens"`
	Cost       float64 `json:"cost_usd"` // by the price table; 0 for a model of unknown price
}

// Add adds the usage of another answer.
func (u *Usage) Add(o Usage) {
	u.Input += o.Input
	u.Output += o.Output
	u.CacheRead += o.CacheRead
	u.CacheWrite += o.CacheWrite
	u.Cost += o.Cost
}

// Total returns the number of all tokens.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Without returns u without what is part of it.
func (u Usage) Without(part Usage) Usage {
	return Usage{
		Input: u.Input - part.Input, Output: u.Output - part.Output,
		CacheRead: u.CacheRead - part.CacheRead, CacheWrite: u.CacheWrite - part.CacheWrite, Cost: u.Cost - part.Cost,
	}
}
