package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Secret is a secret that the variables of programs refer to, as secret:NAME.
type Secret struct {
	Value string   `toml:"value" secret:"all" help:"the secret, as a reference: ${file:PATH}, ${env:NAME} or ${keyring:SERVICE/NAME}"`
	Hosts []string `toml:"hosts,omitempty" help:"hosts that get the secret, such as api.github.com or git.example.org:8443; the program gets a placeholder, which is replaced in the headers of its requests to them; without hosts the program gets the secret itself; docs/network.md"`
}

// secretPrefix begins the value of a variable that refers to a secret.
const secretPrefix = "secret:"

// checkSecrets refuses secrets that cannot be used, and references to unknown ones.
func (c *Config) checkSecrets() error {
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		s := c.Secrets[name]
		if s.Value == "" {
			return fault.New(fault.Config, "secrets.%s: value is missing", name).WithHint("value = \"${file:PATH}\", \"${env:NAME}\" or \"${keyring:SERVICE/NAME}\"")
		}
		if err := egress.CheckHosts(name, s.Hosts); err != nil {
			return fault.Wrap(fault.Config, err, "secrets.%s", name).WithHint("%s", fault.HintOf(err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if err := c.checkReferences(name, c.Upstreams[name].Env); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkReferences(upstream string, env map[string]string) error {
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		name, refers := strings.CutPrefix(env[variable], secretPrefix)
		if _, known := c.Secrets[name]; !refers || known {
			continue
		}
		hint := fmt.Sprintf("define it: [secrets.%s] with value and hosts", name)
		if near := suggest.Names(name, slices.Sorted(maps.Keys(c.Secrets)), 1); len(near) > 0 {
			hint = fmt.Sprintf("did you mean secret:%s?", near[0])
		}
		return fault.New(fault.Config, "upstreams.%s.env.%s: there is no secret %q", upstream, variable, name).WithHint("%s", hint)
	}
	return nil
}

// withSecrets returns the variables of a program without those for which it gets a
// placeholder, and these.
func (c *Config) withSecrets(env map[string]string) (plain map[string]string, held []profile.Credential) {
	plain = maps.Clone(env)
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		name, refers := strings.CutPrefix(env[variable], secretPrefix)
		s, known := c.Secrets[name]
		switch {
		case !refers || !known:
			continue
		case len(s.Hosts) == 0:
			plain[variable] = s.Value
		default:
			delete(plain, variable)
			held = append(held, profile.Credential{Name: name, Variable: variable, Value: secret.New(s.Value), Hosts: s.Hosts})
		}
	}
	return plain, held
}

// usedSecrets are the definitions of the secrets that variables refer to, for trust: who
// trusts a program trusts where its secrets go.
func (c *Config) usedSecrets(env map[string]string) []any {
	var used []any
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		if name, refers := strings.CutPrefix(env[variable], secretPrefix); refers {
			s := c.Secrets[name]
			used = append(used, s.Value, s.Hosts)
		}
	}
	return used
}
