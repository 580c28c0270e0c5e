package approval

import (
	"cmp"
	"encoding/json"

	"github.com/luanette/luanette/internal/core/principal"
)

// Party is somebody who asks or decides.
type Party struct {
	ID     string `json:"id"`               // of the principal
	Name   string `json:"name,omitempty"`   // for people
	User   string `json:"user,omitempty"`   // the person behind it, where one is known
	Person string `json:"person,omitempty"` // for whom it acts in a chat
	Org    string `json:"org,omitempty"`
	Agent  string `json:"agent,omitempty"` // the client program, as it calls itself
}

// owner returns whose run waits for the approval.
func (a *Approval) owner() principal.Owner {
	return principal.Owner{ID: a.Asker.ID, Person: a.Asker.Person, Org: a.Org}
}

// askedBy reports whether a person asked.
func (a *Approval) askedBy(person string) bool {
	return a.Asker.is(Party{ID: principal.PersonID(person, a.Org), User: person})
}

func partyOf(who principal.Principal) Party {
	return Party{ID: who.ID, Name: who.Name, User: who.User, Person: who.Person, Org: who.Org}
}

// Title is the party's name in messages, with the program where anybody may use it.
func (p Party) Title() string {
	switch {
	case p.ID == principal.LocalID && p.Agent != "":
		return "the owner of the machine, with " + p.Agent
	case p.ID == principal.LocalID:
		return "the owner of the machine"
	case p.ID == principal.GuestID && p.Agent != "":
		return "a guest of the machine, with " + p.Agent
	case p.ID == principal.GuestID:
		return "a guest of the machine"
	default:
		return cmp.Or(p.Name, p.ID)
	}
}

// is reports whether two parties are, or may be, the same person: by the same key, by
// different keys of one person, or in a chat.
func (p Party) is(other Party) bool {
	return p.ID == other.ID || p.User != "" && p.User == other.User || p.Person != "" && p.Person == other.Person
}

func (p Party) text() string {
	raw, _ := json.Marshal(p) // texts always encode
	return string(raw)
}

// readParty reads a stored party. Rows of older versions have none: then it is known by
// its ID only.
func readParty(stored, id string) (p Party, err error) {
	if stored == "" {
		return Party{ID: cmp.Or(id, principal.LocalID), Name: cmp.Or(id, principal.LocalID)}, nil
	}
	return p, json.Unmarshal([]byte(stored), &p)
}
