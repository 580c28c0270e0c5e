package adminapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/policy"
)

// PolicyCheck is the policy's verdict on a tool and a key, and the reason.
type PolicyCheck struct {
	Tool         string   `json:"tool"`
	Key          string   `json:"key"`
	Org          string   `json:"org,omitempty"` // the key's organisation, whose rules apply too
	Known        bool     `json:"known"`         // the tool exists now
	Verdict      string   `json:"verdict"`
	Rule         string   `json:"rule,omitempty"` // the rule that decided; empty if no rule matches
	Reason       string   `json:"reason,omitempty"`
	ReadOnlyHint bool     `json:"read_only_hint"`
	Labels       []string `json:"labels,omitempty"`  // labels of data read from its namespace
	Accepts      []string `json:"accepts,omitempty"` // labels of data that may be sent there
}

// PolicyChecker tells what the policy decides about a tool and a key.
type PolicyChecker interface {
	Check(ctx context.Context, name, key, org string) PolicyCheck
}

// CatalogPolicy checks the tools of a catalog.
type CatalogPolicy struct {
	Policy  *policy.Policy
	Catalog interface {
		Resolve(ctx context.Context, name string) (tool.Info, error)
		Real(ctx context.Context, ref tool.Ref) tool.Ref
	}
}

// Check also answers for functions of scripts and for tools that do not exist now. The name
// is the one that members of the organisation use.
func (c CatalogPolicy) Check(ctx context.Context, name, key, org string) PolicyCheck {
	who := principal.Principal{ID: "key:" + key, Name: key, Org: org}
	info, err := c.Catalog.Resolve(ctx, name)
	if err != nil || org != "" {
		space, rest, dotted := strings.Cut(name, ".")
		if info.Ref = (tool.Ref{Space: space, Name: rest}); !dotted {
			info.Ref = tool.Ref{Name: name}
		}
	}
	if org != "" {
		info, err = c.inOrg(ctx, who, info.Ref)
	}
	s := c.Policy.Settings()
	d := c.Policy.Decide(who, &info)
	return PolicyCheck{
		Tool: info.Ref.String(), Key: key, Org: org, Known: err == nil, Verdict: string(d.Verdict), Rule: d.Rule, Reason: d.Reason,
		ReadOnlyHint: info.Hints.ReadOnly, Labels: s.Labels[info.Space], Accepts: s.Accepts[info.Space],
	}
}

// inOrg finds the tool that members of an organisation call so.
func (c CatalogPolicy) inOrg(ctx context.Context, member principal.Principal, ref tool.Ref) (tool.Info, error) {
	ref = c.Catalog.Real(principal.With(ctx, member), ref)
	info, err := c.Catalog.Resolve(ctx, ref.String())
	if err != nil {
		info.Ref = ref
	}
	return info, err
}

func (s *Server) checkPolicy(r *http.Request) (any, error) {
	name := r.URL.Query().Get("tool")
	if name == "" {
		return nil, fault.New(fault.InvalidParams, "tool is missing").WithHint("use ?tool=namespace.tool&key=NAME&org=NAME")
	}
	key := r.URL.Query().Get("key")
	if key == "" {
		key = "local"
	}
	return s.options.Policy.Check(r.Context(), name, key, r.URL.Query().Get("org")), nil
}
