package config

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
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

// Role is a set of rights that people get by name.
type Role struct {
	Scopes     []string `toml:"scopes,omitempty" words:"scopes" help:"its scopes: admin, org, chat, mcp, read, metrics"`
	Tools      []string `toml:"tools,omitempty" help:"the only tools, as namespace.tool or the name of one of our tools; * matches any text"`
	Set        string   `toml:"set,omitempty" help:"the set of tools it is limited to, at every address; docs/sets.md"`
	Rate       int      `toml:"rate,omitempty" help:"how many requests a minute, to each node"`
	Concurrent int      `toml:"concurrent,omitempty" help:"how many tool calls at a time, on each node"`
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
		r := people.Role{Tools: role.Tools, Set: role.Set, Limits: principal.Limits{Rate: role.Rate, Concurrent: role.Concurrent, Budget: role.Budget}}
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

// checkPublicURL refuses an address that cookies and logins would not be safe at. A slash at its
// end means nothing.
func (c *Config) checkPublicURL() error {
	if c.PublicURL = strings.TrimRight(c.PublicURL, "/"); c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Host == "" || !publicPath().MatchString(u.Path) || c.PublicURL != u.Scheme+"://"+u.Host+u.Path || u.Scheme != "https" && !(u.Scheme == "http" && netguard.IsLoopback(u.Hostname())) {
		return fault.New(fault.Config, "public_url: %q is not https://HOST or https://HOST/PATH", c.PublicURL).
			WithHint("http only for localhost; in the path letters, digits, dots, - and _")
	}
	return nil
}

// publicPath is a path of the public address. It is part of names of cookies, too.
var publicPath = lazyregexp.New(`^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)

// IdentityOptions are the options of signing in. The caller adds what records it, and the
// HTTP client.
func (l *Loaded) IdentityOptions(secrets secret.Finder) identity.Options {
	return identity.Options{
		PublicURL: l.PublicURL, Providers: l.SignInProviders(secrets), Roles: l.PeopleRoles(), Registration: l.People.Registration,
		Browsers: l.Browsers(), Key: func() (secret.Text, error) { return l.OAuthKey(secrets) },
	}
}

// IssuerClient asks providers and issuers, which the owner configured and may be on this machine.
func (l *Loaded) IssuerClient(env Environment) (*http.Client, error) {
	trust, err := certpool.Config(l.CAFile)
	if err != nil {
		return nil, err
	}
	to := netguard.Outbound{Allowed: l.MCP.AllowedHosts, Proxy: netguard.EnvironmentProxy(env.Lookup), Loopback: true, TLS: trust}
	return &http.Client{Transport: to.Transport()}, nil
}

// Issuer is an authorization server whose tokens are accepted in addition to our own
// keys.
type Issuer struct {
	Issuer   string              `toml:"issuer" help:"the iss claim of its tokens, such as https://login.example"`
	Audience string              `toml:"audience" help:"required aud claim: the public URL of this server, such as https://hub.example/mcp"`
	JWKS     string              `toml:"jwks,omitempty" help:"URL of its public keys, if its metadata is not at the standard path"`
	Scopes   map[string][]string `toml:"scopes,omitempty" words:"scopes" help:"maps words of the scope claim to our scopes; if omitted, chat, mcp and read map to themselves"`
	Org      string              `toml:"org,omitempty" help:"the organisation its tokens are limited to"`
}

// checkIssuers refuses issuers without a valid URL, an audience or known scopes.
func (c *Config) checkIssuers() error {
	for _, name := range slices.Sorted(maps.Keys(c.Issuers)) {
		i := c.Issuers[name]
		u, err := url.Parse(i.Issuer)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fault.New(fault.Config, "issuers.%s.issuer: %q is not an address", name, i.Issuer).WithHint("such as https://login.example")
		}
		if i.Audience == "" {
			return fault.New(fault.Config, "issuers.%s: it has no audience", name).
				WithHint("set audience, otherwise tokens issued for other services would be accepted")
		}
	}
	return nil
}

// TokenIssuers lists the configured issuers, sorted by name.
func (c *Config) TokenIssuers() (issuers []jwt.Issuer) {
	for _, name := range slices.Sorted(maps.Keys(c.Issuers)) {
		from := c.Issuers[name]
		i := jwt.Issuer{URL: from.Issuer, Audience: from.Audience, Keys: from.JWKS, Org: from.Org}
		for word, scopes := range from.Scopes {
			if i.Scopes == nil {
				i.Scopes = map[string][]principal.Scope{}
			}
			for _, s := range scopes {
				i.Scopes[word] = append(i.Scopes[word], principal.Scope(s))
			}
		}
		issuers = append(issuers, i)
	}
	return issuers
}

// Key is an API key of the configuration.
type Key struct {
	Hash       string   `toml:"hash,omitempty" secret:"hash" help:"sha256: followed by the hash of the key"`
	Env        string   `toml:"env,omitempty" help:"variable that holds the key, instead of hash"`
	Scopes     []string `toml:"scopes,omitempty" help:"its scopes: chat, mcp, read, org (administration of one organisation) or admin (everything)"`
	Org        string   `toml:"org,omitempty" help:"the organisation it is limited to"`
	User       string   `toml:"user,omitempty" help:"the user it is limited to"`
	Namespaces []string `toml:"namespaces,omitempty" help:"the namespaces it is limited to; * matches any text"`
	Tools      []string `toml:"tools,omitempty" help:"the tools it is limited to, as namespace.tool or the name of one of our tools; * matches any text"`
	Set        string   `toml:"set,omitempty" help:"the set of tools it is limited to, at every address; docs/sets.md"`
	Rate       int      `toml:"rate,omitempty" help:"how many requests a minute it may make, to each node"`
	Concurrent int      `toml:"concurrent,omitempty" help:"how many tool calls may run for it at a time, on each node"`
	Budget     int      `toml:"budget,omitempty" help:"how many tool calls a day it may make"`
	Expires    string   `toml:"expires,omitempty" help:"expiry date, such as 2027-01-31"`
}

// FixedKeys returns the keys of the configuration, and ENGINE_API_KEY, which has every
// scope.
func (c *Config) FixedKeys(env Environment) (keys []apikey.Key, err error) {
	if token := env["ENGINE_API_KEY"]; token != "" {
		keys = append(keys, apikey.Key{Name: "ENGINE_API_KEY", Hash: apikey.HashOf(token), Fixed: true, Rights: apikey.Rights{Scopes: []principal.Scope{principal.Admin}}})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Keys)) {
		key, err := c.Keys[name].read(name, env)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// read returns the key that the configuration describes.
func (c Key) read(name string, env Environment) (key apikey.Key, err error) {
	bad := func(format string, args ...any) (apikey.Key, error) {
		return key, fault.New(fault.Config, "keys."+name+": "+format, args...)
	}
	key = apikey.Key{Name: name, Fixed: true, Rights: apikey.Rights{
		Org: c.Org, User: c.User, Namespaces: c.Namespaces, Tools: c.Tools, Set: c.Set,
		Limits: principal.Limits{Rate: c.Rate, Concurrent: c.Concurrent, Budget: c.Budget},
	}}
	switch {
	case c.Hash != "" && c.Env != "" || c.Hash == "" && c.Env == "":
		return bad("it needs either hash or env")
	case c.Hash != "":
		if key.Hash, err = apikey.ParseHash(c.Hash); err != nil {
			return key, fault.Wrap(fault.Config, err, "keys.%s", name)
		}
	default:
		token := env[c.Env]
		if token == "" {
			return key, fault.New(fault.Config, "keys.%s: the variable %s is not set", name, c.Env).
				WithHint("set it to the key, or give the key's hash instead of env")
		}
		key.Hash = apikey.HashOf(token)
	}
	for _, scope := range c.Scopes {
		key.Scopes = append(key.Scopes, principal.Scope(scope))
	}
	if c.Expires != "" {
		if key.Expires, err = time.Parse(time.DateOnly, c.Expires); err != nil {
			return bad("expires must look like 2027-01-31, not %q", c.Expires)
		}
	}
	if err := key.Check(); err != nil {
		return key, fault.Wrap(fault.Config, err, "keys.%s", name).WithHint("%s", fault.HintOf(err))
	}
	return key, nil
}

// Org is what an organisation has of its own.
type Org struct {
	Upstreams map[string]Upstream `toml:"upstreams,omitempty" help:"upstreams of this organisation alone, as in [upstreams]"`
	Quota     OrgQuota            `toml:"quota" help:"how much its members may use together"`
	Policy    []PolicyRule        `toml:"policy,omitempty" help:"rules for its members, as in [[policy]]; they can only restrict further"`

	MaxUpstreams int `toml:"max_upstreams,omitempty" min:"any" help:"how many upstreams those who manage it may add; 20 if it is not set, and none if it is negative"`
}

// defaultMaxUpstreams is how many upstreams an organisation may add.
const defaultMaxUpstreams = 20

// MaxUpstreams is how many upstreams those who manage an organisation may add.
func (c *Config) MaxUpstreams(org string) int {
	return max(cmp.Or(c.Orgs[org].MaxUpstreams, defaultMaxUpstreams), 0)
}

// OrgQuota limits what the members of an organisation use together. Zero is no limit.
type OrgQuota struct {
	Calls     int64 `toml:"calls" help:"how many calls of upstreams' tools a day, in UTC"`
	Jobs      int64 `toml:"jobs" help:"how many jobs start a day, in UTC"`
	CPU       int64 `toml:"cpu_seconds" help:"how many seconds of processor time its scripts use a day, in UTC"`
	StorageMB int64 `toml:"storage_mb" help:"how many MiB its contents may have together, each counted once"`
}

// OrgQuotas returns the quotas of organisations, by their settings.
func (c *Config) OrgQuotas() map[string]map[string]int64 {
	quotas := map[string]map[string]int64{}
	for name, org := range c.Orgs {
		quotas[name] = map[string]int64{"calls": org.Quota.Calls, "jobs": org.Quota.Jobs, "cpu_seconds": org.Quota.CPU, "storage_mb": org.Quota.StorageMB}
	}
	return quotas
}

// spreadOrgs moves the upstreams of organisations to the others, by their namespaces:
// [orgs.acme.upstreams.wiki] is wiki@acme, and so is [upstreams.wiki] with org = "acme".
func (l *Loaded) spreadOrgs() error {
	own := map[string]Upstream{}
	add := func(name, org string, u Upstream) error {
		if err := principal.CheckOrg(org); err != nil {
			return fault.Wrap(fault.Config, err, "upstreams.%s.org", name).WithHint("%s", fault.HintOf(err))
		}
		space := principal.InOrg(name, org)
		if _, twice := own[space]; twice {
			return fault.New(fault.Config, "upstreams.%s: the organisation %s has two of this name", name, org)
		}
		if len(u.Prefixes) > 0 {
			return fault.New(fault.Config, "upstreams.%s.prefixes: an upstream of an organisation cannot have prefixes", name).
				WithHint("prefixes apply to the callers of all organisations")
		}
		u.Org = nil
		own[space] = u
		return nil
	}
	for _, org := range slices.Sorted(maps.Keys(l.Orgs)) {
		for _, name := range slices.Sorted(maps.Keys(l.Orgs[org].Upstreams)) {
			if err := add(name, org, l.Orgs[org].Upstreams[name]); err != nil {
				return err
			}
		}
		rest := l.Orgs[org]
		rest.Upstreams = nil
		l.Orgs[org] = rest
	}
	for _, name := range slices.Sorted(maps.Keys(l.Upstreams)) {
		for _, org := range l.Upstreams[name].Org {
			if err := add(name, org, l.Upstreams[name]); err != nil {
				return err
			}
		}
		if l.Upstreams[name].Org != nil {
			delete(l.Upstreams, name)
		}
	}
	if l.Upstreams == nil && len(own) > 0 {
		l.Upstreams = map[string]Upstream{}
	}
	maps.Copy(l.Upstreams, own)
	return nil
}
