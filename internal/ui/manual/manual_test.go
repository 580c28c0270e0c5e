package manual_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/docs"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/ui/manual"
)

// TestPages lists, reads and searches pages, and leads browsers to the web page.
func TestPages(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"jobs.md":          {Data: []byte("# Jobs\n\nRun in the background.\n\n## Undo and replay\n\nA job is undone by its journal.\n\n```sh\n# undo in a comment\n```\n")},
		"errors/denied.md": {Data: []byte("# denied\n\nA rule or a person said no.\n")},
	}
	web := httptest.NewServer(principal.Unguarded(manual.New(files).Routes()))
	t.Cleanup(web.Close)
	for _, tt := range []struct {
		path, want string
		status     int
	}{
		{"/api/v1/docs", `{"pages":[{"path":"errors/denied","title":"denied"},{"path":"jobs","title":"Jobs"}]}`, 200},
		{"/api/v1/docs?find=UNDO", `{"found":[{"path":"jobs","anchor":"undo-and-replay","page":"Jobs","title":"Undo and replay","excerpt":"A job is undone by its journal."}]}`, 200},
		{"/api/v1/docs?find=nowhere", `{"found":[]}`, 200},
		{"/api/v1/docs/jobs", "# Jobs", 200},
		{"/api/v1/docs/errors/denied", "said no", 200},
		{"/api/v1/docs/nothing", "has no page", 404},
		{"/api/v1/docs/../secret", "", 404},
		{"/docs/jobs.md", "# Jobs", 200},
	} {
		response, body := httpjsontest.Read(t, "GET", web.URL+tt.path, "")
		if response.StatusCode != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d with %s", tt.path, response.StatusCode, body, tt.status, tt.want)
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{"/docs": "/#/docs", "/docs/": "/#/docs", "/docs/errors/denied": "/#/docs/errors/denied"} {
		response, err := client.Get(web.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if to := response.Header.Get("Location"); to != want {
			t.Errorf("%s leads to %q, want %q", path, to, want)
		}
	}
}

// TestOwnPages finds what people look for in the documentation of the program.
func TestOwnPages(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(principal.Unguarded(manual.New(docs.Files).Routes()))
	t.Cleanup(web.Close)
	for words, want := range map[string]string{"approvals": `"path":"approvals"`, "cas.store": `"anchor":"casstore`, "schedule": `"path":"jobs"`} {
		if _, body := httpjsontest.Read(t, "GET", web.URL+"/api/v1/docs?find="+words, ""); !strings.Contains(body, want) {
			t.Errorf("%s: %s", words, body)
		}
	}
}
