package upstream_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// rotating is a company's server whose token is in a file, which changes.
type rotating struct {
	company
	*upstream.Manager
	file string
}

func newRotating(t *testing.T, change func(*upstream.Options)) *rotating {
	t.Helper()
	r := &rotating{file: filepath.Join(t.TempDir(), "token")}
	r.write(t, "token-one")
	r.Manager, _ = newCompany(t, &r.company, func(o *upstream.Options, spec *upstream.Spec) {
		o.Login, o.Secret = nil, secret.Finder{}.Find
		spec.Login, spec.Headers = "", map[string]string{"Authorization": "Bearer ${file:" + r.file + "}"}
		change(o)
	})
	return r
}

func (r *rotating) write(t *testing.T, token string) {
	t.Helper()
	if err := os.WriteFile(r.file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expect makes a call, which must be answered for a token.
func (r *rotating) expect(t *testing.T, who string) {
	t.Helper()
	if got, err := answerTo(t.Context(), r.Manager, "whoami"); err != nil || got != who {
		t.Errorf("answered for %q, %v; want %q", got, err, who)
	}
}

// TestChangedSecretIsUsed changes the file with a token: the connection is renewed by itself, and
// no call fails meanwhile.
func TestChangedSecretIsUsed(t *testing.T) {
	t.Parallel()
	r := newRotating(t, func(o *upstream.Options) { o.SecretInterval = 10 * time.Millisecond })
	r.expect(t, "one")
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := answerTo(t.Context(), r.Manager, "whoami"); err != nil {
					t.Errorf("a call meanwhile: %q, %v", got, err)
					return
				}
			}
		})
	}
	r.write(t, "token-two")
	clocktest.Await(t, func() bool {
		got, _ := answerTo(t.Context(), r.Manager, "whoami")
		return got == "two" || t.Failed()
	}, func() string { return "calls still use the old token" })
	close(stop)
	load.Wait()
}

// TestRefusedSecretThatChanged refuses the old token before the change of the file was noticed: the
// call is repeated with the new one.
func TestRefusedSecretThatChanged(t *testing.T) {
	t.Parallel()
	r := newRotating(t, func(o *upstream.Options) { o.SecretInterval = time.Hour })
	r.expect(t, "one")
	r.write(t, "token-two")
	r.refuse("token-one")
	r.expect(t, "two")
}

// TestSecretThatIsRepaired finds a wrong token first: the next attempt is made when the file
// changes, and not when it would be due.
func TestSecretThatIsRepaired(t *testing.T) {
	t.Parallel()
	r := newRotating(t, func(o *upstream.Options) { o.SecretInterval, o.AuthRetry = 10*time.Millisecond, time.Hour })
	r.expect(t, "one")
	r.write(t, "wrong")
	clocktest.Await(t, func() bool {
		s, _ := r.Status("test")
		return s.State == upstream.StateNeedsAuth
	}, func() string { return "the wrong token is not used" })
	r.write(t, "token-two")
	clocktest.Await(t, func() bool {
		s, _ := r.Status("test")
		return s.State == upstream.StateConnected
	}, func() string { return "the repaired token is not used" })
	r.expect(t, "two")
}

// refuse makes the server know a token no more.
func (c *company) refuse(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = token
}
