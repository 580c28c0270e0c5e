package host

import (
	"context"
	"encoding/json"
	"time"
)

// Results are values kept for later runs, each under a handle such as "$r12".
// They belong to users.
type Results interface {
	// Read gives a value, or the part a JSON pointer leads to.
	Read(ctx context.Context, owner, handle, pointer string) (json.RawMessage, error)
	// Slice leaves out the first items of a list or characters of a text and gives
	// count of the rest; total is how many there are.
	Slice(ctx context.Context, owner, handle, pointer string, skip, count int) (part json.RawMessage, total int, err error)
	// Keep keeps a value and returns its handle.
	Keep(ctx context.Context, owner, source string, value json.RawMessage) (handle string, err error)
	// List lists what is kept, the newest first.
	List(ctx context.Context, owner string) ([]StoredResult, error)
}

// StoredResult is what is known of a value that is kept.
type StoredResult struct {
	Handle  string    `json:"handle"`
	Source  string    `json:"source"`
	Shape   string    `json:"shape"`
	Bytes   int64     `json:"bytes"`
	Expires time.Time `json:"expires"`
}
