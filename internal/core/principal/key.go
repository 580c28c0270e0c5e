package principal

import (
	"encoding/json"
	"strings"
)

// KeyPrefix is the prefix of the IDs of keys of services, and of the Grant of people's keys.
const KeyPrefix = "key:"

// ByKey returns the principal of a person who uses a key of theirs: what it starts belongs to
// the person.
func (p Principal) ByKey(name string) Principal {
	p.Grant, p.Client = KeyPrefix+name, "key "+name
	return p
}

// OwnKey returns the name of the key with which a person acts; ok is false if it is not by a
// key, or by one of a service.
func (p Principal) OwnKey() (name string, ok bool) { return strings.CutPrefix(p.Grant, KeyPrefix) }

// KeyID returns what identifies the key of a person among those of everybody: PERSON/NAME, or
// PERSON/ORG/NAME. The ID of the person has both.
func KeyID(person, name string) string { return strings.TrimPrefix(person, PersonPrefix) + "/" + name }

// RuleNames returns by which names rules mean p. People choose the names of their keys: those are
// meant by their IDs only.
func (p Principal) RuleNames() []string {
	if name, ok := p.OwnKey(); ok {
		return []string{p.Name, KeyID(p.ID, name)}
	}
	return []string{p.Name}
}

// UnmarshalJSON reads a stored principal. Keys of people were once principals of their own,
// and had the person in "account".
func (p *Principal) UnmarshalJSON(data []byte) error {
	type plain Principal // without this method
	stored := struct {
		*plain
		Account string `json:"account"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	if name, ok := strings.CutPrefix(p.ID, KeyPrefix); ok && stored.Account != "" {
		*p = p.ByKey(name)
		p.ID, p.Limits, p.KeyLimits = stored.Account, Limits{}, p.Limits
	}
	return nil
}

// Limited is a part of a principal that has limits of its own.
type Limited struct {
	ID    string // counts the use
	Title string
	Limits
}

// Limited returns what has limits: the key of a person, and the person; one of them may have
// none. The use of a key counts for both.
func (p Principal) Limited() (list []Limited) {
	if name, ok := p.OwnKey(); ok && p.KeyLimits != (Limits{}) {
		list = append(list, Limited{p.ID + "/" + KeyPrefix + name, p.Title(), p.KeyLimits})
	}
	if p.Limits != (Limits{}) {
		p.Grant = "" // in a message they are the person's
		list = append(list, Limited{p.ID, p.Title(), p.Limits})
	}
	return list
}
