package principal

import (
	"net/url"
	"strings"
)

// LoginOwner returns the ID under which its logins at upstreams, connections of its own and
// personal values are stored. A person's keys and clients use those of the person. The
// people for whom one key chats are not that key, and each has its own.
func (p Principal) LoginOwner() string {
	id := p.ID
	if p.IsGuest() { // guests use the owner's logins
		id = LocalID
	}
	if p.Person == "" || id == LocalID || strings.HasPrefix(id, PersonPrefix) {
		return id
	}
	return id + chatsFor + p.Person
}

const chatsFor = " for "

// SplitLoginOwner returns the parts of what LoginOwner returns: the ID, and the person for whom
// it chats as in Principal.Person, which may be empty.
func SplitLoginOwner(owner string) (id, person string) {
	id, person, _ = strings.Cut(owner, chatsFor)
	return id, person
}

// LacksLogin says why the owner of logins cannot log in anywhere with an account of their own,
// and what is possible; both are empty if it can. Only people who sign in and the owner of a
// server without keys open pages of this server as themselves.
func LacksLogin(owner string) (why, hint string) {
	const shared = "or an administrator gives the upstream one login for all"
	id, person := SplitLoginOwner(owner)
	switch {
	case id == LocalID || strings.HasPrefix(id, PersonPrefix):
		return "", ""
	case person == "":
		return id + " is not a person", "use a key or token of a person who is signed in (luanette login, POST /api/v1/me/keys), " + shared
	}
	_, user, _ := strings.Cut(person, "/")
	if plain, err := url.PathUnescape(user); err == nil {
		user = plain
	}
	return user + " is known only by " + id + ", and cannot log in here",
		"the application behind " + id + " lets " + user + " sign in here and sends that person's token (docs/people.md#people-of-a-chat-application), " + shared
}
