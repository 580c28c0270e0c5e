package netguard

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// base is the path of the public address, without a slash at the end.
func (b Browsers) base() string {
	u, err := url.Parse(b.PublicURL)
	if err != nil {
		return ""
	}
	return strings.TrimRight(u.Path, "/")
}

type baseKey struct{}

// AtBase serves a server whose public address has a path of its own: its paths are found with
// that path before them and, for proxies that remove it and for programs of this machine,
// without. What next leads to is below the path for those who came by the public address.
func (b Browsers) AtBase(next http.Handler) http.Handler {
	base := b.base()
	if base == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, below := cutBase(r.URL.Path, base)
		if !below && !b.isPublic(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		if path == "" { // what its page loads is relative to the folder
			http.Redirect(w, r, base+"/", http.StatusPermanentRedirect)
			return
		}
		inside := r.WithContext(context.WithValue(r.Context(), baseKey{}, base))
		to := *r.URL
		to.Path, inside.URL = path, &to
		to.RawPath, _ = cutBase(r.URL.RawPath, base)
		next.ServeHTTP(redirects{w, base}, inside)
	})
}

// wellKnown is the folder of documents about a host (RFC 8615). Those about a part of it name
// the part after their own name.
const wellKnown = "/.well-known/"

// cutBase returns a path without the base, and whether it had it.
func cutBase(path, base string) (rest string, below bool) {
	if rest, below = strings.CutPrefix(path, base); below && (rest == "" || rest[0] == '/') {
		return rest, true
	}
	if name, isDocument := strings.CutPrefix(path, wellKnown); isDocument {
		name, rest, _ = strings.Cut(name, "/")
		if rest, below = strings.CutPrefix("/"+rest, base); below && (rest == "" || rest[0] == '/') {
			return wellKnown + name + rest, true
		}
	}
	return path, false
}

// Base is the path before those of our own in the addresses that the client of a request uses,
// without a slash at the end.
func Base(r *http.Request) string {
	base, _ := r.Context().Value(baseKey{}).(string)
	return base
}

// redirects puts the base before paths that responses lead to.
type redirects struct {
	http.ResponseWriter
	base string
}

// Unwrap is for http.ResponseController.
func (w redirects) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w redirects) WriteHeader(status int) {
	if to := w.Header().Get("Location"); status >= http.StatusOK && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") {
		w.Header().Set("Location", w.base+to)
	}
	w.ResponseWriter.WriteHeader(status)
}
