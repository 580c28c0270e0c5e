package openapi_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/openapi"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/store/cas"
)

// files stores contents in a folder.
type files struct{ dir *cas.Dir }

func (f files) PutFile(ctx context.Context, r io.Reader, media string) (cas.File, error) {
	hash, size, err := f.dir.Put(ctx, r)
	return cas.File{Hash: hash, Size: size, MIME: media, Path: f.dir.Path(hash)}, err
}

func (f files) FindFile(ctx context.Context, name string) (cas.File, error) {
	hash, err := cas.Resolve(ctx, f.dir, name)
	if err != nil {
		return cas.File{}, err
	}
	size, err := f.dir.Stat(ctx, hash)
	return cas.File{Hash: hash, Size: size, MIME: "image/png", Path: f.dir.Path(hash)}, err
}

// service is an API of testdata at a test server.
type service struct {
	api.API
	files   files
	changed chan struct{}
}

// open opens the API of a document at a test server.
func open(t *testing.T, document string, handler http.HandlerFunc, change func(*api.Environment)) service {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	dir, err := cas.OpenDir(t.TempDir(), cas.DirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := service{files: files{dir}, changed: make(chan struct{}, 10)}
	env := api.Environment{
		Name: "shop", Settings: api.Settings{Kind: api.OpenAPI, Source: "testdata/" + document, BaseURL: server.URL + "/v1"},
		Header: http.Header{"User-Agent": {"test"}, "Authorization": {"Bearer hush-hush"}}, Files: s.files, MaxAnswer: 1 << 20,
		Log: slog.New(slog.DiscardHandler), Changed: func() { s.changed <- struct{}{} },
	}
	if change != nil {
		change(&env)
	}
	if s.API, err = openapi.Open(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// call calls a tool and returns its text, its structured content and whether it failed.
func (s service) call(t *testing.T, tool, arguments string) (text, structured string, failed bool) {
	t.Helper()
	result, err := s.Call(t.Context(), api.Call{Tool: tool, Arguments: json.RawMessage(arguments), Progress: func(float64, float64, string) {}})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	var got struct {
		Content           []struct{ Text, URI string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(result, &got); err != nil {
		t.Fatal(err)
	}
	return got.Content[0].Text, string(got.StructuredContent), got.IsError
}

// echo answers with what was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, r.Method+" "+r.RequestURI+" "+r.Header.Get("Content-Type")+" "+string(body)+" "+r.Header.Get("Cookie")+r.Header.Get("Authorization"))
}

func TestRequests(t *testing.T) {
	t.Parallel()
	shop, fresh, old := open(t, "shop.yaml", echo, nil), open(t, "new.json", echo, nil), open(t, "swagger.json", echo, nil)
	for _, c := range []struct {
		s                     service
		tool, arguments, want string
	}{
		{shop, "orders_list", `{"state":["open","closed"],"filter":{"min":3},"page":2}`, "GET /v1/orders?page=2&state=open%2Cclosed&filter%5Bmin%5D=3"},
		{shop, "orders_list", `{"page":2,"per_page":5,"page_token":"page=3&x=1"}`, "GET /v1/orders?per_page=5&page=3&x=1"},
		{shop, "orders_get", `{"id__path":7,"id__query":"q"}`, "GET /v1/orders/7?id=q"},
		{shop, "orders_create", `{"body":{"items":[]}}`, `POST /v1/orders application/json {"items":[]}`},
		{shop, "put_orders_id", `{"id":1,"body":{"note":"a b","tags":["x","y"],"address":{"city":"Ulm"}}}`, "PUT /v1/orders/1 application/x-www-form-urlencoded note=a+b&tags=x&tags=y&address%5Bcity%5D=Ulm"},
		{shop, "put_orders_id", `{"id":1}`, "PUT /v1/orders/1"},
		{shop, "patch_a_very_long_path_without_an_operation_id_fi_039fe5ef", `{"first":"a/b","second":"é","content_type":"application/json-patch+json","body":{}}`,
			"PATCH /v1/a-very-long-path-without-an-operation-id/a%2Fb/%C3%A9/and/so/on application/json-patch+json {}"},
		{fresh, "thing", `{"id":["a","b"],"where":{"x":1},"session":"s1"}`, `GET /v1/things/;id=a;id=b?where=%7B%22x%22%3A1%7D   session=s1`},
		{fresh, "find_things", `{"id":"a","body":{"value":null}}`, `QUERY /v1/things/a application/json {"value":null}`},
	} {
		if text, _, failed := c.s.call(t, c.tool, c.arguments); failed || !strings.HasPrefix(text, c.want) {
			t.Errorf("%s %s\nsent %s, want\n%s", c.tool, c.arguments, text, c.want)
		}
	}
	if text, _, _ := old.call(t, "listPods_"+suffixOf(t, old), `{"ids":["a","b"],"continue":"c"}`); !strings.Contains(text, "/v1/pods?continue=c&ids=a%7Cb") {
		t.Errorf("sent %s", text)
	}
	if text, _, _ := shop.call(t, "orders_list", `{}`); !strings.Contains(text, "[secret]") || strings.Contains(text, "hush-hush") {
		t.Errorf("a service that repeats the credentials: %s", text)
	}
}

// suffixOf is the hash in the name of the tool that lists pods.
func suffixOf(t *testing.T, s service) string {
	t.Helper()
	listing, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range listing.Tools {
		name, _ := rawjson.GetText(definition, "name")
		if suffix, ok := strings.CutPrefix(name, "listPods_"); ok && strings.Contains(string(definition), "GET ") {
			return suffix
		}
	}
	t.Fatal("there is no such tool")
	return ""
}

func TestArgumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, "shop.yaml", func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, nil)
	for _, c := range []struct{ tool, arguments string }{
		{"orders_get", `{}`}, {"orders_create", `{}`}, {"orders_get", `{"id__path":".."}`}, {"orders_get", `{"id__path":""}`},
		{"orders_attach", `{"id":"1","body":{"file":"/etc/passwd"}}`}, {"orders_attach", `{"id":"1","body":{"file":"data:text/plain,x"}}`}, {"nothing", `{}`},
	} {
		if _, err := s.Call(t.Context(), api.Call{Tool: c.tool, Arguments: json.RawMessage(c.arguments)}); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s %s: %v", c.tool, c.arguments, err)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := open(t, "shop.yaml", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/pdf")
			_, _ = w.Write([]byte("%PDF\x00\xff"))
			return
		}
		_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		form, err := multipart.NewReader(r.Body, params["boundary"]).ReadForm(1 << 20)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		uploaded := form.File["file"][0]
		f, _ := uploaded.Open()
		content, _ := io.ReadAll(f)
		_, _ = w.Write([]byte(uploaded.Header.Get("Content-Type") + " " + string(content) + " " + form.Value["note"][0] + " " + form.Value["meta"][0]))
	}, nil)
	stored, err := s.files.PutFile(t.Context(), strings.NewReader("pixels"), "image/png")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{stored.Hash.URI(): `image/png pixels hi {"a":1}`, "data:text/plain;base64,aGVsbG8=": `text/plain hello hi {"a":1}`} {
		if text, _, failed := s.call(t, "orders_attach", `{"id":"1","body":{"file":"`+file+`","note":"hi","meta":{"a":1}}}`); failed || text != want {
			t.Errorf("sent %s, want %s", text, want)
		}
	}
	_, structured, _ := s.call(t, "orders_invoice", `{"id":"1"}`)
	uri, _ := rawjson.GetText(json.RawMessage(structured), "file")
	found, err := s.files.FindFile(t.Context(), uri)
	if err != nil {
		t.Fatalf("%s: %v", structured, err)
	}
	if content, err := os.ReadFile(found.Path); err != nil || string(content) != "%PDF\x00\xff" {
		t.Errorf("stored %q, error %v", content, err)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := open(t, "shop.yaml", func(w http.ResponseWriter, r *http.Request) {
		switch id := r.URL.Path[len("/v1/orders"):]; id {
		case "/1":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"title":"Closed","detail":"order 1 is closed"}`))
		case "/2":
			http.Redirect(w, r, "https://files.example/x", http.StatusFound)
		case "/3":
			w.WriteHeader(http.StatusNoContent)
		case "/4":
			w.Header().Set("Location", "/jobs/4")
			w.WriteHeader(http.StatusAccepted)
		case "/5":
			http.Redirect(w, r, "/v1/orders/6", http.StatusMovedPermanently)
		case "/6":
			_, _ = w.Write([]byte(`{"id": 6}`))
		case "/7":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(strings.Repeat(" ", 2<<20)))
		default:
			w.Header().Set("Content-Type", "text/plain")
			http.Error(w, "no such order, key hush-hush", http.StatusNotFound)
		}
	}, nil)
	for id, want := range map[string]string{
		"1": `{"status":409,"error":{"title":"Closed","detail":"order 1 is closed"}}`,
		"2": `{"status":302,"location":"https://files.example/x"}`,
		"3": `{"status":204}`,
		"4": `{"status":202,"location":"/jobs/4"}`,
		"5": `{"id":6}`,
		"8": `{"status":404,"error":"no such order, key [secret]"}`,
	} {
		text, structured, failed := s.call(t, "orders_get", `{"id__path":`+id+`}`)
		if structured != want || failed != strings.Contains(want, "error") {
			t.Errorf("%s is %s (%s), want %s", id, structured, text, want)
		}
	}
	if text, _, _ := s.call(t, "orders_get", `{"id__path":1}`); !strings.HasPrefix(text, "HTTP 409 Conflict: Closed: order 1 is closed") {
		t.Errorf("the error says %s", text)
	}
	if _, err := s.Call(t.Context(), api.Call{Tool: "orders_get", Arguments: json.RawMessage(`{"id__path":7}`)}); fault.CodeOf(err) != fault.Limit {
		t.Errorf("a large answer: %v", err)
	}
}

// TestPages follows next_page_token to the end, for each way in which services continue
// lists.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		document, tool string
		answer         func(w http.ResponseWriter, r *http.Request) string
	}{
		"link": {"shop.yaml", "orders_list", func(w http.ResponseWriter, r *http.Request) string {
			if r.FormValue("page") == "9" {
				w.Header().Set("Link", `<https://x.example/v1/orders?page=1>; rel="first"`)
				return `[3]`
			}
			w.Header().Set("Link", `<https://x.example/v1/orders?page=1>; rel="prev", <https://x.example/v1/orders?api_key=hush&page=9>; rel="next"`)
			return `[1,2]`
		}},
		"page": {"shop.yaml", "orders_list", func(_ http.ResponseWriter, r *http.Request) string {
			if r.FormValue("page") == "2" {
				return `{"data":[3]}`
			}
			return `{"data":[1,2]}`
		}},
		"cursor": {"swagger.json", "listPods", func(_ http.ResponseWriter, r *http.Request) string {
			if r.FormValue("continue") == "c2" {
				return `{"items":[3],"metadata":{"continue":""}}`
			}
			return `{"items":[1,2],"metadata":{"continue":"c2"}}`
		}},
		"body": {"search.json", "search", func(_ http.ResponseWriter, r *http.Request) string {
			switch body, _ := io.ReadAll(r.Body); string(body) {
			case `{"text":"x"}`:
				return `{"results":[1,2],"next_cursor":"c&2"}`
			case `{"text":"x","start_cursor":"c&2"}`:
				return `{"results":[3],"next_cursor":null}`
			default:
				return string(body)
			}
		}},
		"counted body": {"search.json", "count", func(_ http.ResponseWriter, r *http.Request) string {
			switch body, _ := io.ReadAll(r.Body); string(body) {
			case `{"text":"x"}`:
				return `{"data":[1,2]}`
			case `{"text":"x","page":2}`:
				return `{"data":[3]}`
			default:
				return string(body)
			}
		}},
		"address": {"swagger.json", "listPods", func(_ http.ResponseWriter, r *http.Request) string {
			if r.FormValue("offset") == "2" {
				return `{"results":[3],"next":null}`
			}
			return `{"results":[1,2],"next":"https://x.example/pods?offset=2"}`
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, c.document, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.answer(w, r))
			}, func(env *api.Environment) { env.Settings.Query = map[string]string{"api_key": "hush"} })
			tool := c.tool
			if tool == "listPods" {
				tool += "_" + suffixOf(t, s)
			}
			arguments, read := `{}`, ""
			if c.document == "search.json" {
				arguments = `{"body":{"text":"x"}}`
			}
			for range 5 {
				_, structured, _ := s.call(t, tool, arguments)
				read += strings.Trim(strings.Trim(structured, `{}`), `"`) + "\n"
				token, ok := rawjson.GetText(json.RawMessage(structured), "next_page_token")
				if !ok {
					break
				}
				if strings.Contains(token, "hush") {
					t.Errorf("the token is %s", token)
				}
				arguments = string(rawjson.SetText(json.RawMessage(arguments), "page_token", token))
			}
			if strings.Count(read, "\n") != 2 || !strings.Contains(read, "[1,2]") || !strings.Contains(read, "[3]") {
				t.Errorf("read %s", read)
			}
		})
	}
}

func TestDocumentIsReadAgain(t *testing.T) {
	t.Parallel()
	const before = `{"openapi":"3.1.0","info":{"title":"A","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{"/a":{"get":{"operationId":"a"}}}}`
	after := strings.Replace(before, `"operationId":"a"`, `"operationId":"b"`, 1)
	elsewhere := strings.Replace(after, "https://a.example", "https://evil.example", 1)
	tokens := strings.Replace(after, `"paths"`, `"components":{"securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":"https://evil.example"}}}}},"paths"`, 1)

	file := filepath.Join(t.TempDir(), "api.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(before)
	s := open(t, "shop.yaml", echo, func(env *api.Environment) {
		env.Settings.Source, env.Settings.BaseURL = file, ""
	})
	await := func(want string, leftOut int) {
		t.Helper()
		clocktest.Await(t, func() bool {
			listing, err := s.List(t.Context())
			return err == nil && len(listing.LeftOut) == leftOut && strings.Contains(string(listing.Tools[0]), want)
		})
	}
	await(`"name":"a"`, 0)
	write(after)
	await(`"name":"b"`, 0)
	write(elsewhere)
	await(`GET https://a.example/a`, 1)
	write(before)
	await(`"name":"a"`, 0)
	write(tokens)
	await(`"name":"a"`, 1)
	<-s.changed
}

func TestDocumentAtURLIsAskedForAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	name, conditional := "a", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "" {
			t.Error("the document's host gets the credentials")
		}
		if r.Header.Get("If-None-Match") == name {
			conditional++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", name)
		_, _ = io.WriteString(w, `{"openapi":"3.1.0","servers":[{"url":"/api"}],"paths":{"/a":{"get":{"operationId":"`+name+`"}}}}`)
	}))
	defer server.Close()
	s := open(t, "shop.yaml", echo, func(env *api.Environment) {
		env.Settings.Source, env.Settings.BaseURL, env.Settings.Reload = server.URL+"/openapi.json", "", 1e6
	})
	listed := func(want string) func() bool {
		return func() bool {
			listing, err := s.List(t.Context())
			return err == nil && strings.Contains(string(listing.Tools[0]), want)
		}
	}
	clocktest.Await(t, listed(`GET `+server.URL+`/api/a`))
	clocktest.Await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return conditional > 1
	})
	mu.Lock()
	name = "b"
	mu.Unlock()
	clocktest.Await(t, listed(`"name":"b"`))
}
