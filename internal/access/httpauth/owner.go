package httpauth

import (
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

// ownerPath is where a link signs the owner's browser in.
const ownerPath = "/signin/owner"

// OwnerLink returns the path of a link that signs one browser in as the owner, once.
func (a *Authenticator) OwnerLink() string {
	return ownerPath + "?" + url.Values{"code": {a.codes.New()}}.Encode()
}

// ownerLink answers the owner's commands with such a link. With a key one logs in on the page.
func (a *Authenticator) ownerLink(w http.ResponseWriter, r *http.Request) error {
	path := "/"
	if principal.Of(r.Context()).ID == principal.LocalID {
		path = a.OwnerLink()
	}
	writeJSON(w, http.StatusOK, map[string]string{"path": path})
	return nil
}

// signInOwner begins the owner's session in the browser that opened a link.
func (a *Authenticator) signInOwner(w http.ResponseWriter, r *http.Request) error {
	from := netguard.Source(a.remote(r))
	if after, stop := a.wrongKeys.blocked(from, "", time.Now()); stop {
		return principal.Exceeded{What: "wrong codes", Of: "the address " + from, Most: failuresAllowed, Per: "minute", After: after}.Fault()
	}
	if err := a.checkOwner(r, &access{who: principal.Local()}); err != nil {
		return err
	}
	if a.options.Secret.IsZero() || !a.codes.Use(r.URL.Query().Get("code")) {
		a.wrongKeys.add(from, "", time.Now())
		a.options.OnLogin(r.Context(), "login", a.remote(r), false)
		return fault.New(fault.Denied, "this link was used already, or is of an earlier start").WithHint("luanette open makes another")
	}
	session, who, err := a.options.Keys.BeginSession(r.Context(), a.options.Secret.Reveal())
	if err != nil {
		return err
	}
	a.options.OnLogin(principal.With(r.Context(), who), "login", a.remote(r), true)
	cookie.In(r, a.options.Browsers).Set(w, cookie.Session, session, who.Expires)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}
