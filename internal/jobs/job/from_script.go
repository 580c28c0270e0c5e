package job

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

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
	case j.Error.Code == fault.Timeout:
		return host.JobResult{State: "timeout", Error: j.Error.Message}, nil
	}
	return host.JobResult{State: "error", Error: j.Error.Message}, nil
}
