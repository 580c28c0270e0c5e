package script

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/kv"
)

// Jobs starts jobs in the background.
type Jobs interface {
	// NewID returns the id of a job to start: the same for every call with one token, a
	// new one if the token is "".
	NewID(token string) string
	// Start starts a job under an id; if there is one already, it does nothing.
	Start(ctx context.Context, id, creator string, j host.NewJob) error
	// Result returns the state of a job of the same principal.
	Result(ctx context.Context, id string) (host.JobResult, error)
	// ChangedFile returns what a job, which the principal may undo, changed in a file.
	ChangedFile(ctx context.Context, id, path string) (host.ChangedFile, error)
}

// startedJobs starts jobs for one run. What the run has read counts as read by the jobs
// it starts, and the other way round when it gets their results.
type startedJobs struct {
	runner  *Runner
	jobs    Jobs
	request Request
}

// jobsFor returns what starts jobs for a run; nil if no jobs run here.
func (r *Runner) jobsFor(q Request) host.Jobs {
	jobs := q.Jobs
	if jobs == nil && r.options.Jobs != nil {
		jobs = r.options.Jobs()
	}
	if jobs == nil {
		return nil
	}
	return startedJobs{r, jobs, q}
}

func (s startedJobs) Start(ctx context.Context, j host.NewJob) (string, error) {
	if j.Name == "" {
		j.Name = s.request.OwnName()
	}
	ready, err := s.runner.Prepare(ctx, Request{Source: j.Source, Language: j.Language, Name: j.Name, Params: j.Params, Main: true})
	if failure := (*Error)(nil); errors.As(err, &failure) {
		return "", failure.Fault()
	}
	if err != nil {
		return "", err
	}
	j.Language, j.Params = ready.Language, ready.Params
	id := s.jobs.NewID(j.Token)
	if flow := s.runner.options.Flow; flow != nil {
		if err := flow.Remember(ctx, flowOfJob(id)); err != nil {
			return "", err
		}
	}
	creator := s.request.Creator
	if s.request.Caller != nil {
		creator = s.request.Caller.ID
	}
	return id, s.jobs.Start(ctx, id, creator, j)
}

func (s startedJobs) Result(ctx context.Context, id string) (host.JobResult, error) {
	found, err := s.jobs.Result(ctx, id)
	if flow := s.runner.options.Flow; err == nil && flow != nil {
		err = flow.Recall(ctx, flowOfJob(id))
	}
	return found, err
}

func (s startedJobs) ChangedFile(ctx context.Context, id, path string) (host.ChangedFile, error) {
	return s.jobs.ChangedFile(ctx, id, path)
}

// flowOfJob is the name under which the flow of a job is stored.
func flowOfJob(id string) string { return "job:" + id }

// scriptValues are the values of one script of one principal. What was read by the run
// that stored them counts as read by the run that gets them.
type scriptValues struct {
	store *kv.Store
	space kv.Space
	flow  host.Flow // may be nil
}

// kvFor returns the values of the run's script; nil if there is no store.
func (r *Runner) kvFor(ctx context.Context, q Request) host.KV {
	if r.options.KV == nil {
		return nil
	}
	return scriptValues{r.options.KV, kv.Space{Owner: principal.Of(ctx).ID, Script: principal.InOrg(q.OwnName(), q.Org)}, r.options.Flow}
}

// OwnName is the name that the script gives itself, otherwise that of its file; "" for code
// without a name. Turns of sessions have names only for positions in messages.
func (q Request) OwnName() string {
	if q.State != nil {
		return ""
	}
	return cmp.Or(q.Own, q.Name)
}

// record is the name under which the flow of the values is stored.
func (v scriptValues) record() string { return "kv:" + v.space.Owner + "/" + v.space.Script }

func (v scriptValues) recall(ctx context.Context) error {
	if v.flow == nil {
		return nil
	}
	return v.flow.Recall(ctx, v.record())
}

func (v scriptValues) remember(ctx context.Context) error {
	if v.flow == nil {
		return nil
	}
	return v.flow.Remember(ctx, v.record())
}

func (v scriptValues) Get(ctx context.Context, key string) (json.RawMessage, error) {
	if err := v.recall(ctx); err != nil {
		return nil, err
	}
	value, _, err := v.store.Get(ctx, v.space, key)
	return value, err
}

func (v scriptValues) Set(ctx context.Context, key string, value json.RawMessage, lifetime time.Duration) error {
	if err := v.remember(ctx); err != nil {
		return err
	}
	return v.store.Set(ctx, v.space, key, value, lifetime)
}

func (v scriptValues) Delete(ctx context.Context, key string) (bool, error) {
	return v.store.Delete(ctx, v.space, key)
}

func (v scriptValues) Swap(ctx context.Context, key string, c kv.Change) (bool, error) {
	if err := v.recall(ctx); err != nil {
		return false, err
	}
	if err := v.remember(ctx); err != nil {
		return false, err
	}
	return v.store.Swap(ctx, v.space, key, c)
}

func (v scriptValues) List(ctx context.Context, prefix string) ([]host.KVEntry, error) {
	if err := v.recall(ctx); err != nil {
		return nil, err
	}
	found, err := v.store.List(ctx, v.space, prefix)
	entries := make([]host.KVEntry, len(found))
	for i, e := range found {
		entries[i] = host.KVEntry{Key: e.Key, Value: e.Value}
		if !e.Expires.IsZero() {
			entries[i].Expires = e.Expires.UnixMilli()
		}
	}
	return entries, err
}

// filesFor returns the folders that a run may use. Of the folder of contents it may read
// those that its principal may: a path is no more than a hash.
func (r *Runner) filesFor(ctx context.Context) host.FilesOptions {
	options, contents := r.options.Files, r.options.Contents
	if contents != nil {
		ctx = context.WithoutCancel(ctx) // handlers of events run after it
		options.Allowed = func(inside string) bool {
			_, err := contents.Find(ctx, strings.ReplaceAll(filepath.ToSlash(inside), "/", ""))
			return err == nil
		}
	}
	return options
}
