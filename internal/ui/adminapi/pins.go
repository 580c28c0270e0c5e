package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/access/pin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Pins are the definitions of upstreams and what was decided about them.
type Pins interface {
	List(upstream string, states ...pin.State) []*pin.Pin
	Get(id string) (*pin.Pin, error)
	Decide(ctx context.Context, id string, d pin.Decision) (*pin.Pin, error)
	ApproveAll(ctx context.Context, upstream, by string, withFlags bool) (approved, left []*pin.Pin, err error)
}

// Pin is a pin as it is listed.
type Pin struct {
	ID       string        `json:"id"`
	Upstream string        `json:"upstream"`
	Kind     pin.Kind      `json:"kind"`
	Name     string        `json:"name"`
	State    pin.State     `json:"state"`
	Digest   string        `json:"digest"`
	Server   string        `json:"server,omitempty"`
	Flags    []pin.Finding `json:"flags"`
	Seen     time.Time     `json:"seen"`
	Changed  time.Time     `json:"changed"`
	Decided  *time.Time    `json:"decided,omitempty"`
	By       string        `json:"by,omitempty"`
}

// PinDetail is a pin in full.
type PinDetail struct {
	Pin
	Diff       []pin.Change    `json:"diff"` // what changed since it was approved; all of it when it never was
	Definition json.RawMessage `json:"definition"`
	ApprovedAs json.RawMessage `json:"approved_definition,omitempty"`
}

// PinOf is a pin as it is listed.
func PinOf(p *pin.Pin) Pin {
	v := Pin{
		ID: p.ID, Upstream: p.Upstream, Kind: p.Kind, Name: p.Name, State: p.State(), Digest: p.Digest, Server: p.Target,
		Flags: p.Flags, Seen: p.Seen, Changed: p.Changed, By: p.By,
	}
	if v.Flags == nil {
		v.Flags = []pin.Finding{}
	}
	if !p.Decided.IsZero() {
		v.Decided = &p.Decided
	}
	return v
}

// DetailOf is a pin in full.
func DetailOf(p *pin.Pin) PinDetail {
	return PinDetail{PinOf(p), p.Diff(), asJSON(p.Definition), asJSON(p.ApprovedAs)}
}

// asJSON is a definition that is JSON, or as text.
func asJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	text, _ := json.Marshal(string(raw)) // text always encodes
	return text
}

// PinList is an answer with several.
type PinList struct {
	Pins  []Pin `json:"pins"`
	Total int   `json:"total"`
}

// ListOf makes one.
func ListOf(pins []*pin.Pin) PinList {
	list := PinList{Pins: []Pin{}, Total: len(pins)}
	for _, p := range pins {
		list.Pins = append(list.Pins, PinOf(p))
	}
	return list
}

func (d *Server) listPins(r *http.Request) (any, error) {
	var states []pin.State
	if state := pin.State(r.URL.Query().Get("state")); state != "" {
		if !slices.Contains(pin.States(), state) {
			return nil, fault.New(fault.InvalidParams, "state: %q is none", state).WithHint("use held, changed, approved or refused")
		}
		states = append(states, state)
	}
	return ListOf(d.options.Pins.List(r.URL.Query().Get("upstream"), states...)), nil
}

func (d *Server) showPin(r *http.Request) (any, error) {
	p, err := d.options.Pins.Get(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return DetailOf(p), nil
}

// DecideRequest is what somebody decides: approve or refuse, for the digest they read.
type DecideRequest struct {
	Decision string `json:"decision"`
	Digest   string `json:"digest"`
}

// Decision reads it.
func (d DecideRequest) decision(by string) (pin.Decision, error) {
	switch d.Decision {
	case "approve", "refuse":
	default:
		return pin.Decision{}, fault.New(fault.InvalidParams, "decision: %q is none", d.Decision).WithHint("use approve or refuse")
	}
	if d.Digest == "" {
		return pin.Decision{}, fault.New(fault.InvalidParams, "digest is missing").
			WithHint("send the digest of the definition that was read, so that no other is approved")
	}
	return pin.Decision{Approve: d.Decision == "approve", Digest: d.Digest, By: by}, nil
}

func (d *Server) decidePin(r *http.Request) (any, error) {
	var body DecideRequest
	if err := read(r, &body); err != nil {
		return nil, err
	}
	decision, err := body.decision(principal.Of(r.Context()).Name)
	if err != nil {
		return nil, err
	}
	p, err := d.options.Pins.Decide(r.Context(), r.PathValue("id"), decision)
	if err != nil {
		return nil, err
	}
	return DetailOf(p), nil
}

// ApproveRequest is an approval of all that an upstream has waiting.
type ApproveRequest struct {
	Upstream string `json:"upstream"`
	Flagged  bool   `json:"flagged"` // also what the scanner flagged
}

// ApproveResult is what became of it.
type ApproveResult struct {
	Approved []Pin `json:"approved"`
	Left     []Pin `json:"left"` // flagged ones
}

func (d *Server) approvePins(r *http.Request) (any, error) {
	var body ApproveRequest
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.Upstream == "" {
		return nil, fault.New(fault.InvalidParams, "upstream is missing").WithHint("name the upstream whose tools are approved")
	}
	approved, left, err := d.options.Pins.ApproveAll(r.Context(), body.Upstream, principal.Of(r.Context()).Name, body.Flagged)
	if err != nil {
		return nil, err
	}
	return ApproveResult{ListOf(approved).Pins, ListOf(left).Pins}, nil
}
