package share

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the shares of a person's things and those with the person, which are
// deleted, and those that they made as administrator, which stay.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "shares", Where: "OWNER(owner) OR recipient = 'person:' || PERSON"},
		{Name: "shares", Where: "OWNER(maker)", Set: "maker = PSEUDONYM"},
	}
}
