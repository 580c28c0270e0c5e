// Package identitytest has a browser without a screen, for tests of signing in.
package identitytest

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
)

// Browser follows redirects and pages that lead on, keeps cookies, and sends forms.
type Browser struct {
	client *http.Client
	// Stop ends at redirects to addresses for which it is true; nil: never.
	Stop func(*url.URL) bool
}

// New returns a browser without cookies.
func New(t testing.TB) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{}
	b.client = &http.Client{Transport: httpjsontest.Client.Transport, Jar: jar, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) > 20 || b.Stop != nil && b.Stop(next.URL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

// Cookies returns the cookies for an address.
func (b *Browser) Cookies(address string) []*http.Cookie {
	u, _ := url.Parse(address) // tests give valid ones
	return b.client.Jar.Cookies(u)
}

// Page is what a browser shows.
type Page struct {
	Status int
	URL    *url.URL
	Body   string
	To     string // where a redirect that was not followed goes
	Header http.Header
}

// Open opens an address.
func (b *Browser) Open(t testing.TB, address string) Page {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.send(t, request)
}

func (b *Browser) send(t testing.TB, request *http.Request) Page {
	t.Helper()
	response, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	p := Page{response.StatusCode, response.Request.URL, string(body), response.Header.Get("Location"), response.Header}
	if next := leadsOn.FindStringSubmatch(p.Body); next != nil {
		return b.Open(t, p.resolve(t, html.UnescapeString(next[1])))
	}
	return p
}

func (p Page) resolve(t testing.TB, address string) string {
	t.Helper()
	u, err := p.URL.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.String()
}

var (
	leadsOn    = regexp.MustCompile(`<meta http-equiv="refresh" content="0; url=([^"]*)">`)
	formTag    = regexp.MustCompile(`(?s)<form([^>]*)>(.*?)</form>`)
	inputTag   = regexp.MustCompile(`<(?:input|button)([^>]*)>`)
	attributes = regexp.MustCompile(`([a-zA-Z-]+)="([^"]*)"`)
)

func attribute(tag, name string) string {
	for _, found := range attributes.FindAllStringSubmatch(tag, -1) {
		if strings.EqualFold(found[1], name) {
			return html.UnescapeString(found[2])
		}
	}
	return ""
}

// Submit sends the form of a page with the values of its hidden fields, and those given.
func (b *Browser) Submit(t testing.TB, p Page, values map[string]string) Page {
	t.Helper()
	found := formTag.FindStringSubmatch(p.Body)
	if found == nil {
		t.Fatalf("no form at %s: %d %s", p.URL, p.Status, p.Body)
	}
	form := url.Values{}
	for _, input := range inputTag.FindAllStringSubmatch(found[2], -1) {
		if attribute(input[1], "type") == "hidden" {
			form.Set(attribute(input[1], "name"), attribute(input[1], "value"))
		}
	}
	for name, value := range values {
		form.Set(name, value)
	}
	return b.Post(t, p.resolve(t, attribute(found[1], "action")), form)
}

// Post sends a form to an address.
func (b *Browser) Post(t testing.TB, address string, form url.Values) Page {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.send(t, request)
}
