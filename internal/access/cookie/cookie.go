// Package cookie sets and reads the server's cookies. Over TLS their names begin with
// __Host-, so that a server of a sibling domain cannot set them in its place.
package cookie

import (
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/netguard"
)

// The cookies.
const (
	Session = "luanette_session" // of a person or key: SameSite=Strict
	Flow    = "luanette_flow"    // of a browser that signs in or consents, and comes back from another site: SameSite=Lax
	Login   = "luanette_login"   // of a browser that logs in to an upstream, likewise
)

// FlowTime is how long a browser may be at another site.
const FlowTime = 10 * time.Minute

// Jar has the cookies of a request.
type Jar struct {
	r      *http.Request
	secure bool
}

// In returns the cookies of a request.
func In(r *http.Request, b netguard.Browsers) Jar { return Jar{r, b.Secure(r)} }

// name is the name of a cookie. Browsers accept the prefix only over TLS, and for all paths of a
// host: the name says below which of them its server is.
func (j Jar) name(which string) string {
	which += strings.ReplaceAll(netguard.Base(j.r), "/", "_")
	if j.secure {
		return "__Host-" + which
	}
	return which
}

// Get returns the value of a cookie; empty if there is none.
func (j Jar) Get(which string) string {
	c, err := j.r.Cookie(j.name(which))
	if err != nil {
		return ""
	}
	return c.Value
}

// Set sets a cookie that ends at a time. An empty value deletes it.
func (j Jar) Set(w http.ResponseWriter, which, value string, expires time.Time) {
	c := &http.Cookie{
		Name: j.name(which), Value: value, Path: "/", Expires: expires,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: j.secure,
	}
	if which != Session {
		c.SameSite = http.SameSiteLaxMode // it must be sent when the other site redirects back
	}
	if value == "" {
		c.MaxAge, c.Expires = -1, time.Unix(1, 0)
	}
	http.SetCookie(w, c)
}
