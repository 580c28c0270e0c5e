package host

import (
	"context"
	"encoding/json"
	"time"
)

// KV holds the values that a script stores between its runs. Each script of each
// principal has its own.
type KV interface {
	// Get returns the value of a key; nil if there is none.
	Get(ctx context.Context, key string) (json.RawMessage, error)
	// Set stores a value. With a positive lifetime it is removed after that time.
	Set(ctx context.Context, key string, value json.RawMessage, lifetime time.Duration) error
	// Delete removes a value. It returns false if there was none.
	Delete(ctx context.Context, key string) (bool, error)
	// Swap stores the new value if the present one is old, and reports whether it was;
	// nil means that there is no value. A change with the same token, if it is not "", is
	// made once.
	Swap(ctx context.Context, key string, change KVChange) (bool, error)
	// List returns the values whose keys begin with prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]KVEntry, error)
}

// KVChange is a conditional change of a value.
type KVChange struct {
	Old, New json.RawMessage // nil means that there is no value
	Lifetime time.Duration   // of the new value; 0 means no limit
	Token    string
}

// KVEntry is a stored value as scripts see it.
type KVEntry struct {
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	Expires int64           `json:"expires,omitempty"` // milliseconds since 1970; 0 means never
}
