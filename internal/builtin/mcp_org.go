package builtin

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// managedOrg returns the name of an upstream in the caller's organisation, which the caller
// must manage.
func (m mcpTools) managedOrg(ctx context.Context, namespace string) (name, org string, err error) {
	who := principal.Of(ctx)
	if m.orgs == nil || !who.ManagesOrg() {
		return "", "", fault.New(fault.Denied, "%s may not add or remove servers", who.Title()).
			WithHint("it takes the scope %s, or %s of an organisation", principal.Admin, principal.Org)
	}
	name, org = principal.SplitNamespace(namespace)
	if org == "" {
		org = who.Org
	}
	return name, org, who.CheckManages(org)
}

// addInOrg adds an upstream for the caller's organisation and returns its namespace.
func (m mcpTools) addInOrg(ctx context.Context, u upstreamset.Server) (space string, err error) {
	name, org, err := m.managedOrg(ctx, u.Namespace)
	if err != nil {
		return "", err
	}
	u.Namespace = name
	if u.URL, err = Target(ctx, m.orgs.CheckURL, u.URL); err != nil {
		return "", err
	}
	return principal.InOrg(name, org), m.orgs.Connect(ctx, org, u)
}

// ownOfOrg returns the namespace of an upstream that was added for the caller's organisation;
// empty if there is none of that name.
func (m mcpTools) ownOfOrg(ctx context.Context, namespace string) (space string, err error) {
	name, org, err := m.managedOrg(ctx, namespace)
	if err != nil {
		return "", err
	}
	space, err = m.orgs.Find(org, name) //nolint:contextcheck // it only looks at memory
	if _, known := m.find(ctx, namespace); !known {
		return space, nil
	}
	return space, err
}
