package conversation

import (
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
)

// DefaultOrg is the organisation of people of whom none is told.
const DefaultOrg = "default"

// Person is somebody who talks to the agent. Two of them with the same User in
// different organisations have nothing in common. An organisation itself is the
// Person without a User.
type Person struct {
	Org  string
	User string
}

// longestName bounds organisations' and people's names.
const longestName = 256

// Check refuses names that nobody has.
func (p Person) Check() error {
	for what, name := range map[string]string{"org": p.Org, "user_id": p.User} {
		if name == "" || len(name) > longestName || !utf8.ValidString(name) || strings.ContainsFunc(name, isControl) {
			return fault.New(fault.InvalidParams, "%s must be text of 1 to %d bytes", what, longestName)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// org is the person's organisation.
func (p Person) org() Person { return Person{Org: p.Org} }

// String names the person in logs and as the owner of sessions.
func (p Person) String() string { return p.Org + ":" + p.User }
