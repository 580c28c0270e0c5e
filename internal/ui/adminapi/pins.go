package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/pin"
)

// Pins are the definitions that upstreams sent and the decisions about them.
type Pins interface {
	List(upstream string, states ...pin.State) []*pin.Pin
	Get(id string) (*pin.Pin, error)
	Decide(ctx context.Context, id string, d pin.Decision) (*pin.Pin, error)
	ApproveAll(ctx context.Context, upstream, by string, withFlags bool) (approved, left []*pin.Pin, err error)
}

// Pin is a pin as lists show it.
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

// PinDetail is a pin with its definition.
type PinDetail struct {
	Pin
	Diff       []pin.Change    `json:"diff"` // changes since it was approved, or the whole definition
	Definition json.RawMessage `json:"definition"`
	ApprovedAs json.RawMessage `json:"approved_definition,omitempty"`
}

// PinOf converts a pin for a list.
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

// DetailOf converts a pin with its definition.
func DetailOf(p *pin.Pin) PinDetail {
	return PinDetail{PinOf(p), p.Diff(), asJSON(p.Definition), asJSON(p.ApprovedAs)}
}

// asJSON returns a definition if it is valid JSON, and otherwise a JSON string of it.
func asJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	text, _ := json.Marshal(string(raw)) // strings always encode
	return text
}

// PinList is the response with several pins.
type PinList struct {
	Pins  []Pin `json:"pins"`
	Total int   `json:"total"`
}

// ListOf converts pins.
func ListOf(pins []*pin.Pin) PinList {
	list := PinList{Pins: []Pin{}, Total: len(pins)}
	for _, p := range pins {
		list.Pins = append(list.Pins, PinOf(p))
	}
	return list
}

func (s *Server) listPins(r *http.Request) (any, error) {
	var states []pin.State
	if state := pin.State(r.URL.Query().Get("state")); state != "" {
		if !slices.Contains(pin.States(), state) {
			return nil, fault.New(fault.InvalidParams, "state: unknown state %q", state).WithHint("use held, changed, approved or refused")
		}
		states = append(states, state)
	}
	list := s.options.Pins.List(r.URL.Query().Get("upstream"), states...)
	recent, err := numberIn(r, "recent", 1)
	if err != nil {
		return nil, err
	}
	if recent > 0 {
		list = lastDecided(list, recent)
	}
	shown := PinList{Total: len(list)}
	limit, err := numberIn(r, "limit", 0)
	if err != nil {
		return nil, err
	}
	if limit >= 0 {
		list = list[:min(limit, len(list))]
	}
	shown.Pins = ListOf(list).Pins
	return shown, nil
}

// numberIn returns a number of the query; less than 0 if it is not given.
func numberIn(r *http.Request, name string, least int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, fault.New(fault.InvalidParams, "%s: %q is not a number from %d", name, text, least).WithHint("recent=20 lists the last 20 decisions; limit=0 only counts")
	}
	return n, nil
}

// lastDecided are the pins about which was decided last, the newest first.
func lastDecided(pins []*pin.Pin, limit int) []*pin.Pin {
	decided := slices.DeleteFunc(pins, func(p *pin.Pin) bool {
		return p.Decided.IsZero() || p.State() != pin.Approved && p.State() != pin.Refused
	})
	slices.SortFunc(decided, func(a, b *pin.Pin) int { return b.Decided.Compare(a.Decided) })
	return decided[:min(limit, len(decided))]
}

func (s *Server) showPin(r *http.Request) (any, error) {
	p, err := s.options.Pins.Get(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return DetailOf(p), nil
}

// DecideRequest approves or refuses the definition with a digest.
type DecideRequest struct {
	Decision string `json:"decision"`
	Digest   string `json:"digest"`
}

// decision validates the request.
func (d DecideRequest) decision(by string) (pin.Decision, error) {
	switch d.Decision {
	case "approve", "refuse":
	default:
		return pin.Decision{}, fault.New(fault.InvalidParams, "decision: unknown decision %q", d.Decision).WithHint("use approve or refuse")
	}
	if d.Digest == "" {
		return pin.Decision{}, fault.New(fault.InvalidParams, "digest is missing").
			WithHint("send the digest of the definition that you reviewed, so that no other is approved")
	}
	return pin.Decision{Approve: d.Decision == "approve", Digest: d.Digest, By: by}, nil
}

func (s *Server) decidePin(r *http.Request) (any, error) {
	var body DecideRequest
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	decision, err := body.decision(principal.Of(r.Context()).Name)
	if err != nil {
		return nil, err
	}
	p, err := s.options.Pins.Decide(r.Context(), r.PathValue("id"), decision)
	if err != nil {
		return nil, err
	}
	return DetailOf(p), nil
}

// ApproveRequest approves all definitions of an upstream that await review.
type ApproveRequest struct {
	Upstream string `json:"upstream"`
	Flagged  bool   `json:"flagged"` // also the definitions that the scanner flagged
}

// ApproveResult lists the definitions that were approved and those that were not.
type ApproveResult struct {
	Approved []Pin `json:"approved"`
	Left     []Pin `json:"left"` // flagged ones
}

func (s *Server) approvePins(r *http.Request) (any, error) {
	var body ApproveRequest
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	if body.Upstream == "" {
		return nil, fault.New(fault.InvalidParams, "upstream is missing").WithHint("name the upstream whose definitions you approve")
	}
	approved, left, err := s.options.Pins.ApproveAll(r.Context(), body.Upstream, principal.Of(r.Context()).Name, body.Flagged)
	if err != nil {
		return nil, err
	}
	return ApproveResult{ListOf(approved).Pins, ListOf(left).Pins}, nil
}
