package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
)

// Identity is an OpenID provider at which people sign in.
type Identity struct {
	Issuer       string              `toml:"issuer" help:"the provider's issuer, exactly as in its metadata, such as https://login.example"`
	ClientID     string              `toml:"client_id" help:"our client id at the provider; its redirect URI is PUBLIC_URL/signin/callback"`
	ClientSecret string              `toml:"client_secret,omitempty" secret:"all" help:"our client secret, as a reference such as ${env:NAME}; empty for a public client"`
	Scopes       []string            `toml:"scopes,omitempty" help:"scopes to request besides openid; profile and email if omitted; offline_access lets roles follow groups while a session lasts"`
	Domains      []string            `toml:"domains,omitempty" help:"the only domains whose people may sign in, by verified address; empty allows everybody whom the provider knows"`
	Org          string              `toml:"org,omitempty" help:"the organisation of everybody who signs in here; empty means none in particular"`
	Orgs         map[string]string   `toml:"orgs,omitempty" help:"further organisations of the members of each group, such as acme, or acme/admin with a role there; if org is empty, only members of these groups get in, and an empty organisation is the server itself"`
	GroupsClaim  string              `toml:"groups_claim,omitempty" help:"the claim that lists a person's groups; groups if omitted"`
	Groups       map[string][]string `toml:"groups,omitempty" help:"roles of the members of each group"`
	Roles        []string            `toml:"roles,omitempty" help:"roles of everybody who signs in here; empty lets in only members of the groups"`
	IDJAG        bool                `toml:"id_jag,omitempty" trust:"needed" help:"let the provider's clients act here for its people by the provider's word (ID-JAG), without their consent; needs clients"`
	Clients      map[string]string   `toml:"clients,omitempty" secret:"values" trust:"needed" help:"secrets of these clients by client id, as references such as ${env:NAME}"`
}

// hidden returns a copy without secrets.
func (p Identity) hidden() Identity {
	p.ClientSecret, p.Clients = secret.Shown(p.ClientSecret), hideValues(p.Clients)
	return p
}

// Role is a set of rights that people get by name.
type Role struct {
	Scopes     []string `toml:"scopes,omitempty" help:"its scopes: admin, org, chat, mcp, read, metrics"`
	Tools      []string `toml:"tools,omitempty" help:"the only tools, as namespace.tool or the name of one of our tools; * matches any text"`
	Rate       int      `toml:"rate,omitempty" help:"how many requests a minute"`
	Concurrent int      `toml:"concurrent,omitempty" help:"how many tool calls at a time"`
	Budget     int      `toml:"budget,omitempty" help:"how many tool calls a day"`
}

// People configures our authorization server, for clients that act for people.
type People struct {
	Registration bool `toml:"registration" trust:"needed" help:"allow MCP clients to register themselves, for those that have no metadata document"`
}

// PeopleRoles returns the standard roles and those of the configuration.
func (c *Config) PeopleRoles() people.Roles {
	more := people.Roles{}
	for name, role := range c.Roles {
		r := people.Role{Tools: role.Tools, Limits: principal.Limits{Rate: role.Rate, Concurrent: role.Concurrent, Budget: role.Budget}}
		for _, scope := range role.Scopes {
			r.Scopes = append(r.Scopes, principal.Scope(scope))
		}
		more[name] = r
	}
	return people.Standard().With(more)
}

// SignInProviders lists the configured providers, sorted by name.
func (c *Config) SignInProviders(secrets secret.Finder) (list []signin.Provider) {
	for _, name := range slices.Sorted(maps.Keys(c.Identity)) {
		from := c.Identity[name]
		p := signin.Provider{
			Name: name, Issuer: from.Issuer, ClientID: from.ClientID, Scopes: from.Scopes, Domains: from.Domains, Org: from.Org, Orgs: from.memberships(),
			Groups: from.GroupsClaim, Roles: from.Groups, Everybody: from.Roles,
		}
		if p.Groups == "" {
			p.Groups = "groups"
		}
		if p.Scopes == nil {
			p.Scopes = []string{"profile", "email"}
		}
		if from.ClientSecret != "" {
			p.Secret = func() (secret.Text, error) { return secrets.Find(from.ClientSecret) }
		}
		if from.IDJAG {
			p.Clients = signin.ClientSecrets{}
			for id, reference := range from.Clients {
				p.Clients[id] = func() (secret.Text, error) { return secrets.Find(reference) }
			}
		}
		list = append(list, p)
	}
	return list
}

// memberships returns the organisations of each group. A group's text is that of an
// organisation, and after a slash a role in it.
func (p Identity) memberships() map[string][]signin.Membership {
	all := map[string][]signin.Membership{}
	for group, text := range p.Orgs {
		org, role, more := strings.Cut(text, "/")
		m := signin.Membership{Org: org}
		if more {
			m.Roles = []string{role}
		}
		all[group] = append(all[group], m)
	}
	return all
}

// checkPeople refuses providers and roles that cannot work.
func (c *Config) checkPeople() error {
	if err := c.checkPublicURL(); err != nil {
		return err
	}
	for name, role := range c.Roles {
		for _, scope := range role.Scopes {
			if !slices.Contains(principal.Scopes, principal.Scope(scope)) {
				return fault.New(fault.Config, "roles.%s: no scope %q", name, scope)
			}
		}
		if len(role.Scopes) == 0 {
			return fault.New(fault.Config, "roles.%s: it has no scopes", name).WithHint("scopes = [\"mcp\", \"chat\"]")
		}
	}
	for name, p := range c.Identity {
		if err := c.checkIdentity(name, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkIdentity(name string, p Identity) error {
	u, err := url.Parse(p.Issuer)
	switch {
	case strings.ContainsAny(name, "/?#%"):
		return fault.New(fault.Config, "identity.%s: the name cannot be part of an address", name)
	case err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && netguard.IsLoopback(u.Hostname())):
		return fault.New(fault.Config, "identity.%s.issuer: %q is not an address with https", name, p.Issuer).WithHint("such as https://login.example")
	case p.ClientID == "":
		return fault.New(fault.Config, "identity.%s: it has no client_id", name).WithHint("register this server at the provider; docs/people.md")
	case c.PublicURL == "":
		return fault.New(fault.Config, "identity.%s needs public_url", name).WithHint("set it to the address at which browsers reach this server, such as https://hub.example")
	case p.IDJAG != (len(p.Clients) > 0):
		return fault.New(fault.Config, "identity.%s: id_jag and clients need each other", name).WithHint(`id_jag = true, and [identity.%s.clients] with "CLIENT_ID" = "${env:SECRET}"`, name)
	}
	known := c.PeopleRoles()
	all := slices.Clone(p.Roles)
	for _, roles := range p.Groups {
		all = append(all, roles...)
	}
	given, err := p.checkOrgs(name)
	if err != nil {
		return err
	}
	all = append(all, given...)
	for _, role := range all {
		if _, ok := known[role]; !ok {
			return fault.New(fault.Config, "identity.%s: no role %q", name, role).WithHint("there are: %s", strings.Join(known.Names(), ", "))
		}
	}
	if len(all) == 0 {
		return fault.New(fault.Config, "identity.%s: nobody would have a role", name).WithHint(`give everybody one, roles = ["user"], or groups: [identity.%s.groups]`, name)
	}
	return nil
}

// checkOrgs refuses names that organisations cannot have, and returns the roles that
// groups have in organisations.
func (p Identity) checkOrgs(name string) (roles []string, err error) {
	for group, list := range p.memberships() {
		for _, m := range list {
			if roles = append(roles, m.Roles...); m.Org == "" {
				continue
			}
			if err := principal.CheckOrg(m.Org); err != nil {
				return nil, fault.Wrap(fault.Config, err, "identity.%s.orgs.%s", name, group).WithHint("%s", fault.HintOf(err))
			}
		}
	}
	return roles, nil
}

// checkPublicURL refuses an address that cookies and logins would not be safe at.
func (c *Config) checkPublicURL() error {
	if c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Host == "" || c.PublicURL != u.Scheme+"://"+u.Host || u.Scheme != "https" && !(u.Scheme == "http" && netguard.IsLoopback(u.Hostname())) {
		return fault.New(fault.Config, "public_url: %q is not https://HOST", c.PublicURL).
			WithHint("without a path; http only for localhost")
	}
	return nil
}

// IdentityOptions are the options of signing in. The caller adds what records it, and the
// HTTP client.
func (l *Loaded) IdentityOptions(secrets secret.Finder) identity.Options {
	return identity.Options{
		PublicURL: l.PublicURL, Providers: l.SignInProviders(secrets), Roles: l.PeopleRoles(), Registration: l.People.Registration,
		Browsers: l.Browsers(), Key: func() (secret.Text, error) { return l.OAuthKey(secrets) },
	}
}
