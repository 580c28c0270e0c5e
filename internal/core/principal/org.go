package principal

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

var orgName = regexp.MustCompile(`^[A-Za-z0-9](-?[A-Za-z0-9])*$`)

// CheckOrg refuses names of organisations that cannot be part of the name of a namespace.
func CheckOrg(name string) error {
	if len(name) > 32 || !orgName.MatchString(name) {
		return fault.New(fault.InvalidParams, "%q cannot be the name of an organisation", name).
			WithHint("use up to 32 letters, digits and single hyphens")
	}
	return nil
}

// InOrg returns the namespace of an organisation's own upstream, "github@acme", or the name
// of its own published script. An empty organisation is the server itself.
func InOrg(name, org string) string {
	if org == "" {
		return name
	}
	return name + "@" + org
}

// SplitNamespace returns the name and the organisation of a namespace or of a published
// script; the organisation is empty for those of the server.
func SplitNamespace(space string) (name, org string) {
	name, org, _ = strings.Cut(space, "@")
	return name, org
}

// ActingOrg returns the organisation that p acts in. For a key of all organisations it is,
// in a chat, that of the person there.
func (p Principal) ActingOrg() string {
	if name, _, in := strings.Cut(p.Person, "/"); in && p.Org == "" {
		if org, err := url.PathUnescape(name); err == nil {
			return org
		}
	}
	return p.Org
}

// ManagesOrg reports whether p manages the organisation that it is for, and nothing else. In a
// chat for somebody it does not.
func (p Principal) ManagesOrg() bool { return p.Org != "" && p.Person == "" && p.May(Org, p.Org) }

// CheckManages refuses those who do not manage an organisation.
func (p Principal) CheckManages(org string) error {
	if err := CheckOrg(org); err != nil {
		return err
	}
	if !p.May(Org, org) {
		return fault.New(fault.Denied, "%s does not manage the organisation %s", p.Title(), org).
			WithHint("use a key of that organisation with the scope org, or sign in there: `luanette login URL --org %s`", org)
	}
	return nil
}

// IsForeign reports whether a namespace or script is that of an organisation that p has
// nothing to do with. Administrators of the server see those of all, except in a chat for somebody.
func (p Principal) IsForeign(space string) bool {
	_, org := SplitNamespace(space)
	return org != "" && org != p.ActingOrg() && (p.Person != "" || !p.Admin())
}

// Namespace returns the namespace or script that a name stands for: that of the caller's
// organisation if it exists, else the server's.
func (p Principal) Namespace(name string, exists func(namespace string) bool) string {
	if org := p.ActingOrg(); org != "" {
		if own := InOrg(name, org); exists(own) {
			return own
		}
	}
	return name
}

// NameOf returns the name of a namespace or script for the caller: those of their own
// organisation are shown without it.
func (p Principal) NameOf(space string) string {
	if name, org := SplitNamespace(space); org != "" && org == p.ActingOrg() {
		return name
	}
	return space
}

// Visible returns the namespaces of a list that the caller can see. Those of the server
// are not seen if the caller's organisation has one of the same name.
func (p Principal) Visible(spaces []string) (list []string) {
	org := p.ActingOrg()
	for _, space := range spaces {
		if p.CanSee(space, "") && !(org != "" && slices.Contains(spaces, InOrg(space, org))) {
			list = append(list, space)
		}
	}
	return list
}
