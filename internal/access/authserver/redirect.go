package authserver

import (
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/netguard"
)

// webSchemes are those that a browser runs or shows itself; a code must not go there.
var webSchemes = []string{"http", "javascript", "data", "vbscript", "file", "blob", "about", "ftp", "ws", "wss", "filesystem", "view-source"}

// isRedirect reports whether a client may have a redirect URI: https, http on this machine,
// or a scheme of a program.
func isRedirect(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.User != nil || u.Fragment != "" || strings.ContainsAny(text, " \\\"'<>;,\r\n\t#") || hasDots(u.Path) {
		return false
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "https":
		return u.Host != ""
	case isLocal(u):
		return true
	default:
		return !slices.Contains(webSchemes, scheme)
	}
}

// hasDots reports whether a path has parts that mean another path.
func hasDots(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "." || part == ".." })
}

// isLocal reports whether a redirect goes to a program on the person's machine.
func isLocal(u *url.URL) bool {
	return strings.EqualFold(u.Scheme, "http") && netguard.IsLoopback(u.Hostname())
}

// redirect returns the redirect URI of a request if it is one of the client's, letter by
// letter. Only the port of a program on the person's machine may differ (RFC 8252).
func (c client) redirect(wanted string) (string, bool) {
	if wanted == "" && len(c.Redirects) == 1 {
		return c.Redirects[0], true
	}
	if slices.Contains(c.Redirects, wanted) {
		return wanted, true
	}
	u, err := url.Parse(wanted)
	if err != nil || !isLocal(u) || !isRedirect(wanted) {
		return "", false
	}
	return wanted, slices.ContainsFunc(c.Redirects, func(have string) bool {
		known, err := url.Parse(have)
		return err == nil && isLocal(known) && withoutPort(known) == withoutPort(u)
	})
}

// withoutPort is a redirect to this machine without its port.
func withoutPort(u *url.URL) string {
	copied := *u
	copied.Host = u.Hostname()
	return copied.String()
}

// place is a redirect as consents remember it, and whether it is on the person's machine,
// where any program can listen.
func place(redirect string) (text string, local bool) {
	u, err := url.Parse(redirect)
	if err != nil {
		return redirect, true
	}
	if isLocal(u) {
		return withoutPort(u), true
	}
	return redirect, !strings.EqualFold(u.Scheme, "https")
}

// formTarget is the source of a redirect for the policy of a form.
func formTarget(redirect string) string {
	u, err := url.Parse(redirect)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		scheme, _, _ := strings.Cut(redirect, ":")
		return scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}

// with adds parameters to a redirect.
func with(redirect string, more map[string]string) string {
	u, err := url.Parse(redirect)
	if err != nil {
		return redirect // it was checked before
	}
	query := u.Query()
	for name, value := range more {
		if value != "" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}
