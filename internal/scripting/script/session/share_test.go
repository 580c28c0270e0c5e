package session

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/script"
)

// sharedSession is the share of one session with ben.
type sharedSession struct {
	mu    sync.Mutex
	id    string
	level principal.Level
}

func (s *sharedSession) set(id string, level principal.Level) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.level = id, level
}

func (s *sharedSession) Level(_ context.Context, p principal.Principal, kind principal.Kind, id string) (principal.Level, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ID == "ben" && kind == principal.Session && id == s.id {
		return s.level, nil
	}
	return principal.Nothing, nil
}

func (s *sharedSession) IDs(ctx context.Context, p principal.Principal, kind principal.Kind) ([]string, error) {
	if level, err := s.Level(ctx, p, kind, s.id); err != nil || level == principal.Nothing {
		return nil, err
	}
	return []string{s.id}, nil
}

// sharer opens sessions of which ada shares one with ben.
func sharer(t *testing.T) (p sessionFixture, share *sharedSession) {
	t.Helper()
	share = &sharedSession{}
	names := func(owner string) string { return "Name of " + owner }
	return openSessions(t, t.TempDir(), nil, Options{Shares: share, NameOf: names}), share
}

// as is a context of a caller.
func as(t *testing.T, caller string) context.Context {
	t.Helper()
	return principal.With(t.Context(), principal.Principal{ID: caller})
}

// TestSharedSessionsGiveTheirLevel checks what each level permits: to its recipient, and
// nothing to somebody else or after its end.
func TestSharedSessionsGiveTheirLevel(t *testing.T) {
	t.Parallel()
	p, share := sharer(t)
	turn := script.Request{Source: "x"}
	attempts := map[string]struct {
		needs principal.Level // Nothing: no share permits it
		do    func(ctx context.Context, caller, id string) error
	}{
		"script": {principal.See, func(ctx context.Context, caller, id string) error {
			_, err := p.Script(ctx, caller, id, "f")
			return err
		}},
		"preview": {principal.Use, func(ctx context.Context, caller, id string) error {
			_, err := p.Preview(ctx, caller, id, turn)
			return err
		}},
		"fork": {principal.Use, func(ctx context.Context, caller, id string) error { _, err := p.Fork(ctx, caller, id, ""); return err }},
		"eval": {principal.Nothing, func(ctx context.Context, caller, id string) error {
			_, err := p.Eval(ctx, caller, id, turn)
			return err
		}},
		"reset": {principal.Edit, func(ctx context.Context, caller, id string) error { _, err := p.Reset(ctx, caller, id); return err }},
		"close": {principal.Edit, func(ctx context.Context, caller, id string) error { return p.Close(ctx, caller, id) }},
	}
	for _, level := range []principal.Level{principal.Nothing, principal.See, principal.Use, principal.Edit} {
		for name, try := range attempts {
			id := p.create(t)
			p.say(t, id, "x = 1 function f() return x end")
			share.set(id, level)
			for caller, has := range map[string]principal.Level{"eva": principal.Nothing, "ben": level} {
				want := fault.Code("")
				switch {
				case has == principal.Nothing:
					want = fault.NotFound
				case !has.Permits(try.needs):
					want = fault.Denied
				}
				if caller == "ben" && want == "" {
					continue // last, because it changes the session
				}
				if err := try.do(as(t, caller), caller, id); fault.CodeOf(err) != want {
					t.Errorf("%s by %s, who may %q: %v, want %q", name, caller, has, err, want)
				}
			}
			p.expect(t, id, "x", "1")
			if level.Permits(try.needs) {
				if err := try.do(as(t, "ben"), "ben", id); err != nil {
					t.Errorf("%s by ben, who may %q: %v", name, level, err)
				}
			}
		}
	}
}

// TestForkOfASharedSession checks that the copy is the recipient's own: neither sees what the
// other does later, and it stays when the share ends.
func TestForkOfASharedSession(t *testing.T) {
	t.Parallel()
	p, share := sharer(t)
	id := p.create(t)
	p.say(t, id, "x = 1")
	share.set(id, principal.Use)
	copied, err := p.Fork(as(t, "ben"), "ben", id, "mine")
	if err != nil || copied.Owner != "ben" {
		t.Fatalf("fork: %+v, %v", copied, err)
	}
	share.set("", principal.Nothing)
	if done, err := p.Eval(as(t, "ben"), "ben", copied.ID, script.Request{Source: "x = x + 1 return x"}); err != nil || string(done.Result) != "2" {
		t.Errorf("ben goes on: %s, %v", done.Result, err)
	}
	p.expect(t, id, "x", "1")
	if _, err := p.Eval(as(t, "ada"), "ada", copied.ID, script.Request{Source: "x"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("ada in the copy: %v", err)
	}
}

func TestListsHaveSharedSessions(t *testing.T) {
	t.Parallel()
	p, share := sharer(t)
	id := p.create(t)
	listed := func(caller string) bool {
		list, err := p.List(as(t, caller), caller)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(s Session) bool {
			return s.ID == id && (caller == "ada" && s.Sharer == "" || s.Sharer == "Name of ada" && s.Shared == principal.See)
		})
	}
	for _, level := range []principal.Level{principal.See, principal.Nothing} {
		share.set(id, level)
		for caller, want := range map[string]bool{"ada": true, "ben": level == principal.See, "eva": false} {
			if listed(caller) != want {
				t.Errorf("%s, shared to %q: listed = %v", caller, level, !want)
			}
		}
	}
}

// TestSharedSessionIsFound checks how owners name the session that they share.
func TestSharedSessionIsFound(t *testing.T) {
	t.Parallel()
	p, _ := sharer(t)
	made, err := p.Create(t.Context(), Spec{Owner: "ada", Name: "notes"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{made.ID, "notes"} {
		if thing, err := p.SharedSession(as(t, "ada"), ref); err != nil || thing.ID != made.ID || thing.Owner.ID != "ada" || thing.Title != "notes" {
			t.Errorf("%s: %+v, %v", ref, thing, err)
		}
	}
	for _, ref := range []string{"s-none", "none"} {
		if _, err := p.SharedSession(as(t, "ada"), ref); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := p.SharedSession(as(t, "ben"), "notes"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("by the name that somebody else gave it: %v", err)
	}
}
