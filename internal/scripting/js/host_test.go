package js

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// HostFuncs is a Host made of functions. Nil fields have defaults: no such function, a
// real sleep, the system clock, a random seed.
type HostFuncs struct {
	OnCall func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
	OnSync func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
	OnNow  func(ctx context.Context) time.Time
	OnSeed func(ctx context.Context) uint64
}

// Start calls OnCall, on the call's own goroutine; without it only "sleep" exists.
func (h HostFuncs) Start(name string, args json.RawMessage) func(context.Context) (json.RawMessage, error) {
	return func(ctx context.Context) (json.RawMessage, error) { return h.call(ctx, name, args) }
}

// Next returns answers in the order they arrive.
func (h HostFuncs) Next(ctx context.Context, first func(context.Context) (int, error)) (int, error) {
	return first(ctx)
}

func (h HostFuncs) call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	switch {
	case h.OnCall != nil:
		return h.OnCall(ctx, name, args)
	case name == "sleep":
		return nil, Sleep(ctx, args)
	default:
		return nil, fault.New(fault.ToolNotFound, "no function %s", name)
	}
}

// CallSync calls OnSync.
func (h HostFuncs) CallSync(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if h.OnSync == nil {
		return nil, fault.New(fault.ToolNotFound, "no function %s", name)
	}
	return h.OnSync(ctx, name, args)
}

// Now calls OnNow, or returns the system time.
func (h HostFuncs) Now(ctx context.Context) time.Time {
	if h.OnNow == nil {
		return time.Now()
	}
	return h.OnNow(ctx)
}

// Seed calls OnSeed, or returns a random seed.
func (h HostFuncs) Seed(ctx context.Context) uint64 {
	if h.OnSeed == nil {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		return binary.LittleEndian.Uint64(b[:])
	}
	return h.OnSeed(ctx)
}

// Sleep implements sleep(ms) in real time: args is the JSON array [ms]. It returns early
// when ctx ends.
func Sleep(ctx context.Context, args json.RawMessage) error {
	var ms []float64
	if err := json.Unmarshal(args, &ms); err != nil || len(ms) != 1 || ms[0] < 0 {
		return fault.New(fault.InvalidParams, "sleep takes a number of milliseconds")
	}
	const longest = float64(24 * time.Hour / time.Millisecond)
	timer := time.NewTimer(time.Duration(min(ms[0], longest) * float64(time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
