package principal

import (
	"cmp"
	"strings"
)

// LoginOwner returns the ID under which its logins at upstreams, connections of its own and
// personal values are stored. A person's keys and clients use those of the person. The
// people for whom one key chats are not that key, and each has its own.
func (p Principal) LoginOwner() string {
	id := cmp.Or(p.Account, p.ID)
	if p.Person == "" || id == LocalID || strings.HasPrefix(id, PersonPrefix) {
		return id
	}
	return id + " for " + p.Person
}
