package upstreamset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// Status is the state of an upstream, as tools, requests, the command line and the page have it.
type Status struct {
	Namespace string   `json:"namespace"`
	Endpoint  string   `json:"endpoint"` // URL or command, without secrets
	Package   string   `json:"package,omitempty" jsonschema:"the npm package that is installed for it, with its version"`
	Transport string   `json:"transport,omitempty"`
	Protocol  string   `json:"protocol,omitempty" jsonschema:"protocol revision of the connection"`
	State     string   `json:"state" jsonschema:"connecting, installing, starting, connected, reconnecting, failed (retried every few minutes), needs_auth, asleep (started by the first call), removed (configured, but removed by a person), or untrusted (a person must trust the configuration file first)"`
	Starting  int      `json:"starting_secs,omitempty" jsonschema:"for how many seconds its program has been starting"`
	LastLine  string   `json:"last_line,omitempty" jsonschema:"what its program last wrote to its standard error while it is starting"`
	Tools     int      `json:"tool_count"`
	Stale     bool     `json:"stale,omitempty" jsonschema:"the tools are the last known ones; the server is disconnected"`
	Error     string   `json:"error,omitempty" jsonschema:"last error"`
	Hint      string   `json:"hint,omitempty" jsonschema:"what a person can do"`
	Login     string   `json:"login,omitempty" jsonschema:"URL to POST to, which returns a login link for a person"`
	Attempt   int      `json:"attempt,omitempty" jsonschema:"failures in a row"`
	NextTryMS int64    `json:"next_try_ms,omitempty" jsonschema:"milliseconds until the next attempt"`
	Origin    string   `json:"origin,omitempty" jsonschema:"config, startup (startup.lua) or added (while running)"`
	Warnings  []string `json:"warnings,omitempty" jsonschema:"what is wrong although it is connected: settings that do not match its tools, a list that was cut, definitions that were left out"`

	Last   LastChange `json:"-"` // for those who may change it
	Since  time.Time  `json:"-"`
	Fixed  bool       `json:"-"` // it comes from configuration, so a tool may not change its URL
	People int        `json:"-"` // how many have a connection of their own now

	manager *upstream.Manager // if each principal has a connection of its own; else nil
}

// LastChange says where an upstream is configured, and who changed it last.
type LastChange struct {
	ConfiguredAt string    `json:"configured_at,omitempty"` // file:line, of the configuration
	By           string    `json:"by,omitempty"`            // who added, changed or removed it last
	Changed      time.Time `json:"changed,omitzero"`
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
	list = append(list, slices.Concat(u.localStatuses(), u.absent())...)
	slices.SortStableFunc(list, func(a, b Status) int { return strings.Compare(a.Namespace, b.Namespace) })
	return list
}

// Status returns the status of one upstream.
func (u *Set) Status(name string) (Status, bool) {
	if s, ok := u.Manager.Status(name); ok {
		return u.status(s), true
	}
	if p := u.local(name); p != nil {
		return p.status(), true
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
		Namespace: s.Name, Endpoint: s.Target, Package: s.Package, Transport: s.Transport, Protocol: s.Revision,
		Hint: s.Hint, Login: u.loginAt(s), Warnings: slices.Concat(s.Trouble, u.warnings(context.Background(), s)), // from memory
	}
	status.setState(s)
	if s.Login != "" {
		status.manager, status.People, status.Login = u.Manager, s.People, ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.setOrigin(&status)
	return status
}

// setState sets what a connection is doing.
func (s *Status) setState(now upstream.Status) {
	s.State, s.Since, s.Tools, s.Stale = string(now.State), now.Since, now.Tools, now.Stale
	s.Error, s.Attempt, s.NextTryMS = now.LastError, now.Attempt, 0
	if !now.NextTry.IsZero() {
		s.NextTryMS = max(time.Until(now.NextTry).Milliseconds(), 0)
	}
	if s.Starting, s.LastLine = 0, ""; now.State == upstream.StateStarting || now.State == upstream.StateInstalling {
		s.Starting, s.LastLine = int(time.Since(now.Since).Seconds()), now.LastLine
	}
}

// setOrigin adds where an upstream comes from. u.mu is held.
func (u *Set) setOrigin(s *Status) {
	s.Origin, _ = u.origin(s.Namespace)
	s.Fixed = s.Origin == originConfig
	s.Last.ConfiguredAt = u.places[s.Namespace]
	if entry := u.entries[s.Namespace]; entry != nil {
		s.Last.By, s.Last.Changed = entry.By, entry.Changed
	}
}

// States of upstreams that are not connected although someone asked for them.
const (
	StateRemoved    = "removed"    // a user disabled it, or removed it although the configuration has it
	stateUntrusted  = "untrusted"  // the configuration has it, and the user does not trust its file yet
	stateUnreadable = "unreadable" // a user added it, and its entry is encrypted with another key
)

// absent are the upstreams that are configured or added, but not connected.
func (u *Set) absent() (list []Status) {
	u.mu.Lock()
	defer u.mu.Unlock()
	list = u.unstarted()
	for name, entry := range u.entries {
		origin, removed := u.origin(name)
		s := Status{Namespace: name}
		switch {
		case removed && origin != "":
			spec := u.configured[name]
			switch origin {
			case originStartup:
				spec = u.startup[name]
			case OriginAdded:
				spec = specOf(entry)
			}
			s.Endpoint, s.State = spec.Target(), StateRemoved
			s.Hint = "removed by " + entry.By + "; `luanette upstream restore " + name + "` brings it back"
		case entry.Err != nil && origin == OriginAdded:
			s.State, s.Error, s.Hint = stateUnreadable, entry.Err.Error(), fault.HintOf(entry.Err)
		default:
			continue
		}
		u.setOrigin(&s)
		list = append(list, s)
	}
	return list
}

// unstarted are the upstreams of a configuration that is not trusted. u.mu is held.
func (u *Set) unstarted() (list []Status) {
	for name, does := range u.untrusted {
		if _, other := u.desired()[name]; !other {
			s := Status{Namespace: name, State: stateUntrusted, Endpoint: does, Hint: "it came with the folder; `luanette trust` lets it start"}
			u.setOrigin(&s)
			list = append(list, s)
		}
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
	return slices.Concat(s.Simulated, u.Catalog.ExposureProblems(ctx, s.Name), s.Mistaken, u.Overlay.Problems(s.Name), u.Warnings(s.Name))
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

// For returns the status as the principal of ctx sees it: if each has a connection of its
// own, that one's state, and whether it needs a login.
func (s Status) For(ctx context.Context) Status {
	if s.manager == nil {
		return s
	}
	own, ok := s.manager.PersonStatus(ctx, s.Namespace)
	if !ok {
		return s
	}
	s.setState(own)
	s.Hint = cmp.Or(own.Hint, fmt.Sprintf("everybody has a connection of their own; %d are connected", s.People))
	return s
}

// ToolSettings say which tools of an upstream exist, what they are called, and which of
// them clients see.
type ToolSettings struct {
	Disabled []string          // by the upstream's names
	Aliases  map[string]string // new names, and the upstream's names they stand for
	Expose   []string          // what clients see directly; upstream.ExposeAll is all
}

// ToolSettings returns the settings of an upstream's tools; configured says that they are
// those of the configuration.
func (u *Set) ToolSettings(name string) (s ToolSettings, configured bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var spec upstream.Spec
	origin, _ := u.origin(name)
	switch origin {
	case originConfig:
		spec = u.configured[name]
	case OriginAdded:
		spec = specOf(u.entries[name])
	case originStartup:
		return s, false, fault.New(fault.Conflict, "upstream %s is added by startup.lua", name).WithHint("change it there, and restart")
	default:
		return s, false, fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` lists them")
	}
	return ToolSettings{slices.Clone(spec.DisabledTools), maps.Clone(u.base(name).Aliases), slices.Clone(spec.Expose)}, origin == originConfig, nil
}

// SetTools changes the settings of the tools of an upstream that a user added.
func (u *Set) SetTools(ctx context.Context, name string, s ToolSettings) error {
	return u.EditServer(ctx, name, func(server upstream.Settings) (upstream.Settings, error) {
		server.DisabledTools, server.Aliases, server.Expose = s.Disabled, s.Aliases, s.Expose
		return server, nil
	})
}

// base is the rule of a namespace without that of startup.lua. u.mu is held.
func (u *Set) base(name string) overlay.Rule {
	if origin, _ := u.origin(name); origin == OriginAdded {
		return overlay.Rule{Aliases: u.entries[name].Settings.Aliases}
	}
	return u.rules[name]
}

// rule is the rule of a namespace. u.mu is held.
func (u *Set) rule(name string) overlay.Rule { return u.base(name).OverriddenBy(u.scripted[name]) }

// setRules sets the rules of the upstreams that users added.
func (u *Set) setRules() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.entries {
		u.Overlay.SetRule(name, u.rule(name))
	}
}
