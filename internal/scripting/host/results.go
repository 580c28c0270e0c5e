package host

import (
	"context"
	"encoding/json"
	"time"
)

// Results are values stored for later runs of the same user, each under a handle such as
// "$r12".
type Results interface {
	// Read returns a value, or the part that a JSON pointer selects.
	Read(ctx context.Context, owner, handle, pointer string) (json.RawMessage, error)
	// Slice returns count items of a list, or characters of a text, after skipping the
	// first; total is how many there are.
	Slice(ctx context.Context, owner, handle, pointer string, skip, count int) (part json.RawMessage, total int, err error)
	// Keep stores a value and returns its handle.
	Keep(ctx context.Context, owner, source string, value json.RawMessage) (handle string, err error)
	// List lists the stored values, the newest first.
	List(ctx context.Context, owner string) ([]StoredResult, error)
}

// StoredResult describes a stored value.
type StoredResult struct {
	Handle  string    `json:"handle"`
	Source  string    `json:"source"`
	Shape   string    `json:"shape"`
	Bytes   int64     `json:"bytes"`
	Expires time.Time `json:"expires"`
}
