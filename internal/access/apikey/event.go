package apikey

import (
	"context"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
)

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
func (r *Store) publish(ctx context.Context, p event.Payload, name string) {
	if r.options.Bus != nil {
		r.options.Bus.PublishFor(principal.OwnerOf(ctx), p)
	}
	if r.options.OnChange != nil {
		r.options.OnChange(ctx, p.EventType(), name)
	}
}
