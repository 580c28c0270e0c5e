package conversation

import (
	"context"
	"regexp"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
)

const (
	promptsKind = "prompts"
	modesKind   = "mode"
	maxModes    = 20
)

// Prompts returns the prompts of a person or an organisation that replace the defaults.
func (r *Service) Prompts(ctx context.Context, p Person) (agent.Prompts, error) {
	prompts := agent.Prompts{}
	_, err := r.loadDocument(ctx, p, promptsKind, "", &prompts)
	return prompts, err
}

// SetPrompts changes some slots; nil resets a slot.
func (r *Service) SetPrompts(ctx context.Context, p Person, changes map[agent.Slot]*string) (agent.Prompts, error) {
	prompts, err := r.Prompts(ctx, p)
	if err != nil {
		return nil, err
	}
	for slot, text := range changes {
		if err := (agent.Prompts{slot: ""}).Check(); err != nil {
			return nil, err
		}
		if text == nil {
			delete(prompts, slot)
		} else {
			prompts[slot] = *text
		}
	}
	if err := prompts.Check(); err != nil {
		return nil, err
	}
	return prompts, r.saveDocument(ctx, p, promptsKind, "", prompts)
}

// ResetPrompts removes all prompts of a person or an organisation.
func (r *Service) ResetPrompts(ctx context.Context, p Person) error {
	_, err := r.removeDocument(ctx, p, promptsKind, "")
	return err
}

// Mode is a set of prompts that an organisation defines and people choose.
type Mode struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Prompts     agent.Prompts `json:"overrides"`
}

var modeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) })

// Modes lists the names of an organisation's modes.
func (r *Service) Modes(ctx context.Context, org string) ([]string, error) {
	return r.documentNames(ctx, Person{Org: org}, modesKind)
}

// Mode returns a mode.
func (r *Service) Mode(ctx context.Context, org, name string) (Mode, error) {
	var m Mode
	found, err := r.loadDocument(ctx, Person{Org: org}, modesKind, name, &m)
	if err == nil && !found {
		err = noMode(name)
	}
	return m, err
}

// SetMode creates or replaces a mode.
func (r *Service) SetMode(ctx context.Context, org string, m Mode) error {
	if len(m.Name) > 64 || !modeName().MatchString(m.Name) {
		return fault.New(fault.InvalidParams, "%q is not a valid name of a mode", m.Name).
			WithHint("use up to 64 lowercase letters, digits and hyphens")
	}
	if err := m.Prompts.Check(); err != nil {
		return err
	}
	names, err := r.Modes(ctx, org)
	if err != nil {
		return err
	}
	known := false
	for _, name := range names {
		known = known || name == m.Name
	}
	if !known && len(names) >= maxModes {
		return fault.New(fault.Limit, "the organisation has %d modes already", len(names)).WithHint("remove one first")
	}
	return r.saveDocument(ctx, Person{Org: org}, modesKind, m.Name, m)
}

// RemoveMode removes a mode. People who chose it have no mode then.
func (r *Service) RemoveMode(ctx context.Context, org, name string) error {
	found, err := r.removeDocument(ctx, Person{Org: org}, modesKind, name)
	if err == nil && !found {
		err = noMode(name)
	}
	return err
}

func noMode(name string) error {
	return fault.New(fault.NotFound, "no mode %q", name).WithHint("GET …/modes lists them")
}

// Resolved returns a person's or organisation's own prompts, and those in effect.
func (r *Service) Resolved(ctx context.Context, p Person) (own, resolved agent.Prompts, err error) {
	if own, err = r.Prompts(ctx, p); err != nil {
		return nil, nil, err
	}
	if p.User == "" {
		return own, agent.Resolve(own), nil
	}
	prefs, err := r.Preferences(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	layers, err := r.layers(ctx, p, prefs.Mode)
	if err != nil {
		return nil, nil, err
	}
	return own, agent.Resolve(layers...), nil
}
