// Package job runs scripts in the background so that they survive the process.
// A job is stored before its id is returned. Its effects are journaled: when the
// process dies, the next one runs the script again, answers the effects that the
// journal has, and continues from there.
//
// The package does not know the scripting languages: a Runner runs the scripts.
package job

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// State is the state of a job.
type State string

// The states. The last three are final.
const (
	Pending   State = "pending" // stored, waiting for its time or its turn
	Running   State = "running"
	Waiting   State = "waiting" // for approval
	Complete  State = "complete"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// States returns all states.
func States() []State { return []State{Pending, Running, Waiting, Complete, Failed, Cancelled} }

// Final reports whether a job in this state has ended.
func (s State) Final() bool { return s == Complete || s == Failed || s == Cancelled }

// Spec says what a job runs.
type Spec struct {
	Name     string          // name of the script in messages
	Hash     string          // of a stored script, or ""
	Source   string          // the script itself
	Language string          // of the source; "" if the hash or the name tells
	Params   json.RawMessage // the argument of its main; nil means {}
	Creator  string          // jobs of different creators take turns
	Tags     []string
	Priority int           // among the creator's jobs, higher first
	Delay    time.Duration // minimum time before the start
	Start    time.Time     // start time instead of a delay; zero means now

	journal   []byte // what the job has done already, as another job
	continues string // that job
}

// check validates the spec and sorts its tags.
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

// Job is a job with its current state.
type Job struct {
	ID string
	Spec
	Schedule string // the schedule that started it, or ""
	State    State
	Created  time.Time
	Due      time.Time // when it may start
	Started  time.Time // zero before the start
	Finished time.Time // zero before the end
	Progress float64   // 0 to 1, as reported by the script
	Message  string    // as reported by the script
	Result   json.RawMessage
	Error    *Failure
	Output   []host.OutputLine // empty in lists
	TraceID  string            // of the trace of its latest run; "" without traces
	By       string            // the client or key with which its owner started it; "" without one
	Sharing

	origin    string // the span that submitted it
	owner     principal.Owner
	ownerName string
	resumed   bool // an earlier process has run it
}

// Failure is the stored error of a failed job.
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

// Runner runs scripts. The error is the script's failure; the outcome has its output
// either way. When ctx ends, Run stops the script.
type Runner interface {
	RunJob(ctx context.Context, task Task) (Outcome, error)
}

// Task is one run of a job's script.
type Task struct {
	ID string
	Spec
	Created  time.Time                              // of the job
	Handler  host.Handler                           // handles the script's effects
	Queue    *Queue                                 // starts further jobs; nil if a journal answers everything
	Offline  bool                                   // the handler answers all effects: upstreams are not needed
	Temp     string                                 // a folder that is removed with the job; "" if there is none
	Progress func(fraction float64, message string) // never nil
	Watch    func(host.OutputLine)                  // receives output as it is written; never nil
}

// Outcome is the result of a run.
type Outcome struct {
	Result json.RawMessage
	Output []host.OutputLine
}

// newID returns a random UUID, version 4.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuid(b)
}

// uuid returns the bytes as a UUID, version 4.
func uuid(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Submitted is published when a job was stored.
type Submitted struct {
	ID      string   `json:"job_id"`
	Name    string   `json:"name,omitempty"`
	Creator string   `json:"creator,omitempty"`
	Tags    []string `json:"tags,omitempty"`
}

// EventType is "job.submitted".
func (Submitted) EventType() string { return "job.submitted" }

// EventKey is the job's id.
func (e Submitted) EventKey() string { return e.ID }

// Started is published when a job starts, or continues after a restart.
type Started struct {
	ID      string `json:"job_id"`
	Name    string `json:"name,omitempty"`
	Creator string `json:"creator,omitempty"`
	Resumed bool   `json:"resumed,omitempty"` // its journal was not empty
}

// EventType is "job.started".
func (Started) EventType() string { return "job.started" }

// EventKey is the job's id.
func (e Started) EventKey() string { return e.ID }

// Paused is published when a job waits for approval.
type Paused struct {
	ID       string `json:"job_id"`
	Name     string `json:"name,omitempty"`
	Creator  string `json:"creator,omitempty"`
	Approval string `json:"approval_id"`
	Subject  string `json:"subject"`
}

// EventType is "job.paused".
func (Paused) EventType() string { return "job.paused" }

// EventKey is the job's id.
func (e Paused) EventKey() string { return e.ID }

// Progressed is published when a job reports its progress.
type Progressed struct {
	ID       string  `json:"job_id"`
	Fraction float64 `json:"fraction"`
	Message  string  `json:"message,omitempty"`
}

// EventType is "job.progress".
func (Progressed) EventType() string { return "job.progress" }

// EventKey is the job's id.
func (e Progressed) EventKey() string { return e.ID }

// Finished is published when a job ends.
type Finished struct {
	ID      string `json:"job_id"`
	Name    string `json:"name,omitempty"`
	Creator string `json:"creator,omitempty"`
	State   State  `json:"status"`
	Error   string `json:"error,omitempty"`
	TookMS  int64  `json:"took_ms"`
}

// EventType is "job.finished".
func (Finished) EventType() string { return "job.finished" }

// EventKey is the job's id.
func (e Finished) EventKey() string { return e.ID }

// ForScripts starts jobs for scripts.
type ForScripts struct{ Queue *Queue }

// NewID returns the id of a job to start: the same for every call with one token, a new
// one if the token is "".
func (s ForScripts) NewID(token string) string {
	if token == "" {
		return newID()
	}
	sum := sha256.Sum256([]byte(token))
	return uuid([16]byte(sum[:16]))
}

// Start starts a job under an id; if there is one already, it does nothing.
func (s ForScripts) Start(ctx context.Context, id, creator string, j host.NewJob) error {
	_, err := s.Queue.submit(ctx, id, Spec{Name: j.Name, Source: j.Source, Language: j.Language, Params: j.Params, Creator: creator, Tags: j.Tags}, nil)
	if errors.Is(err, db.ErrUnique) {
		return nil
	}
	return err
}

// Result returns the state of a job.
func (s ForScripts) Result(ctx context.Context, id string) (host.JobResult, error) {
	j, err := s.Queue.Status(ctx, id)
	switch {
	case err != nil:
		return host.JobResult{}, err
	case !j.State.Final():
		return host.JobResult{State: "pending"}, nil
	case j.State == Complete:
		return host.JobResult{State: "complete", Value: j.Result}, nil
	case j.Error == nil:
		return host.JobResult{State: "error", Error: errCancelled.Error()}, nil
	}
	message := j.Error.Message
	if _, ofScript := rawjson.Get(j.Error.Details, "kind"); ofScript { // the caller has its own script
		message, _ = rawjson.GetText(j.Error.Details, "message")
	}
	if j.Error.Code == fault.Timeout {
		return host.JobResult{State: "timeout", Error: message}, nil
	}
	return host.JobResult{State: "error", Error: message}, nil
}

// Contents lists the columns with hashes of contents. Rows have the source of their script
// too, so those of jobs that are over do not need it.
func Contents() []cas.Column {
	const notOver = "state IN ('pending', 'running', 'waiting')"
	return []cas.Column{
		{Table: "jobs", Name: "hash", Where: notOver},
		{Table: "job_schedules", Name: "hash", Where: cas.All},
		{Table: "job_files", Name: "kept", Where: cas.All},
		{Table: "job_files", Name: "before", Why: "it is compared; what undo needs is kept"},
		{Table: "job_files", Name: "after", Why: "it is compared"},
	}
}

// Personal lists the tables with jobs and schedules. Which are whose is the last, since the others are found by it.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "job_said", Where: "job IN " + owned},
		{Name: "job_live", Where: "job IN " + owned},
		{Name: "job_keys", Where: "job IN " + owned, Hidden: []string{"key"}},
		{Name: "job_tags", Where: "job IN " + owned},
		{Name: "job_files", Where: "job IN " + owned},
		{Name: "jobs", Where: ownedJobs},
		{Name: "job_schedules", Where: ownedJobs},
		{Name: "job_owners", Where: "OWNER(owner) OR person LIKE '%/' || PERSON"},
	}
}

// owned are the ids of a person's jobs and schedules.
const (
	owned     = "(SELECT id FROM job_owners WHERE OWNER(owner) OR person LIKE '%/' || PERSON)"
	ownedJobs = "id IN " + owned
)
