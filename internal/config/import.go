package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// ImportState is what importing a server would do.
type ImportState string

// The states of candidates.
const (
	ImportNew      ImportState = "new"
	ImportKnown    ImportState = "known"    // an upstream is the same server
	ImportTwice    ImportState = "twice"    // an earlier candidate is the same server
	ImportDisabled ImportState = "disabled" // in the client; it is imported by name only
	ImportInvalid  ImportState = "invalid"
)

// Candidate is a server of another client that can become an upstream.
type Candidate struct {
	clientfile.Server
	File    clientfile.File
	Name    string // the upstream's name; with ImportKnown and ImportTwice that of the other one
	State   ImportState
	Problem string // with ImportInvalid
	Sandbox string // the level that it is to have; empty: that of new servers
}

// Candidates returns the servers of other clients, without Luanette itself, and what
// importing each would do.
func (l *Loaded) Candidates(found []clientfile.Found, env Environment) ([]Candidate, error) {
	known, _, err := l.UpstreamSpecs(env)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for name := range l.Upstreams {
		taken[name] = true
	}
	for _, spec := range known {
		taken[spec.Name] = true
	}
	var all []Candidate
	for _, f := range found {
		for _, s := range f.Servers {
			if s.Ours() {
				continue
			}
			c := Candidate{Server: s, File: f.File, Name: s.Spec.Name}
			c.classify(known, all, taken, env)
			all = append(all, c)
		}
	}
	return all, nil
}

// classify decides the state and the name of a candidate.
func (c *Candidate) classify(known []upstream.Spec, before []Candidate, taken map[string]bool, env Environment) {
	spec, _ := withoutInputs(c.Spec).Expand(env.Lookup)
	if err := spec.Validate(); err != nil {
		c.State, c.Problem = ImportInvalid, err.Error()
		return
	}
	for _, other := range known {
		if sameServer(spec, other, c.asks) {
			c.State, c.Name = ImportKnown, other.Name
			return
		}
	}
	for _, other := range before {
		if other.State != ImportInvalid && sameServer(c.Spec, other.Spec, c.asks) {
			c.State, c.Name = ImportTwice, other.Name
			return
		}
	}
	if c.State = ImportNew; c.Disabled {
		c.State = ImportDisabled
	}
	base := c.Name
	for i := 1; taken[c.Name]; i++ {
		if c.Name = base + "-" + c.File.Client.Name; i > 1 {
			c.Name = fmt.Sprintf("%s-%d", base, i)
		}
	}
	taken[c.Name] = true
}

// sameServer reports whether b is the server a, with all of a's variables and headers:
// another token may be another account. Those that the client asks for count as equal.
func sameServer(a, b upstream.Spec, asked func(key string) bool) bool {
	within := func(a, b map[string]string) bool {
		for key, value := range a {
			if other, ok := b[key]; !ok || other != value && !asked(key) {
				return false
			}
		}
		return true
	}
	return a.URL == b.URL && a.Command == b.Command && slices.Equal(a.Args, b.Args) && a.Cwd == b.Cwd &&
		within(a.Env, b.Env) && within(a.Headers, b.Headers)
}

// asks reports whether the client asks for the value of a variable or header.
func (c *Candidate) asks(key string) bool {
	return inputForm().MatchString(c.Spec.Env[key]) || inputForm().MatchString(c.Spec.Headers[key])
}

var inputForm = lazyregexp.New(`\$\{input:([^}]+)\}`)

// mapTexts returns a spec with all its texts changed: those that may refer to secrets by
// hidden, the others by shown.
func mapTexts(spec upstream.Spec, shown, hidden func(string) string) upstream.Spec {
	_ = tagged.Texts(&spec.Settings, "vars", func(kind, text string) (string, error) {
		if kind == "secret" {
			return hidden(text), nil
		}
		return shown(text), nil
	})
	return spec
}

// withoutInputs returns a spec in which inputs have some value, to validate the rest.
func withoutInputs(spec upstream.Spec) upstream.Spec {
	some := func(text string) string { return inputForm().ReplaceAllString(text, "x") }
	return mapTexts(spec, some, some)
}

// Missing returns the inputs of a candidate that are neither given nor stored.
func (c Candidate) Missing(sources Sources, given map[string]string) (missing []clientfile.Input) {
	for _, input := range c.Inputs {
		if _, ok := given[input.ID]; !ok && !hasSecret(sources, c.secretName(input.ID)) {
			missing = append(missing, input)
		}
	}
	return missing
}

// secretName is the name under which an input is stored, for all servers of the client
// that use it.
func (c Candidate) secretName(id string) string {
	return clientfile.Namespace(c.File.Client.Name + "-" + id)
}

// Import adds a candidate to the configuration file and returns the file's path. Inputs
// are stored as secrets.
func Import(ctx context.Context, sources Sources, c Candidate, given map[string]string) (file string, err error) {
	if c.State == ImportInvalid {
		return "", fault.New(fault.InvalidParams, "import %s: %s", c.Key, c.Problem).WithHint("correct it in %s", c.File.Path)
	}
	if missing := c.Missing(sources, given); len(missing) > 0 {
		return "", fault.New(fault.InvalidParams, "import %s: %s asks for %s", c.Key, c.File.Client.Title, missing[0].ID).
			WithHint("give it with --input %s=VALUE", missing[0].ID)
	}
	references, values := map[string]string{}, map[string]string{}
	for _, input := range c.Inputs {
		references[input.ID], values[input.ID], err = storeInput(sources, c.secretName(input.ID), input, given)
		if err != nil {
			return "", err
		}
	}
	replace := func(with map[string]string) func(string) string {
		return func(text string) string {
			return inputForm().ReplaceAllStringFunc(text, func(form string) string { return with[inputForm().FindStringSubmatch(form)[1]] })
		}
	}
	entry := mapTexts(c.Spec, replace(values), replace(references)).Settings
	if entry.Command != "" {
		entry.Sandbox = c.Sandbox
	}
	return AddUpstream(ctx, sources, NewUpstream{Name: c.Name, Entry: entry, Propose: true})
}

// storeInput stores a secret that was given and returns how to refer to it, and its
// value.
func storeInput(sources Sources, name string, input clientfile.Input, given map[string]string) (reference, value string, err error) {
	value, ok := given[input.ID]
	if ok && !input.Secret {
		return value, value, nil
	}
	if ok {
		reference, err = StoreSecret(sources, name, secret.New(value))
		return reference, value, err
	}
	return readSecret(sources, name)
}

// Copied names the variables and headers whose values look secret and are copied into
// the configuration file with the server.
func (c Candidate) Copied() (names []string) {
	for _, table := range []map[string]string{c.Spec.Env, c.Spec.Headers} {
		for key, value := range table {
			if (redact.Secret(key) || strings.HasSuffix(strings.ToUpper(key), "KEY")) && value != "" && !strings.Contains(value, "${") {
				names = append(names, key)
			}
		}
	}
	slices.Sort(names)
	return names
}
