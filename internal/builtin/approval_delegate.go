package builtin

import (
	"context"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

type approvalDelegateIn struct {
	Role  string `json:"role" jsonschema:"a role of yours that decides requests" min:"1" max:"64"`
	To    string `json:"to" jsonschema:"who decides in your place: name, email address or id of somebody in your organisation" min:"1" max:"256"`
	Until string `json:"until" jsonschema:"for how long: 3d, 12h, a day or a time, 90d at most; now ends it" min:"1" max:"64"`
}

// ApprovalDelegated is the result of approval_delegate.
type ApprovalDelegated struct {
	Role  string    `json:"role"`
	To    string    `json:"to"`
	ToID  string    `json:"to_id"`
	Until time.Time `json:"until"`
	Ended bool      `json:"ended,omitempty"`
}

// Text returns it as one line.
func (d ApprovalDelegated) Text() string {
	if d.Ended {
		return fmt.Sprintf("You decide for the role %s yourself again.", d.Role)
	}
	return fmt.Sprintf("%s decides for the role %s in your place until %s.", d.To, d.Role, d.Until.Format(time.RFC3339))
}

func (t approvalTools) delegate(ctx context.Context, _ tool.Call, in approvalDelegateIn) (ApprovalDelegated, error) {
	if host.ParentOf(ctx) != nil {
		return ApprovalDelegated{}, fault.New(fault.Denied, "scripts cannot delegate decisions")
	}
	now := time.Now()
	until, ended := now, in.Until == "now"
	if !ended {
		var err error
		if until, err = httpauth.ParseExpiry(in.Until, now); err != nil {
			return ApprovalDelegated{}, err
		}
	}
	d, err := t.store.Delegate(ctx, in.Role, in.To, until)
	if err != nil {
		return ApprovalDelegated{}, err
	}
	return ApprovalDelegated{Role: d.Role, To: t.store.NameOf(ctx, d.To), ToID: d.To, Until: d.Until, Ended: ended}, nil
}

// DelegationView is a delegation in force.
type DelegationView struct {
	Role  string    `json:"role"`
	From  string    `json:"from" jsonschema:"who has the role"`
	To    string    `json:"to" jsonschema:"who decides"`
	ToID  string    `json:"to_id"`
	Until time.Time `json:"until"`
}

func (d DelegationView) line() string {
	return fmt.Sprintf("%s decides for %s with the role %s until %s.", d.To, d.From, d.Role, d.Until.Format(time.RFC3339))
}

// delegations returns those by and to the caller.
func (t approvalTools) delegations(ctx context.Context) (list []DelegationView, err error) {
	found, err := t.store.Delegations(ctx)
	for _, d := range found {
		list = append(list, DelegationView{d.Role, t.store.NameOf(ctx, d.Person), t.store.NameOf(ctx, d.To), d.To, d.Until})
	}
	return list, err
}
