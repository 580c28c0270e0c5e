package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// errIdle ends a lazy server nobody has called for a while.
var errIdle = errors.New("idle")

// tend watches over a connection until it is of no more use, and says why. It
// checks the server's health when it was silent for long or is in doubt, and
// lists its tools again when it says that they changed.
func (k *keeper) tend(ctx context.Context, s *session) error {
	health := time.NewTimer(k.nextLook(s))
	defer health.Stop()
	var relist <-chan time.Time
	debounce := k.opts.Debounce
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.link.Done():
			return s.link.Err()
		case err := <-s.broken:
			return err
		case <-health.C:
			if k.idle(s) {
				return errIdle
			}
			if s.silence() >= s.healthEvery() {
				err = k.examine(ctx, s)
			}
			health.Reset(k.nextLook(s))
		case <-k.doubt:
			err = k.examine(ctx, s)
		case <-k.changed:
			if relist == nil {
				relist = time.After(debounce)
			}
		case <-relist:
			relist = nil
			began := time.Now()
			err = k.relist(ctx, s)
			// Whoever changes a long list without end gets a tenth of our attention.
			debounce = max(k.opts.Debounce, 10*time.Since(began))
		}
		if err != nil {
			return err
		}
	}
}

// nextLook is when to look at the server again unless something happens.
func (k *keeper) nextLook(s *session) time.Duration {
	look := s.healthEvery() - s.silence()
	if spec := k.currentSpec(); spec.lazy() && spec.Idle > 0 {
		look = min(look, spec.Idle-k.unused())
	}
	return max(look, 10*time.Millisecond)
}

// idle tells whether the server may go to sleep.
func (k *keeper) idle(s *session) bool {
	spec := k.currentSpec()
	return spec.lazy() && spec.Idle > 0 && s.busy() == 0 && k.unused() >= spec.Idle
}

func (k *keeper) unused() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.used)
}

func (k *keeper) currentSpec() Spec {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.spec
}

// examine asks for a sign of life. A server that owes answers to callers may be
// too busy to give one: those calls have their own limits, so it is left alone.
func (k *keeper) examine(ctx context.Context, s *session) error {
	err := s.check(ctx, k.opts.HealthTime)
	excused := ctx.Err() != nil || errors.Is(err, errImpatient) && s.busy() > 0
	if err != nil && !excused {
		return fmt.Errorf("health check: %w", err)
	}
	return nil
}

// relist fetches the tools after a notification. A server that cannot list them
// just now keeps the old ones.
func (k *keeper) relist(ctx context.Context, s *session) error {
	err := k.refresh(ctx, s)
	var refused *wire.Error
	if err != nil && !errors.As(err, &refused) {
		return k.examine(ctx, s)
	}
	return nil
}

// refresh fetches the tools of a session and installs them, if it still serves.
func (k *keeper) refresh(ctx context.Context, s *session) error {
	k.refreshing.Lock()
	defer k.refreshing.Unlock()
	list, err := s.list(ctx, k.name, k.opts.ConnectTime)
	if err != nil {
		return err
	}
	k.install(list, func() bool { return k.session == s })
	return nil
}

// install makes list the one we serve, tells the house what changed, and keeps it
// for the next start. It does nothing of that when commit, which may alter the
// state with it, says that the list comes too late.
func (k *keeper) install(list *listing, commit func() bool) {
	var old *listing
	k.change(func() {
		if commit() {
			old = k.list
			k.list, k.stale = list, false
		}
	})
	if old == nil {
		return
	}
	added, removed, changed := diff(old.tools, list.tools)
	if len(added)+len(removed)+len(changed) > 0 {
		k.publish(ToolsRefreshed{Upstream: k.name, ToolCount: len(list.tools), Added: added, Removed: removed, Changed: changed})
	}
	if list.lost > 0 {
		k.publish(Dropped{Upstream: k.name, Reasons: list.dropped, Count: list.lost})
		k.log.Warn("definitions not usable", "count", list.lost, "first", list.dropped[0])
	}
	k.save()
}

// save keeps what is known of the server for the next start.
func (k *keeper) save() {
	k.mu.Lock()
	s, retired := k.session, k.retired
	if s == nil || retired {
		k.mu.Unlock()
		return
	}
	k.known = record{
		Server: identity(k.spec), Verdict: k.verdict, Revision: s.revision,
		ServerInfo: s.serverInfo, Capabilities: s.capabilities, Instructions: s.instructions,
		Tools: definitions(k.list.tools),
	}
	known := k.known
	k.mu.Unlock()
	if err := k.opts.saveRecord(k.name, known); err != nil {
		k.log.Warn("not cached", "error", err)
	}
}

// note takes what a server says that belongs to no call.
func (k *keeper) note(method string, params json.RawMessage) {
	if method == wire.NoteToolsChanged {
		signal(k.changed)
	}
	k.mu.Lock()
	watchers := make([]func(string, json.RawMessage), 0, len(k.watchers))
	for _, watch := range k.watchers {
		watchers = append(watchers, watch)
	}
	k.mu.Unlock()
	for _, watch := range watchers {
		watch(method, params)
	}
}

// restore sets up in a new session what callers had asked of the old one.
func (k *keeper) restore(ctx context.Context, s *session) {
	k.mu.Lock()
	level := k.level
	uris := make([]string, 0, len(k.follows))
	for uri := range k.follows {
		uris = append(uris, uri)
	}
	k.mu.Unlock()
	if level != "" {
		_, _ = s.perform(ctx, levelRequest(level, k.opts.HealthTime))
	}
	for _, uri := range uris {
		_, _ = s.perform(ctx, followRequest(wire.MethodSubscribe, uri, k.opts.HealthTime))
	}
}
