// Package kv is the kv module of scripts: values that a script stores under keys between
// its runs, with an optional lifetime.
package kv

import (
	"context"
	_ "embed"
	"encoding/json"
	"math"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed kv.md
var page string

// Module is the global kv. In a job that is repeated after a crash, setting and deleting
// again changes nothing further, and comparing again has the outcome of the first time.
func Module() host.Module {
	return host.Module{Name: "kv", Page: page, Funcs: []host.Func{
		{Name: "get", Kind: host.Read, Effect: get},
		{Name: "set", Kind: host.Idempotent, Overlay: true, Effect: set},
		{Name: "delete", Kind: host.Idempotent, Overlay: true, Effect: remove},
		{Name: "compare_and_set", Kind: host.Idempotent, Overlay: true, Effect: compareAndSet},
		{Name: "list", Kind: host.Read, Effect: list},
	}}
}

// keyAt reads the key, the first argument of most functions.
func keyAt(w *host.Services, args host.Args) (string, error) {
	key, err := args.String(1)
	if err == nil && w.KV == nil {
		err = errNoValues(args)
	}
	return key, err
}

func errNoValues(args host.Args) error {
	return fault.New(fault.Unavailable, "%s: this run cannot store values", args.Func)
}

// get(key, default?) returns the value of a key.
func get(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	key, err := keyAt(w, args)
	if err != nil {
		return nil, err
	}
	value, err := w.KV.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return []host.Value{args.At(2)}, nil
	}
	return []host.Value{value}, nil
}

// set(key, value, options?) stores a value; nil deletes it.
func set(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	key, err := keyAt(w, args)
	if err != nil {
		return nil, err
	}
	value, err := valueAt(args, 2)
	if err != nil {
		return nil, err
	}
	lifetime, err := lifetimeAt(args, 3)
	if err != nil {
		return nil, err
	}
	if value == nil {
		_, err = w.KV.Delete(ctx, key)
	} else {
		err = w.KV.Set(ctx, key, value, lifetime)
	}
	return nil, err
}

// remove(key) deletes a value.
func remove(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	key, err := keyAt(w, args)
	if err != nil {
		return nil, err
	}
	removed, err := w.KV.Delete(ctx, key)
	return []host.Value{removed}, err
}

// compareAndSet(key, old, new, options?) stores a value if the present one is old.
func compareAndSet(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	key, err := keyAt(w, args)
	if err != nil {
		return nil, err
	}
	change := host.KVChange{Token: w.Token(ctx)}
	if change.Old, err = valueAt(args, 2); err != nil {
		return nil, err
	}
	if change.New, err = valueAt(args, 3); err != nil {
		return nil, err
	}
	if change.Lifetime, err = lifetimeAt(args, 4); err != nil {
		return nil, err
	}
	swapped, err := w.KV.Swap(ctx, key, change)
	return []host.Value{swapped}, err
}

// list(prefix?) lists the values.
func list(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	prefix, err := args.OptString(1, "")
	if err != nil {
		return nil, err
	}
	if w.KV == nil {
		return nil, errNoValues(args)
	}
	entries, err := w.KV.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(append([]host.KVEntry{}, entries...))
	return []host.Value{table}, err
}

// valueAt returns argument i as JSON; nil if it is missing.
func valueAt(args host.Args, i int) (json.RawMessage, error) {
	v := args.At(i)
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "null" {
		return nil, err
	}
	return raw, nil
}

// longest is the longest lifetime, in milliseconds: a hundred years.
const longest = 100 * 365 * 24 * 3600 * 1000

// lifetimeAt reads the options in argument i.
func lifetimeAt(args host.Args, i int) (time.Duration, error) {
	var options struct {
		TTL *float64 `json:"ttl_ms"`
	}
	if err := args.Decode(i, &options); err != nil || options.TTL == nil {
		return 0, err
	}
	ttl := *options.TTL
	if math.IsNaN(ttl) || ttl <= 0 || ttl > longest {
		return 0, fault.New(fault.InvalidParams, "%s: ttl_ms must be a positive number of milliseconds, got %v", args.Func, ttl)
	}
	return max(time.Duration(ttl*float64(time.Millisecond)), time.Microsecond), nil
}
