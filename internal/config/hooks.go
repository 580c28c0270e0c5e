package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config/trust"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/webhook"
)

// Hook is a webhook: POST /hooks/NAME starts a job.
type Hook struct {
	Script     string            `toml:"script" help:"what it starts: the name of a published script, the hash of a stored one, or a file"`
	Scheme     string            `toml:"scheme,omitempty" words:"|schemes" help:"how requests are authenticated: github, stripe, slack, standard (Standard Webhooks), or secret, which is the default: the secret itself in a header"`
	Secret     string            `toml:"secret" secret:"all" help:"the secret, as a reference such as ${env:NAME}, ${file:PATH} or ${keyring:SERVICE/NAME}"`
	OldSecret  string            `toml:"old_secret,omitempty" secret:"all" help:"a secret that is accepted too, while the service changes to the new one"`
	Header     string            `toml:"header,omitempty" help:"with the scheme secret: the header that has it; X-Hook-Secret when empty"`
	Delivery   string            `toml:"delivery,omitempty" help:"the header that identifies a delivery, so that it starts one job however often it comes; that of the scheme when empty, Idempotency-Key with the scheme secret"`
	Headers    map[string]string `toml:"headers,omitempty" help:"headers that become params of the script: { event = \"X-GitHub-Event\" }"`
	Window     Duration          `toml:"window,omitempty" help:"how old the signed time of a request may be; 5m when empty"`
	Keep       Duration          `toml:"keep,omitempty" help:"how long a delivery is recognised when it comes again; 168h when empty"`
	MaxKB      int               `toml:"max_kb,omitempty" help:"the largest body, in KiB; 1024 when empty"`
	Tags       []string          `toml:"tags,omitempty" help:"tags of the jobs"`
	Scopes     []string          `toml:"scopes,omitempty" words:"scopes" help:"what the jobs may do: mcp, which is the default, or other scopes of keys"`
	Org        string            `toml:"org,omitempty" help:"the organisation that the jobs are limited to"`
	Namespaces []string          `toml:"namespaces,omitempty" help:"the namespaces that the jobs are limited to; * matches any text"`
	Tools      []string          `toml:"tools,omitempty" help:"the tools that the jobs are limited to, as namespace.tool or the name of one of our tools; * matches any text"`
	Concurrent int               `toml:"concurrent,omitempty" help:"how many tool calls may run for the jobs at a time"`
	Budget     int               `toml:"budget,omitempty" help:"how many tool calls a day the jobs may make"`
}

// hookNames are the names that a hook may have: they are part of its URL.
var hookNames = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// checkHooks refuses hooks that nobody could use, or anybody.
func (c *Config) checkHooks() error {
	for _, name := range slices.Sorted(maps.Keys(c.Hooks)) {
		if err := c.Hooks[name].check(name); err != nil {
			return err
		}
	}
	return nil
}

func (h Hook) check(name string) error {
	scheme := webhook.Scheme(cmp.Or(h.Scheme, string(webhook.Secret)))
	switch {
	case !hookNames().MatchString(name):
		return fault.New(fault.Config, "hooks: %q cannot be the name of a hook", name).WithHint("use letters, digits, dots, _ and -: it is part of the URL")
	case h.Script == "":
		return fault.New(fault.Config, "hooks.%s: it has no script", name).WithHint("set script to a published script, the hash of a stored one, or a file")
	case h.Secret == "":
		return fault.New(fault.Config, "hooks.%s: it has no secret, so anybody could use it", name).WithHint("secret = \"${env:HOOK_SECRET}\", with the secret that the service signs with")
	case h.Header != "" && scheme != webhook.Secret:
		return fault.New(fault.Config, "hooks.%s.header: the scheme %s has its own headers", name, scheme).WithHint("header is only used with the scheme secret")
	}
	return nil
}

// Webhooks returns the hooks with their secrets. One whose secret cannot be read is left
// out, with the reason.
func (l *Loaded) Webhooks(finder secret.Finder) (hooks map[string]webhook.Hook, problems []error) {
	hooks = map[string]webhook.Hook{}
	for _, name := range slices.Sorted(maps.Keys(l.Hooks)) {
		hook, err := l.Hooks[name].read(name, finder)
		if err != nil {
			problems = append(problems, fault.Wrap(fault.Config, err, "hooks.%s", name))
			continue
		}
		if isScriptFile(hook.Script) {
			hook.Script = l.beside(hook.Script)
		}
		hooks[name] = hook
	}
	return hooks, problems
}

// isScriptFile reports whether a hook's script is a file.
func isScriptFile(name string) bool {
	return slices.ContainsFunc([]string{".lua", ".js", ".ts"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

func (h Hook) read(name string, finder secret.Finder) (hook webhook.Hook, err error) {
	hook = webhook.Hook{
		Name: name, Script: h.Script, Scheme: webhook.Scheme(cmp.Or(h.Scheme, string(webhook.Secret))),
		Header: cmp.Or(h.Header, webhook.DefaultHeader), Delivery: h.Delivery, Headers: h.Headers, Tags: h.Tags,
		Window:   cmp.Or(time.Duration(h.Window), webhook.DefaultWindow),
		Keep:     cmp.Or(time.Duration(h.Keep), webhook.DefaultKeep),
		MaxBytes: cmp.Or(int64(h.MaxKB)<<10, webhook.DefaultMaxBytes),
		Principal: principal.Principal{
			ID: webhook.PrincipalID(name), Name: name, Org: h.Org, Namespaces: h.Namespaces, Tools: h.Tools,
			Limits: principal.Limits{Concurrent: h.Concurrent, Budget: h.Budget},
		},
	}
	for _, scope := range h.Scopes {
		hook.Principal.Scopes = append(hook.Principal.Scopes, principal.Scope(scope))
	}
	if len(h.Scopes) == 0 {
		hook.Principal.Scopes = []principal.Scope{principal.MCP}
	}
	for _, text := range []string{h.Secret, h.OldSecret} {
		if text == "" {
			continue
		}
		found, err := finder.Find(text)
		if err != nil {
			return hook, err
		}
		if found.IsZero() {
			return hook, fault.New(fault.Config, "its secret is empty")
		}
		if hook.Scheme == webhook.Standard {
			if _, err := webhook.StandardKey(found); err != nil {
				return hook, err
			}
		}
		hook.Secrets = append(hook.Secrets, found)
	}
	return hook, nil
}

// hookItem is a hook as something that needs trust: it lets somebody else start a script.
func (l *Loaded) hookItem(name string) trust.Item {
	h := l.Hooks[name]
	content := []any{h}
	if isScriptFile(h.Script) {
		content = append(content, hashOf(l.beside(h.Script)))
	}
	return trust.NewItem("hooks."+name, "starts "+h.Script+" for requests from outside", content)
}
