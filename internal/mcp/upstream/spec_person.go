package upstream

import (
	"fmt"
	"slices"
)

// Whose account the calls of an upstream use, for Spec.Login.
const (
	LoginShared   = "shared"   // one connection for everybody
	LoginEach     = "each"     // a connection and a login of each principal
	LoginExchange = "exchange" // the same, with tokens that are exchanged for those of the principal (RFC 8693)
	LoginIDJAG    = "id-jag"   // the same, by an identity assertion of the company's provider
)

// DefaultPeople is how many principals may be connected to one upstream at a time.
const DefaultPeople = 50

// Person is who a connection acts for.
type Person struct {
	ID    string
	Name  string
	Email string
	Org   string
}

// Personal reports whether every principal has a connection of its own.
func (s Spec) Personal() bool { return s.Login != "" && s.Login != LoginShared }

func (s Spec) loginProblem() error {
	switch {
	case !slices.Contains([]string{"", LoginShared, LoginEach, LoginExchange, LoginIDJAG}, s.Login):
		return fmt.Errorf("login %q is not shared, each, exchange or id-jag", s.Login)
	case s.People < 0:
		return fmt.Errorf("people %d is less than zero", s.People)
	case !s.Personal():
		return nil
	case s.Login != LoginEach && s.URL == "" && s.API.IsZero():
		return fmt.Errorf("login %q needs a url", s.Login)
	case s.Record != "":
		return fmt.Errorf("record with login %q would store the answers that several people got in one file", s.Login)
	case isZMQ(s.transport()):
		return fmt.Errorf("login %q is not possible over %s", s.Login, s.transport())
	}
	return nil
}

// samePeople reports whether both specs act for the same principals.
func (s Spec) samePeople(other Spec) bool {
	return s.Personal() == other.Personal() && (!s.Personal() || s.Login == other.Login) && s.Owner == other.Owner && s.Person == other.Person
}
