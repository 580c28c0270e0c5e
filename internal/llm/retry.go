package llm

import "time"

// Wait tells that a provider could not answer and is asked again.
type Wait struct {
	Attempt int // that failed, from 1
	Delay   time.Duration
	Status  int // HTTP status, or 0 when the connection failed
}
