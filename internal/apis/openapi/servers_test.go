package openapi_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// startServer starts a program that serves an API, and returns the URL that it prints. It
// ends with the test.
func startServer(t *testing.T, listening string, name string, args ...string) string {
	t.Helper()
	program := exec.CommandContext(t.Context(), name, args...)
	program.Env = append(os.Environ(), "NODE_PATH="+npmtest.Folder(t), "NO_COLOR=1")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	program.Stderr = program.Stdout
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	found, ended := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() { // the test's context has ended, and with it the program
		<-ended
		_ = program.Wait() // it was killed
	})
	go func() {
		defer close(ended)
		address, said, known := regexp.MustCompile(listening), "", false
		for lines := bufio.NewScanner(out); lines.Scan(); said += lines.Text() + "\n" {
			if match := address.FindStringSubmatch(lines.Text()); match != nil && !known {
				found <- match[1]
				known = true
			}
		}
		if !known {
			t.Logf("%s said\n%s", name, said)
		}
	}()
	select {
	case address := <-found:
		return "http://" + address
	case <-ended:
		t.Fatalf("%s ended early", name)
		return ""
	}
}

// at makes an environment of a document and the address of a real server, with a header.
func at(document, base, header, value string) func(*api.Environment) {
	return func(env *api.Environment) {
		env.Settings.Source, env.Settings.BaseURL = document, base
		env.Header = http.Header{}
		if header != "" {
			env.Header.Set(header, value)
		}
	}
}

// exchange is a call to a real server and what its result must have.
type exchange struct {
	tool, arguments string
	fails           bool
	want            []string // in the structured content
}

func (s service) exchange(t *testing.T, all []exchange) {
	t.Helper()
	for _, c := range all {
		text, structured, failed := s.call(t, c.tool, c.arguments)
		if failed != c.fails {
			t.Errorf("%s %s: failed %t: %s", c.tool, c.arguments, failed, text)
		}
		for _, want := range c.want {
			if !strings.Contains(structured, want) {
				t.Errorf("%s %s is %s, want %s in it", c.tool, c.arguments, structured, want)
			}
		}
	}
}

// TestPrism calls a mock server that checks every request against the document.
func TestPrism(t *testing.T) {
	t.Parallel()
	prism := npmtest.Program(t, "prism")
	base := startServer(t, `listening on http://(\S+)`, "node", prism, "mock", "--errors", "--host", "127.0.0.1", "--port", "0", "testdata/library.yaml")
	s := open(t, "library.yaml", echo, at("testdata/library.yaml", base, "X-Key", "k"))
	s.exchange(t, []exchange{
		{"list_books", `{"limit":2,"filter":{"year":1999},"ids":[1,2]}`, false, []string{`"title":"Emma"`, `"next_page_token":"cursor=c2"`}},
		{"list_books", `{"page_token":"cursor=c2"}`, false, []string{`"items"`}},
		{"list_books", `{"page_token":"cursor=%21"}`, true, []string{`"status":422`, `cursor`}},
		{"list_books", `{"limit":0}`, true, []string{`"status":422`, `limit`}},
		{"add_book", `{"body":{"kind":"audio","title":"Emma","seconds":7200}}`, false, []string{`"id":3`}},
		{"add_book", `{"body":{"kind":"audio","title":"Emma","seconds":null}}`, false, []string{`"id":3`}},
		{"add_book", `{"body":{"kind":"audio","title":7}}`, true, []string{`"status":422`, `title`}},
		{"get_book", `{"id":1}`, false, []string{`"title":"Emma"`}},
		{"get_book", `{"id":1,"Prefer":"code=404"}`, true, []string{`"status":404`, `"title":"No such book"`}},
		{"remove_book", `{"id":1}`, false, []string{`{"status":204}`}},
	})
	stranger := open(t, "library.yaml", echo, at("testdata/library.yaml", base, "", ""))
	stranger.exchange(t, []exchange{{"get_book", `{"id":1}`, true, []string{`"status":401`}}})
}

// TestJSONServer changes and pages through the data of a server that stores it.
func TestJSONServer(t *testing.T) {
	t.Parallel()
	npmtest.Modules(t)
	data := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(data, []byte(`{"posts":[{"id":1,"title":"one"},{"id":2,"title":"two"},{"id":3,"title":"three"},{"id":4,"title":"four"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	base := startServer(t, `^http://(\S+)`, "node", "../../../test/servers/json-server.cjs", data)
	s := open(t, "posts.json", echo, at("testdata/posts.json", base, "", ""))
	s.exchange(t, []exchange{
		{"posts_create", `{"body":{"title":"five","tags":["a"]}}`, false, []string{`"id":5`, `"tags":["a"]`}},
		{"posts_change", `{"id":5,"body":{"title":"FIVE"}}`, false, []string{`"title":"FIVE"`, `"tags":["a"]`}},
		{"posts_list", `{"id":[1,5]}`, false, []string{`"title":"one"`, `"title":"FIVE"`}},
		{"posts_get", `{"id":99}`, true, []string{`"status":404`}},
		{"posts_create", `{"body":{"id":5,"title":"again"}}`, true, []string{`"status":500`, `duplicate id`}},
	})
	arguments, read := json.RawMessage(`{"limit":2}`), []string{}
	pages := 0
	for range 4 {
		pages++
		_, structured, _ := s.call(t, "posts_list", string(arguments))
		items, _ := rawjson.Get(json.RawMessage(structured), "items")
		list, _ := rawjson.Items(items)
		for _, item := range list {
			title, _ := rawjson.GetText(item, "title")
			read = append(read, title)
		}
		token, more := rawjson.GetText(json.RawMessage(structured), "next_page_token")
		if !more {
			break
		}
		arguments = rawjson.SetText(arguments, "page_token", token)
	}
	if got := strings.Join(read, " "); got != "one two three four FIVE" || pages != 3 {
		t.Errorf("read %s in %d pages", got, pages)
	}
	s.exchange(t, []exchange{
		{"posts_delete", `{"id":5}`, false, []string{`{}`}},
		{"posts_get", `{"id":5}`, true, []string{`"status":404`}},
	})
}

// TestStripe calls the mock server of Stripe with Stripe's own document.
func TestStripe(t *testing.T) {
	t.Parallel()
	program, document := npmtest.Cached(t, "stripe-mock/stripe-mock"), npmtest.Cached(t, "stripe-mock/spec3.json")
	base := startServer(t, `Listening for HTTP at address: (\S+)`, program, "-http-addr", "127.0.0.1:0")
	some := func(change func(*api.Environment)) func(*api.Environment) { // all take seconds with the race detector
		return func(env *api.Environment) {
			change(env)
			env.Settings.Include = []string{"path:/v1/customers", "path:/v1/customers/{customer}", "path:/v1/payment_intents", "path:/v1/balance"}
		}
	}
	s := open(t, "", echo, some(at(document, base, "Authorization", "Bearer sk_test_123")))
	s.exchange(t, []exchange{
		{"GetCustomers", `{"limit":3,"created":{"gt":1}}`, false, []string{`"object":"list"`, `"data":[{`}},
		{"PostCustomers", `{"body":{"email":"a@example.org","metadata":{"team":"x"},"address":{"city":"Ulm"}}}`, false, []string{`"object":"customer"`, `"email":"a@example.org"`}},
		{"PostPaymentIntents", `{"body":{"amount":100,"currency":"eur","payment_method_types":["card"]}}`, false, []string{`"object":"payment_intent"`}},
		{"PostPaymentIntents", `{"body":{"amount":"much","currency":"eur"}}`, true, []string{`"status":400`, `amount`}},
		{"DeleteCustomersCustomer", `{"customer":"cus_1"}`, false, []string{`"deleted":true`}},
	})
	stranger := open(t, "", echo, some(at(document, base, "", "")))
	stranger.exchange(t, []exchange{{"GetBalance", `{}`, true, []string{`"status":401`}}})
}
