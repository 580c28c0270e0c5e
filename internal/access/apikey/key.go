package apikey

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Hash is the hash of a token. The token itself is not stored.
type Hash [sha256.Size]byte

// HashOf returns the hash of a token. Tokens have 130 random bits, so a fast hash is
// enough.
func HashOf(token string) Hash { return sha256.Sum256([]byte(token)) }

// ParseHash parses "sha256:" followed by 64 hexadecimal digits.
func ParseHash(text string) (hash Hash, err error) {
	digits, ok := strings.CutPrefix(text, "sha256:")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(hash) {
		return hash, fault.New(fault.Config, "the hash of a key must be sha256: and 64 hexadecimal digits").
			WithHint("printf %%s KEY | sha256sum prints them")
	}
	return Hash(raw), nil
}

// Key is an API key: its hash, and its rights.
type Key struct {
	Name string // unique among the keys of its person in an organisation, or among those of services
	Hash Hash
	Rights
	Created time.Time // zero for keys of the configuration
	Expires time.Time // zero: never
	Revoked time.Time // zero: not yet
	Used    time.Time // about when it was last used; zero: never
	Fixed   bool      // from the configuration; it can be changed only there
}

// Rights are the scopes and restrictions of a key.
type Rights struct {
	Scopes     []principal.Scope `json:"scopes"`
	Org        string            `json:"org,omitempty"`
	User       string            `json:"user,omitempty"`
	Person     string            `json:"person,omitempty"` // whose key it is; empty: a service's
	Namespaces []string          `json:"namespaces,omitempty"`
	Tools      []string          `json:"tools,omitempty"`
	Set        string            `json:"set,omitempty"` // of tools
	principal.Limits
}

// ref identifies a key.
type ref struct {
	owner string // the ID of the person in the organisation; empty for keys of services
	name  string
}

func (k *Key) ref() ref {
	if k.Person == "" {
		return ref{name: k.Name}
	}
	return ref{principal.PersonID(k.Person, k.Org), k.Name}
}

// ID returns what identifies the key among those of everybody: the name of a service's,
// PERSON/NAME or PERSON/ORG/NAME for a person's. Names have no slash.
func (k *Key) ID() string {
	owner, name := k.ref().owner, k.Name
	if owner == "" {
		return name
	}
	return principal.KeyID(owner, name)
}

// refOf returns which key a principal uses, if it uses one.
func refOf(p *principal.Principal) (_ ref, ok bool) {
	if name, ok := p.OwnKey(); ok {
		return ref{p.ID, name}, true
	}
	name, ok := strings.CutPrefix(p.ID, principal.KeyPrefix)
	return ref{name: name}, ok
}

// Principal returns the principal of requests with the key of a service, and the rights of one
// of a person.
func (k *Key) Principal() principal.Principal {
	return principal.Principal{
		ID: principal.KeyPrefix + k.Name, Name: k.Name, Org: k.Org, User: k.User,
		Scopes: k.Scopes, Namespaces: k.Namespaces, Tools: k.Tools, Set: k.Set, Limits: k.Limits, Expires: k.Expires,
	}
}

// Invalid returns why the key is no longer valid, or "".
func (k *Key) Invalid(now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired"
	default:
		return ""
	}
}

var keyName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// Check validates a new key.
func (k *Key) Check() error {
	bad := func(format string, args ...any) *fault.Error { return fault.New(fault.InvalidParams, format, args...) }
	if !keyName().MatchString(k.Name) {
		return bad("%q is not a name for a key", k.Name).WithHint("take up to 64 letters, digits and . _ @ -, such as laptop or ci@build")
	}
	if err := k.checkScopes(); err != nil {
		return err
	}
	if k.Rate < 0 || k.Concurrent < 0 || k.Budget < 0 {
		return bad("the limits of a key are numbers above zero").WithHint("omit them for no limit")
	}
	for _, pattern := range slices.Concat(k.Namespaces, k.Tools) {
		if strings.TrimSpace(pattern) == "" {
			return bad("an empty name of a namespace or tool").WithHint("use * for all")
		}
	}
	return nil
}

func (k *Key) checkScopes() error {
	if len(k.Scopes) == 0 {
		return fault.New(fault.InvalidParams, "the key %s has no scope", k.Name).WithHint("there are %s", scopeNames())
	}
	for _, scope := range k.Scopes {
		if !slices.Contains(principal.Scopes, scope) {
			return fault.New(fault.InvalidParams, "no scope %q", scope).WithHint("there are %s", scopeNames())
		}
	}
	if slices.Contains(k.Scopes, principal.Org) && k.Org == "" {
		return fault.New(fault.InvalidParams, "the scope org needs an organisation").WithHint("name one: --org NAME, or org in luanette.toml")
	}
	return nil
}

func scopeNames() string {
	var names []string
	for _, s := range principal.Scopes {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// Created is published after a key was created.
type Created struct {
	Name   string            `json:"name"`
	Scopes []principal.Scope `json:"scopes"`
}

// EventType is "key.created".
func (Created) EventType() string { return "key.created" }

// EventKey is the key's name.
func (e Created) EventKey() string { return e.Name }

// Revoked is published after a key was revoked.
type Revoked struct {
	Name string `json:"name"`
}

// EventType is "key.revoked".
func (Revoked) EventType() string { return "key.revoked" }

// EventKey is the key's name.
func (e Revoked) EventKey() string { return e.Name }

// publish publishes the event of a change and calls OnChange.
func (s *Store) publish(ctx context.Context, p event.Payload, name string) {
	if s.options.Bus != nil {
		s.options.Bus.PublishFor(principal.OwnerOf(ctx), p)
	}
	if s.options.OnChange != nil {
		s.options.OnChange(ctx, p.EventType(), name)
	}
}

// CheckCalls refuses calls of principals whose key is no longer valid: a job or a
// script may run longer than the key that started it.
func (s *Store) CheckCalls() tool.Step {
	return tool.Step{Name: "key", ChecksOnly: true, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		if err := s.Check(principal.Of(ctx)); err != nil {
			return ctx, i.Deny("key", err)
		}
		return ctx, nil
	}}
}
