package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/webhook"
	"github.com/luanette/luanette/internal/store/db"
)

// The crash test starts itself as a child that receives a delivery. The first child kills
// itself when the response is about to be written.
const (
	childData = "LUANETTE_WEBHOOK_CHILD" // the child's database
	childDies = "LUANETTE_WEBHOOK_DIES"  // set for the child that kills itself
)

// slackSignature signs a body at signedAt.
func slackSignature(body string) string {
	mac := hmac.New(sha256.New, []byte("luanette-slack"))
	fmt.Fprintf(mac, "v0:%d:%s", signedAt, body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// TestKilledBeforeTheAnswer kills the process between storing the job and the 202. The
// delivery comes again, and the job is the one that was stored.
func TestKilledBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jobs.db")
	run := func(more ...string) (string, error) {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(append(os.Environ(), childData+"="+file), more...)
		var errors bytes.Buffer
		child.Stderr = &errors
		out, err := child.Output()
		if errors.Len() > 0 {
			t.Logf("child: %s", &errors)
		}
		return string(out), err
	}
	out, err := run(childDies + "=1")
	if state, ok := err.(*exec.ExitError); !ok || state.Exited() || out != "" { //nolint:errorlint // as it is returned
		t.Fatalf("the first child was not killed: %v, it wrote %q", err, out)
	}
	out, err = run()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Accepted webhook.Accepted
		Jobs     int
		State    job.State
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	if !got.Accepted.Repeated || got.Jobs != 1 || got.State != job.Complete {
		t.Errorf("after the crash: %+v", got)
	}
}

// dying kills the process instead of responding.
type dying struct{ http.ResponseWriter }

func (dying) WriteHeader(int) {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // it ends this process at once
	}
	select {}
}

func runChild() {
	if err := receiveOnce(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "webhook child:", err)
		os.Exit(1)
	}
}

func receiveOnce(ctx context.Context) error {
	d, err := db.Open(ctx, "sqlite:"+os.Getenv(childData), db.Options{})
	if err != nil {
		return err
	}
	queue, err := job.Open(ctx, d, echo{}, job.Options{})
	if err != nil {
		return err
	}
	receiver := webhook.New(webhook.Options{
		Queue: queue, Hooks: hooks, Clock: fixedClock{clock.Real(), time.Unix(signedAt, 0)},
		Script: func(context.Context, string) (webhook.Script, error) { return webhook.Script{Source: "return 1"}, nil },
	})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/hooks/github", strings.NewReader(body))
	r.Header = signed["github"].Clone()
	recorder := httptest.NewRecorder()
	var w http.ResponseWriter = recorder
	if os.Getenv(childDies) != "" {
		w = dying{recorder}
	}
	principal.Unguarded(receiver.Routes()).ServeHTTP(w, r)
	var got struct {
		Accepted webhook.Accepted
		Jobs     int
		State    job.State
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &got.Accepted); err != nil {
		return err
	}
	done, _, err := queue.Poll(ctx, []string{got.Accepted.Job}, time.Minute, true)
	if err != nil || len(done) != 1 {
		return fmt.Errorf("job %s: %w", got.Accepted.Job, err)
	}
	page, err := queue.List(ctx, job.Filter{}, 0, "")
	if err != nil {
		return err
	}
	got.Jobs, got.State = page.Total, done[0].State
	return json.NewEncoder(os.Stdout).Encode(got)
}
