package oauth

import (
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// shownName is the name of an upstream for its owner: those of their organisation are called
// as members call them.
func (s Server) shownName() string { return principal.Principal{Org: s.Org}.NameOf(s.Name) }

// ownNeeded is the error that a person has to log in, with the address of the page. Owners
// who cannot open it as themselves are told what is possible instead.
func (l *Logins) ownNeeded(s Server, what string) error {
	name := s.shownName()
	if why, hint := principal.LacksLogin(s.Owner); why != "" {
		return fault.New(fault.NeedsAuth, "upstream %s is used with the account of each person: %s", name, why).WithHint("%s", hint)
	}
	f := fault.New(fault.NeedsAuth, "upstream %s requires %s", name, what)
	if l.options.Connect == nil {
		return f.WithHint("ask an administrator how to log in to %s with your own account", name)
	}
	link := l.options.Connect(name)
	return f.WithHint("open %s in a browser and log in with your own account, then try again", link).WithDetails(map[string]any{
		"login": map[string]string{"upstream": name, "url": link},
	})
}

// again is the hint after a login that failed.
func (l *Logins) again(s Server) string {
	if s.Owner != "" && l.options.Connect != nil {
		return "start again at " + l.options.Connect(s.shownName())
	}
	return "start again with `luanette upstream login " + s.Name + "`"
}
