package profile

import (
	"slices"

	"github.com/luanette/luanette/internal/base/secret"
)

// Credential is a secret that a program uses without having it: its variable has a
// placeholder, which the gateway replaces in requests to the hosts.
type Credential struct {
	Name     string
	Variable string      // of the program's environment
	Value    secret.Text // a reference to the secret, or the secret itself
	Hosts    []string
}

// Equal reports whether nothing differs.
func (c Credential) Equal(other Credential) bool {
	return c.Name == other.Name && c.Variable == other.Variable && c.Value.Reveal() == other.Value.Reveal() && slices.Equal(c.Hosts, other.Hosts)
}
