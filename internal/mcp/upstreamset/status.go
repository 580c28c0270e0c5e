package upstreamset

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Status is the state of an upstream.
type Status struct {
	Namespace    string
	Endpoint     string // URL or command, without secrets
	Transport    string
	Protocol     string // the revision spoken, when connected
	State        string // connecting, connected, reconnecting, needs_auth …
	Tools        int
	Stale        bool // the list is from before the connection was lost
	Error        string
	Hint         string // what a person can do about it
	Login        string // where a person can log in; empty if a login does not help
	Attempt      int    // failures in a row
	NextTry      time.Time
	Fixed        bool      // it comes from configuration, so a tool may not change its URL
	Origin       string    // config, startup (startup.lua) or added (while running, on all nodes)
	ConfiguredAt string    // file:line, of the configuration
	By           string    // who added, changed or removed it last
	Changed      time.Time // and when
	Warnings     []string  // settings that do not match its tools
}

// List returns every upstream, sorted by name. Those that a user removed although the
// configuration has them are listed as removed.
func (u *Set) List() []Status {
	list := []Status{}
	for _, s := range u.Manager.List() {
		if !IsPrivate(s.Name) {
			list = append(list, u.status(s))
		}
	}
	list = append(list, u.absent()...)
	slices.SortStableFunc(list, func(a, b Status) int { return strings.Compare(a.Namespace, b.Namespace) })
	return list
}

// Status returns the status of one upstream.
func (u *Set) Status(name string) (Status, bool) {
	if s, ok := u.Manager.Status(name); ok {
		return u.status(s), true
	}
	for _, s := range u.absent() {
		if s.Namespace == name {
			return s, true
		}
	}
	return Status{}, false
}

func (u *Set) status(s upstream.Status) Status {
	status := Status{
		Namespace: s.Name, Endpoint: s.Target, Transport: s.Transport, Protocol: s.Revision,
		State: string(s.State), Tools: s.Tools, Stale: s.Stale,
		Error: s.LastError, Hint: s.Hint, Login: u.loginAt(s), Attempt: s.Attempt, NextTry: s.NextTry,
		Warnings: u.warnings(context.Background(), s), // from memory
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.setOrigin(&status)
	return status
}

// setOrigin adds where an upstream comes from. u.mu is held.
func (u *Set) setOrigin(s *Status) {
	s.Origin, _ = u.origin(s.Namespace)
	s.Fixed = s.Origin == originConfig
	s.ConfiguredAt = u.places[s.Namespace]
	if entry := u.entries[s.Namespace]; entry != nil {
		s.By, s.Changed = entry.By, entry.Changed
	}
}

// States of upstreams that are not connected although someone asked for them.
const (
	StateRemoved    = "removed"    // the configuration has it, and a user removed it
	stateUnreadable = "unreadable" // a user added it, and its entry is encrypted with another key
)

// absent are the upstreams that are configured or added, but not connected.
func (u *Set) absent() (list []Status) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, entry := range u.entries {
		origin, removed := u.origin(name)
		s := Status{Namespace: name}
		switch {
		case removed && origin != "":
			spec := u.configured[name]
			if origin == originStartup {
				spec = u.startup[name]
			}
			s.Endpoint, s.State = spec.Target(), StateRemoved
			s.Hint = "removed by " + entry.By + "; `luanette upstream restore " + name + "` brings it back"
		case entry.Err != nil && origin == originAdded:
			s.State, s.Error, s.Hint = stateUnreadable, entry.Err.Error(), fault.HintOf(entry.Err)
		default:
			continue
		}
		u.setOrigin(&s)
		list = append(list, s)
	}
	return list
}

// loginAt is the address where a person can log in to an upstream that requires it.
func (u *Set) loginAt(s upstream.Status) string {
	base := ""
	if u.Address != nil {
		base = u.Address()
	}
	if s.State != upstream.StateNeedsAuth || base == "" || len(s.Desired.Addresses()) == 0 {
		return ""
	}
	return base + "/api/v1/upstreams/" + s.Name + "/login"
}

// warnings are problems with an upstream's settings.
func (u *Set) warnings(ctx context.Context, s upstream.Status) []string {
	return slices.Concat(u.Catalog.ExposureProblems(ctx, s.Name), s.Mistaken, u.Overlay.Problems(s.Name), u.Warnings(s.Name))
}

// warn logs the warnings, once each.
func (u *Set) warn(ctx context.Context) {
	for _, s := range u.Manager.List() {
		warnings := u.warnings(ctx, s)
		u.mu.Lock()
		before := u.warned[s.Name]
		u.warned[s.Name] = warnings
		u.mu.Unlock()
		for _, warning := range warnings {
			if !slices.Contains(before, warning) {
				u.Log.WarnContext(ctx, "settings of an upstream", "upstream", s.Name, "warning", warning)
			}
		}
	}
}
