// Package job runs scripts in the background so that they survive the process.
// A job is stored before its id is returned. What it does to the world is
// journaled; when the process dies, the next one runs the script again, answers
// from the journal what is known, and goes on from there.
//
// It does not know what a script is: a Runner does.
package job

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

// State is where a job stands.
type State string

// The states. The last three are final.
const (
	Pending   State = "pending" // stored, waiting for its time or its turn
	Running   State = "running"
	Waiting   State = "waiting" // for somebody's approval
	Complete  State = "complete"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// States are all of them.
func States() []State { return []State{Pending, Running, Waiting, Complete, Failed, Cancelled} }

// Final tells whether nothing more happens in this state.
func (s State) Final() bool { return s == Complete || s == Failed || s == Cancelled }

// Spec is what a job is to do.
type Spec struct {
	Name     string          // what messages call the script
	Hash     string          // of a stored script, or ""
	Source   string          // the script itself
	Params   json.RawMessage // the argument of its main; nil means {}
	Creator  string          // who: jobs of different creators take turns
	Tags     []string
	Priority int           // among the creator's jobs, higher first
	Delay    time.Duration // how long it waits at least
	Start    time.Time     // or until when; zero is at once
}

// check refuses what cannot be stored, and puts tags in order.
func (s Spec) check() (Spec, error) {
	switch {
	case strings.TrimSpace(s.Source) == "":
		return s, fault.New(fault.InvalidParams, "the job has no script")
	case len(s.Params) > 0 && !json.Valid(s.Params):
		return s, fault.New(fault.InvalidParams, "the job's params are not JSON")
	case s.Delay < 0:
		return s, fault.New(fault.InvalidParams, "the job's delay is negative: %s", s.Delay)
	}
	var tags []string
	for _, tag := range s.Tags {
		if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	s.Tags = tags
	return s, nil
}

// Job is a job as it stands.
type Job struct {
	ID string
	Spec
	Schedule string // the schedule that started it, or ""
	State    State
	Created  time.Time
	Due      time.Time // when it may start
	Started  time.Time // zero before it did
	Finished time.Time // zero before it did
	Progress float64   // 0 to 1, as the script says
	Message  string    // what it says it is doing
	Result   json.RawMessage
	Error    *Failure
	Output   []host.OutputLine // kept to itself in lists
}

// Failure is why a job failed, as it was stored.
type Failure struct {
	Code    fault.Code      `json:"code"`
	Message string          `json:"message"`
	Hint    string          `json:"hint,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

func failureOf(err error) *Failure {
	f := fault.From(err)
	return &Failure{Code: f.Code, Message: f.Error(), Hint: fault.HintOf(f), Details: f.Details}
}

// Runner runs scripts. The error is the script's failure; output is in the
// outcome either way. When ctx ends, it stops the script wherever it is.
type Runner interface {
	RunJob(ctx context.Context, task Task) (Outcome, error)
}

// Task is one run of a job's script.
type Task struct {
	ID string
	Spec
	Created  time.Time                              // of the job
	Language string                                 // what the script is written in; "" where its hash tells
	Handler  host.Handler                           // handles the script's effects
	Offline  bool                                   // the handler answers all effects: upstreams are not needed
	Temp     string                                 // a folder that lives as long as the job; "" gives none
	Progress func(fraction float64, message string) // never nil
	Watch    func(host.OutputLine)                  // sees output as it is said; never nil
}

// Outcome is what a run left behind.
type Outcome struct {
	Result json.RawMessage
	Output []host.OutputLine
}

// newID is a random UUID, version 4.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
