package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/store/kv"
)

// overlayKV is a KV for rehearsals: it holds what would be stored or deleted in memory,
// over the real one. Nothing expires.
type overlayKV struct {
	KV

	mu   sync.Mutex
	held map[string]json.RawMessage // nil means deleted
}

func newOverlayKV(k KV) KV { return &overlayKV{KV: k, held: map[string]json.RawMessage{}} }

// Get looks in memory first.
func (o *overlayKV) Get(ctx context.Context, key string) (json.RawMessage, error) {
	o.mu.Lock()
	value, held := o.held[key]
	o.mu.Unlock()
	if held {
		return value, nil
	}
	return o.KV.Get(ctx, key)
}

func (o *overlayKV) put(key string, value json.RawMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held[key] = value
}

// Set checks the value as the store does and holds it in memory.
func (o *overlayKV) Set(_ context.Context, key string, value json.RawMessage, _ time.Duration) error {
	if err := kv.Check(key, value); err != nil {
		return err
	}
	o.put(key, value)
	return nil
}

// Delete remembers that the value is gone.
func (o *overlayKV) Delete(ctx context.Context, key string) (bool, error) {
	value, err := o.Get(ctx, key)
	if err == nil {
		o.put(key, nil)
	}
	return value != nil, err
}

// Swap compares with what Get returns.
func (o *overlayKV) Swap(ctx context.Context, key string, c KVChange) (bool, error) {
	value, err := o.Get(ctx, key)
	if err == nil {
		err = kv.Check(key, c.New)
	}
	if err != nil || !kv.Equal(value, c.Old) {
		return false, err
	}
	o.put(key, c.New)
	return true, nil
}

// List merges what is held with what is stored.
func (o *overlayKV) List(ctx context.Context, prefix string) ([]KVEntry, error) {
	stored, err := o.KV.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]KVEntry{}
	for _, e := range stored {
		all[e.Key] = e
	}
	for key, value := range o.held {
		if delete(all, key); value != nil && strings.HasPrefix(key, prefix) {
			all[key] = KVEntry{Key: key, Value: value}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b KVEntry) int { return strings.Compare(a.Key, b.Key) }), nil
}
