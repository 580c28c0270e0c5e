package egress

import (
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Within makes the gateway of a program with a profile. What is not Strict has the
// network of the machine: the gateway allows everything then.
func (s *Service) Within(p profile.Profile) (*Gateway, error) {
	rules, err := ParseRules(p.Network)
	if err != nil {
		return nil, err
	}
	rules.all = p.Level != profile.Strict // the list still says which ports are used
	program := Program{Name: p.Name, Rules: rules}
	for _, c := range p.Credentials {
		value, err := s.options.Secret(c.Value.Reveal())
		if err != nil {
			return nil, fault.Wrap(fault.NeedsAuth, err, "secret %s of %s", c.Name, p.Name).WithHint("%s", fault.HintOf(err))
		}
		program.Secrets = append(program.Secrets, Secret{Name: c.Name, Variable: c.Variable, Value: value, Hosts: c.Hosts})
	}
	return s.Gateway(program)
}
