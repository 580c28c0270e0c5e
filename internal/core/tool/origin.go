package tool

import (
	"context"
	"sync/atomic"
	"time"
)

// Origin says what a call is part of: the call of a tool of ours that makes it, or a job.
type Origin struct {
	Call [8]byte // id of the call that makes it
	Job  string  // id of the job; "" if it is part of none
	Name string  // of the job's script

	// Asker is the client that asked for it, if somebody else has it go on.
	Asker *Asker

	outer  *Origin
	waited atomic.Int64
}

// Asker is the client of a run that goes on after the client had an answer: that the run
// waits for approval.
type Asker struct {
	ID    string  `json:"id,omitempty"` // of the Caller
	Agent string  `json:"agent,omitempty"`
	Call  [8]byte `json:"call"` // the client's
}

type originKey struct{}

// WithJob returns ctx for what a job does.
func WithJob(ctx context.Context, id, name string) context.Context {
	return context.WithValue(ctx, originKey{}, &Origin{Job: id, Name: name})
}

// WithCall returns ctx for what a call does, and where its waiting is counted.
func WithCall(ctx context.Context, call [8]byte) context.Context {
	inner := &Origin{Call: call, outer: OriginOf(ctx)}
	if inner.outer != nil {
		inner.Job, inner.Name, inner.Asker = inner.outer.Job, inner.outer.Name, inner.outer.Asker
	}
	return context.WithValue(ctx, originKey{}, inner)
}

// AskerOf is the client of what caller has asked for in ctx.
func AskerOf(ctx context.Context, caller *Caller) *Asker {
	switch o := OriginOf(ctx); {
	case o == nil || caller == nil:
		return nil
	case o.Asker != nil:
		return o.Asker
	default:
		return &Asker{ID: caller.ID, Agent: caller.Agent, Call: o.Call}
	}
}

// WithAsker returns ctx for what goes on as part of that client's call.
func WithAsker(ctx context.Context, a *Asker) context.Context {
	return context.WithValue(ctx, originKey{}, &Origin{Call: a.Call, Asker: a})
}

// OriginOf returns what ctx is part of, or nil.
func OriginOf(ctx context.Context) *Origin {
	o, _ := ctx.Value(originKey{}).(*Origin)
	return o
}

// Waited counts time in which the call of ctx, and those that led to it, waited for a person.
func Waited(ctx context.Context, took time.Duration) {
	for o := OriginOf(ctx); o != nil; o = o.outer {
		o.waited.Add(int64(took))
	}
}

// Waited is how long the call has waited for people.
func (o *Origin) Waited() time.Duration { return time.Duration(o.waited.Load()) }

// Outer is what the call itself is part of, or nil.
func (o *Origin) Outer() *Origin { return o.outer }
