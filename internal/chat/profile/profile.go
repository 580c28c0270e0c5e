// Package profile stores what the chat knows of people and of their organisations, a document
// each: settings, preferences, prompts, modes, and what the agent remembers.
package profile

import (
	"context"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// DefaultOrg is the organisation of people for whom none is given.
const DefaultOrg = "default"

// Person identifies a user of the chat. Users with the same name in different
// organisations are unrelated. A Person without a User stands for the organisation
// itself.
type Person struct {
	Org  string
	User string
}

// Org stands for an organisation.
func Org(name string) Person { return Person{Org: name} }

// longestName limits the names of organisations and users, in bytes.
const longestName = 256

// Check validates the names.
func (p Person) Check() error {
	for what, name := range map[string]string{"org": p.Org, "user_id": p.User} {
		if name == "" || len(name) > longestName || !utf8.ValidString(name) || strings.ContainsFunc(name, isControl) {
			return fault.New(fault.InvalidParams, "%s must be text of 1 to %d bytes", what, longestName)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// String identifies the person in logs and as the owner of sessions.
func (p Person) String() string { return p.Org + ":" + p.User }

// With returns ctx with a principal that acts for the person.
func (p Person) With(ctx context.Context, who principal.Principal) context.Context {
	who.Person = url.PathEscape(p.Org) + "/" + p.User
	return principal.With(ctx, who)
}

// ActingFor returns the person for whom the principal of ctx acts; in is false outside of chats.
func ActingFor(ctx context.Context) (p Person, in bool, err error) {
	org, user, in := strings.Cut(principal.Of(ctx).Person, "/")
	if !in {
		return Person{}, false, nil
	}
	org, err = url.PathUnescape(org)
	return Person{Org: org, User: user}, true, err
}

// Store stores the documents. It is safe for concurrent use.
type Store struct {
	Settings    *Document[Settings]        // of organisations
	Preferences *Document[Preferences]     // of people
	Prompts     *Document[agent.Prompts]   // of both: texts in place of the defaults
	Memory      *Document[[]agent.Section] // of people
	Modes       Modes                      // of organisations
	table       *table
}

// New returns the store of a database whose tables exist.
func New(database *db.DB, now func() time.Time) *Store {
	t := &table{database, now}
	return &Store{
		Settings:    &Document[Settings]{t, "settings", func() Settings { return DefaultSettings }, Settings.Check},
		Preferences: &Document[Preferences]{t, "preferences", unknownPerson, nil},
		Prompts:     &Document[agent.Prompts]{t, "prompts", func() agent.Prompts { return agent.Prompts{} }, agent.Prompts.Check},
		Memory:      &Document[[]agent.Section]{t, "memory", nil, nil},
		Modes:       Modes{t},
		table:       t,
	}
}

// Remember is what the agent remembers about a person, for the agent.
func (s *Store) Remember(p Person) agent.Memory { return memory{s.Memory, p} }

type memory struct {
	document *Document[[]agent.Section]
	person   Person
}

func (m memory) Load(ctx context.Context) ([]agent.Section, error) {
	return m.document.Of(ctx, m.person)
}

func (m memory) Save(ctx context.Context, sections []agent.Section) error {
	return m.document.Set(ctx, m.person, sections)
}
