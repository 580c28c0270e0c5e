package httpauth

import (
	"errors"
	"html/template"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

// keylessError refuses a request to a server without keys that may come from somebody
// else than the owner.
type keylessError struct{ error }

func (e keylessError) Unwrap() error { return e.error }

// local returns the access of a request without credentials to a server without keys. What
// is at the machine's own addresses is a guest at least, so a proxy in between would make
// everybody one, even a trusted proxy.
func (a *Authenticator) local(r *http.Request) (*access, error) {
	if !isLocal(r) {
		return nil, errNoCredentials
	}
	if why := foreign(r); why != "" {
		return nil, keylessError{fault.New(fault.Denied, "no key exists yet, so only this machine itself is served: %s", why).
			WithHint("make a key: luanette key create admin --scope admin")}
	}
	who, err := a.options.Peers.Identify(r.Context())
	return &access{who: who}, err
}

// checkOwner refuses the owner's secret and session from elsewhere than this machine, and
// from programs that the server has started: nobody has copied it there with a good reason.
func (a *Authenticator) checkOwner(r *http.Request, c *access) error {
	if c.who.ID != principal.LocalID {
		return nil
	}
	if !isLocal(r) {
		return fault.New(fault.Denied, "the owner's secret is for the machine of the server only").WithHint("use a key: luanette key create")
	}
	if why := foreign(r); why != "" {
		return fault.New(fault.Denied, "the owner's secret is for the machine of the server only: %s", why).WithHint("use a key: luanette key create")
	}
	return a.options.Peers.MayBeOwner(r.Context())
}

// errGuest refuses a guest.
var errGuest = fault.New(fault.NeedsAuth, "this is for the owner of the machine").
	WithHint("luanette open signs the browser in; commands on this machine sign in by themselves (docs/security.md)")

// ignoreKey returns the access without a key in place of the refusal of a wrong one, if the
// route takes any and the server has none.
func (a *Authenticator) ignoreKey(r *http.Request, route *principal.Route, c *access, refusal error) (*access, error) {
	if _, sent := bearer(r); refusal == nil || !route.AnyKey || !sent || fault.CodeOf(refusal) != fault.Denied {
		return c, refusal
	}
	if required, err := a.KeyRequired(r.Context()); err != nil || required {
		return c, refusal
	}
	return a.local(r)
}

// foreign returns why a request may come from another machine, or "".
func foreign(r *http.Request) string {
	header := netguard.Forwarded(r)
	switch {
	case header != "":
		return "the header " + header + " shows that a proxy forwarded the request"
	case !(netguard.Browsers{}).Served(r):
		return "the request is for the Host " + r.Host
	case !r.ProtoAtLeast(1, 1):
		return "HTTP/1.0 is what proxies use"
	}
	return ""
}

// refuseKeyless answers a request that keylessError refuses, and reports whether it did.
// Health checks are answered through a proxy too.
func (a *Authenticator) refuseKeyless(w http.ResponseWriter, r *http.Request, route *principal.Route, err error) bool {
	var keyless keylessError
	if !errors.As(err, &keyless) || r.URL.Path == "/health" || r.URL.Path == "/ready" {
		return false
	}
	if a.countRefusal(r) {
		a.options.Log.WarnContext(r.Context(), "auth_rejected", "event", "auth_rejected", "method", r.Method, "path", r.URL.Path, "remote", a.remote(r), "error", err)
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		refuseRoute(w, route, http.StatusForbidden, err)
		return true
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(http.StatusForbidden)
	_ = keylessPage.Execute(w, err.Error()) // a client that is gone
	return true
}

var keylessPage = template.Must(template.New("keyless").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Luanette needs a key</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:4rem auto;padding:0 1rem}pre{padding:1rem;border:1px solid #8888;overflow:auto}</style>
<h1>This server needs a key first</h1>
<p>{{.}}.</p>
<p>Make a key on the machine of the server, then reload this page and log in with it:</p>
<pre>luanette key create admin --scope admin</pre>
<p>If a reverse proxy is in front of the server, name it in <code>luanette.toml</code>, so that logs, limits and the audit log have the addresses of its clients:</p>
<pre>trusted_proxies = ["127.0.0.1"]</pre>
</html>
`))
