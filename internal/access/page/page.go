// Package page writes the small HTML pages that the server renders itself: for signing
// in, consent and logins. They need no script, load nothing, and cannot be framed.
package page

import (
	"html/template"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/netguard"
)

// frame is around the body of every page.
const frame = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Luanette</title>
{{block "head" .}}{{end}}<style>body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:12vh auto;padding:0 1rem;color-scheme:light dark}button,input,.button{font:inherit;padding:.4rem 1rem}code{overflow-wrap:anywhere}</style>
{{template "body" .}}
</html>
`

// New returns a page with a body. It panics if the template is not valid.
func New(name, body string) *template.Template {
	return template.Must(template.Must(template.New(name).Parse(frame)).Parse(`{{define "body"}}` + body + `{{end}}`))
}

// Write writes a page. Forms in it may be sent to this server only, and the address of
// the page, which may hold a code, is not told to other sites.
func Write(w http.ResponseWriter, status int, t *template.Template, data any) {
	WriteForm(w, status, t, data, "'self'")
}

// WriteForm is Write for a page whose form leads on to further addresses: browsers also
// check the redirects that follow a form against the list.
func WriteForm(w http.ResponseWriter, status int, t *template.Template, data any, targets string) {
	var text strings.Builder
	if err := t.Execute(&text, data); err != nil {
		http.Error(w, "cannot write the page", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; form-action "+targets)
	header.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send the forms with the Origin null, which is refused
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text.String())) // the client may have disconnected
}

// Continue writes a page that leads on to a path of this server. A redirect would not send the
// session's cookie if another site began it; a page of ours does.
func Continue(w http.ResponseWriter, r *http.Request, path string) {
	Write(w, http.StatusOK, onward, netguard.Base(r)+path)
}

var onward = template.Must(New("continue", `<p><a href="{{.}}">Continue</a></p>`).
	Parse(`{{define "head"}}<meta http-equiv="refresh" content="0; url={{.}}">{{end}}`))
