package conversation

import (
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
)

// DefaultOrg is the organisation of people for whom none is given.
const DefaultOrg = "default"

// Person identifies a user of the chat. Users with the same name in different
// organisations are unrelated. A Person without a User stands for the organisation
// itself.
type Person struct {
	Org  string
	User string
}

// longestName limits the names of organisations and users, in bytes.
const longestName = 256

// Check validates the names.
func (p Person) Check() error {
	for what, name := range map[string]string{"org": p.Org, "user_id": p.User} {
		if name == "" || len(name) > longestName || !utf8.ValidString(name) || strings.ContainsFunc(name, isControl) {
			return fault.New(fault.InvalidParams, "%s must be text of 1 to %d bytes", what, longestName)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// org returns the person's organisation.
func (p Person) org() Person { return Person{Org: p.Org} }

// String identifies the person in logs and as the owner of sessions.
func (p Person) String() string { return p.Org + ":" + p.User }
