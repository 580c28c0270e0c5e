// Package kv is the kv module of scripts: values that a script stores under keys between
// its runs, with an optional lifetime.
package kv

import (
	"context"
	_ "embed"
	"encoding/json"
	"math"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/kv"
)

//go:embed kv.md
var page string

// Module is the global kv. In a job that is repeated after a crash, setting and deleting
// again changes nothing further, and comparing again has the outcome of the first time.
func Module() host.Module {
	return host.Module{Name: "kv", Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "get", Kind: host.Read, Effect: host.Bind(get)},
		{Name: "set", Kind: host.Idempotent, Overlay: true, Effect: host.Bind(set), Action: host.Does("store the value", 1)},
		{Name: "delete", Kind: host.Idempotent, Overlay: true, Effect: host.Bind(remove), Action: host.Does("delete the value", 1)},
		{Name: "compare_and_set", Kind: host.Idempotent, Overlay: true, Effect: host.Bind(compareAndSet), Action: host.Does("store the value", 1)},
		{Name: "list", Kind: host.Read, Effect: host.Bind(list)},
	}}
}

// valuesOf returns the values of the script, or an error if it has none.
func valuesOf(w *host.Services, args host.Args) (host.KV, error) {
	if w.KV == nil {
		return nil, fault.New(fault.Unavailable, "%s: this run cannot store values", args.Func)
	}
	return w.KV, nil
}

// get(key, default?) returns the value of a key.
func get(ctx context.Context, w *host.Services, args host.Args, key string, otherwise host.Value) (host.Value, error) {
	values, err := valuesOf(w, args)
	if err != nil {
		return nil, err
	}
	value, err := values.Get(ctx, key)
	if value == nil {
		return otherwise, err
	}
	return value, err
}

// set(key, value, options?) stores a value; nil deletes it.
func set(ctx context.Context, w *host.Services, args host.Args, key string, value host.Value) error {
	values, err := valuesOf(w, args)
	if err != nil {
		return err
	}
	raw, err := encoded(value)
	if err != nil {
		return err
	}
	lifetime, err := lifetimeAt(args, 3)
	if err != nil {
		return err
	}
	if raw == nil {
		_, err = values.Delete(ctx, key)
		return err
	}
	return values.Set(ctx, key, raw, lifetime)
}

// remove(key) deletes a value.
func remove(ctx context.Context, w *host.Services, args host.Args, key string) (bool, error) {
	values, err := valuesOf(w, args)
	if err != nil {
		return false, err
	}
	return values.Delete(ctx, key)
}

// compareAndSet(key, old, new, options?) stores a value if the present one is old.
func compareAndSet(ctx context.Context, w *host.Services, args host.Args, key string) (bool, error) {
	values, err := valuesOf(w, args)
	if err != nil {
		return false, err
	}
	change := kv.Change{Token: w.Token(ctx)}
	if change.Old, err = encoded(args.At(2)); err != nil {
		return false, err
	}
	if change.New, err = encoded(args.At(3)); err != nil {
		return false, err
	}
	if change.Lifetime, err = lifetimeAt(args, 4); err != nil {
		return false, err
	}
	return values.Swap(ctx, key, change)
}

// list(prefix?) lists the values.
func list(ctx context.Context, w *host.Services, args host.Args, prefix *string) ([]host.KVEntry, error) {
	values, err := valuesOf(w, args)
	if err != nil {
		return nil, err
	}
	return values.List(ctx, host.Or(prefix, ""))
}

// encoded returns a value as JSON; nil if it is missing.
func encoded(value host.Value) (json.RawMessage, error) {
	if text, ok := value.(string); ok && !utf8.ValidString(text) { // JSON would lose what is none
		return nil, fault.New(fault.InvalidParams, "the value is bytes that are not text").
			WithHint("store them as base64: base64.encode(bytes), in JavaScript bytes.toBase64()")
	}
	raw, err := json.Marshal(value)
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
