package upstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/tagged"
)

// errRenewed ends a session whose secrets have changed: the next one uses the new ones.
var errRenewed = errors.New("its secrets have changed")

// fileSecrets returns what the files that a spec refers to have, as one text; "" if it refers to
// none, or one cannot be read, as while it is written.
func (o *Options) fileSecrets(spec Spec) string {
	if o.Secret == nil || !spec.Trusted {
		return ""
	}
	var found []string
	add := func(kind, text string) (string, error) {
		if kind != "secret" || !strings.Contains(text, "${file:") {
			return text, nil
		}
		value, err := o.Secret(text)
		found = append(found, text+"="+value.Reveal())
		return text, err
	}
	err := tagged.Texts(&spec.Settings, "vars", add)
	for _, held := range spec.Credentials {
		if err == nil {
			_, err = add("secret", held.Value.Reveal())
		}
	}
	if err != nil {
		return ""
	}
	slices.Sort(found) // tables have no order
	return strings.Join(found, "\n")
}

// noteSecrets stores what the next session is opened with.
func (c *connection) noteSecrets(spec Spec) {
	now := c.opts.fileSecrets(spec)
	c.secrets.Store(&now)
}

// secretsChanged reports whether a new session would have other secrets.
func (c *connection) secretsChanged() bool {
	before, now := c.secrets.Load(), c.opts.fileSecrets(*c.spec.Load())
	return before != nil && now != "" && now != *before
}

// lookAtSecrets has a time whenever the secrets may have changed; nil if they never do.
func (c *connection) lookAtSecrets() (look <-chan time.Time, stop func()) {
	if before := c.secrets.Load(); before == nil || *before == "" {
		return nil, func() {}
	}
	tick := time.NewTicker(c.opts.SecretInterval)
	return tick.C, tick.Stop
}

// awaitSecrets asks for an attempt at once when the secrets change, until ctx ends.
func (c *connection) awaitSecrets(ctx context.Context) {
	look, stop := c.lookAtSecrets()
	defer stop()
	for {
		select {
		case <-look:
			if c.secretsChanged() {
				c.phase.retryNow()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// renew reports whether a session may end now for a new one. No call of a program may be running,
// as two programs would use the same files. The calls of a server go on beside the new session.
func (s *session) renew() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewing = true
	if s.connection.spec.Load().Command != "" && s.calls() > 0 {
		return false
	}
	s.retired = true
	return true
}

// calls is the number of pending calls that have a caller; s.mu is held.
func (s *session) calls() (n int) {
	for _, p := range s.pending {
		if p.caller != nil {
			n++
		}
	}
	return n
}

// leave closes a session that was retired when its last call has ended, and another one at once.
func (c *connection) leave(s *session) {
	s.mu.Lock()
	busy := s.retired && s.calls() > 0
	s.mu.Unlock()
	if busy && c.life.run(func(ctx context.Context) {
		select {
		case <-s.idle:
		case <-ctx.Done():
		}
		s.close()
	}) {
		return
	}
	s.close()
}
