package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
)

// brokenServer is a server that is not there for some calls.
type brokenServer struct {
	client.Client
	gone  int // how many calls fail, from the second on
	calls int
}

func (s *brokenServer) Call(_ context.Context, name string, _ any, _ *tool.Caller) (tool.View, error) {
	s.calls++
	if s.calls > 1 && s.gone > 0 {
		s.gone--
		return tool.View{}, fault.New(fault.Unavailable, "the connection was lost, its outcome is unknown")
	}
	answers := map[string]string{
		"job_poll": `{}`, "job_logs": `{"lines":[],"next":0}`,
		"job_status": `{"job_id":"e5aa8e62-0000","status":"complete","result":42}`,
	}
	return tool.View{Structured: json.RawMessage(answers[name])}, nil
}

// A job continues when its server is back, so a command that follows it waits for the
// server, and otherwise says how to go on.
func TestFollowedJobOutlivesItsServer(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		gone           int
		status         error
		stdout, stderr string
	}{
		"back soon": {gone: 20, stdout: "42\n", stderr: "the server does not answer; waiting for it\njob e5aa8e62 complete"},
		"gone": {
			gone: 1000, status: exitStatus(exitServerGone),
			stderr: "the server does not answer; waiting for it\njob e5aa8e62 continues when the server is back: `luanette job follow e5aa8e62 --data elsewhere`\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				proc := &process{Stdout: &stdout, Stderr: &stderr}
				folder := "elsewhere"
				err := (&runningFlags{settingFlags: settingFlags{Data: &folder}}).follow(t.Context(), proc, &brokenServer{gone: of.gone}, "e5aa8e62-0000")
				if !errors.Is(err, of.status) || stdout.String() != of.stdout || !strings.HasPrefix(stderr.String(), of.stderr) {
					t.Errorf("%v, stdout %q, stderr %q", err, &stdout, &stderr)
				}
			})
		})
	}
}
