package host

import (
	"context"
	"encoding/json"
)

// ResumeStore records a run that resumes after its approval, so that another process can
// continue it after a crash.
type ResumeStore interface {
	Recorder
	// Past returns what a process that crashed had recorded.
	Past(ctx context.Context) ([][]byte, error)
	// Finish stores the outcome of the run and ends it.
	Finish(ctx context.Context, outcome json.RawMessage) error
}
