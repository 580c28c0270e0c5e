package host

import (
	"context"
	"encoding/json"
)

// ResumeStore keeps a run that goes on after somebody's word: what it does from there
// on is recorded where it survives the process, so that another one can go on.
type ResumeStore interface {
	Recorder
	// Past is what was recorded before, by a process that died.
	Past(ctx context.Context) ([][]byte, error)
	// Finish keeps what became of the run, which is over then.
	Finish(ctx context.Context, outcome json.RawMessage) error
}
