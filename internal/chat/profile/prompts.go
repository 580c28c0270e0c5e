package profile

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/store/db"
)

// ChangePrompts changes some slots of the prompts of a person or an organisation; nil resets
// a slot.
func (s *Store) ChangePrompts(ctx context.Context, p Person, changes map[agent.Slot]*string) error {
	_, err := s.Prompts.Change(ctx, p, func(prompts *agent.Prompts) error {
		for slot, text := range changes {
			if err := (agent.Prompts{slot: ""}).Check(); err != nil {
				return err
			}
			if text == nil {
				delete(*prompts, slot)
			} else {
				(*prompts)[slot] = *text
			}
		}
		return nil
	})
	return err
}

// Layers returns the prompts that apply to a person in a mode, which may be empty; later ones
// take precedence.
func (s *Store) Layers(ctx context.Context, p Person, mode string) ([]agent.Prompts, error) {
	org, err := s.Prompts.Of(ctx, Org(p.Org))
	if err != nil {
		return nil, err
	}
	own, err := s.Prompts.Of(ctx, p)
	if err != nil {
		return nil, err
	}
	layers := []agent.Prompts{org}
	if mode != "" {
		m, _, err := s.Modes.find(ctx, p.Org, mode) // it may have been removed
		if err != nil {
			return nil, err
		}
		layers = append(layers, m.Prompts)
	}
	return append(layers, own), nil
}

// Resolved returns the own prompts of a person or an organisation, and those in effect.
func (s *Store) Resolved(ctx context.Context, p Person) (own, resolved agent.Prompts, err error) {
	if own, err = s.Prompts.Of(ctx, p); err != nil || p.User == "" {
		return own, agent.Resolve(own), err
	}
	prefs, err := s.Preferences.Of(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	layers, err := s.Layers(ctx, p, prefs.Mode)
	return own, agent.Resolve(layers...), err
}

const (
	modesKind = "mode"
	maxModes  = 20
)

// Mode is a set of prompts that an organisation defines and people choose.
type Mode struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Prompts     agent.Prompts `json:"overrides"`
}

var modeName = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Modes are the modes of organisations.
type Modes struct{ table *table }

// Names lists the names of an organisation's modes.
func (m Modes) Names(ctx context.Context, org string) (names []string, err error) {
	err = m.table.db.Read(ctx, func(tx *db.Tx) error {
		names, err = m.table.names(ctx, tx, Org(org), modesKind)
		return err
	})
	return names, err
}

// Get returns a mode.
func (m Modes) Get(ctx context.Context, org, name string) (Mode, error) {
	mode, found, err := m.find(ctx, org, name)
	if err == nil && !found {
		err = noMode(name)
	}
	return mode, err
}

func (m Modes) find(ctx context.Context, org, name string) (mode Mode, found bool, err error) {
	err = m.table.db.Read(ctx, func(tx *db.Tx) error {
		found, err = m.table.load(ctx, tx, Org(org), modesKind, name, &mode)
		return err
	})
	return mode, found, err
}

// Set creates or replaces a mode.
func (m Modes) Set(ctx context.Context, org string, mode Mode) error {
	if len(mode.Name) > 64 || !modeName().MatchString(mode.Name) {
		return fault.New(fault.InvalidParams, "%q is not a valid name of a mode", mode.Name).
			WithHint("use up to 64 lowercase letters, digits and hyphens")
	}
	if err := mode.Prompts.Check(); err != nil {
		return err
	}
	return m.table.db.Write(ctx, func(tx *db.Tx) error {
		names, err := m.table.names(ctx, tx, Org(org), modesKind)
		if err != nil {
			return err
		}
		if len(names) >= maxModes && !slices.Contains(names, mode.Name) {
			return fault.New(fault.Limit, "the organisation has %d modes already", len(names)).WithHint("remove one first")
		}
		return m.table.save(ctx, tx, Org(org), modesKind, mode.Name, mode)
	})
}

// Remove removes a mode. People who chose it have no mode then.
func (m Modes) Remove(ctx context.Context, org, name string) error {
	found, err := m.table.remove(ctx, Org(org), modesKind, name)
	if err == nil && !found {
		err = noMode(name)
	}
	return err
}

func noMode(name string) error {
	return fault.New(fault.NotFound, "no mode %q", name).WithHint("GET …/modes lists them")
}
