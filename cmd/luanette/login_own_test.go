package main

import (
	"bufio"
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/programtest"
)

// TestOwnLoginCommand runs `luanette upstream login` for an upstream that is used with the
// account of each caller, here the local owner: in this process, and on a running server,
// whose page the command gives the link of.
func TestOwnLoginCommand(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{false, true} {
		name := map[bool]string{false: "in this process", true: "on a server"}[running]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testOwnLogin(t, running)
		})
	}
}

func testOwnLogin(t *testing.T, running bool) {
	secured := newLoginServer(t)
	s := programtest.New(t, "[upstreams.secured]\nurl = \""+secured.URL()+"\"\nlogin = \"each\"\n")
	where := []string{"--config", "luanette.toml", "--data", "data"}
	if running {
		s.Args = where
		s.Start(t)
		where = []string{"--server", s.URL(), "--data", "data"}
	}
	run := func(args ...string) *exec.Cmd { return s.Command(t.Context(), append(args, where...)...) }
	if called, err := run("call", "secured.echo", "text=hello").CombinedOutput(); err == nil {
		t.Errorf("called without a login: %s", called)
	}
	text, err := loginWith(t, run("upstream", "login", "secured"))
	if err != nil || !strings.Contains(text, "logged in to secured") || running != strings.Contains(text, "with your own account") {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, step := range []struct{ args, says string }{
		{"call secured.echo text=hello", "hello"},
		{"upstream logout secured", "logged out of secured"},
		{"upstream logout secured", "was not logged in to secured"},
	} {
		if out, err := run(strings.Fields(step.args)...).CombinedOutput(); err != nil || !strings.Contains(string(out), step.says) {
			t.Errorf("%s: %v\n%s", step.args, err, out)
		}
	}
	if mistakes := secured.Mistakes(); len(mistakes) > 0 {
		t.Errorf("mistakes: %v", mistakes)
	}
}

// loginWith runs a login command, logs in where its link leads, and returns what it printed.
func loginWith(t *testing.T, login *exec.Cmd) (text string, err error) {
	t.Helper()
	out, err := login.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	login.Stderr = &stderr
	if err := login.Start(); err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`^  (http://\S+)$`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text += lines.Text() + "\n"
		if found := link.FindStringSubmatch(lines.Text()); found != nil {
			if page, err := browseForm(t.Context(), found[1]); err != nil || !strings.Contains(page, "Logged in to secured") {
				t.Errorf("the browser shows %s, %v", page, err)
			}
		}
	}
	err = login.Wait()
	return text + stderr.String(), err
}

var (
	refresh   = regexp.MustCompile(`content="0; url=([^"]*)"`)
	formField = regexp.MustCompile(`name="(\w+)" value="([^"]*)"`)
)

// browseForm opens a page as a browser does, with cookies: it sends the form of the page, if it
// has one, follows redirects and pages that lead on, and returns the last page.
func browseForm(ctx context.Context, address string) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	browser := &http.Client{Jar: jar}
	open := func(method, body string) (page string, err error) {
		request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := browser.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		address = response.Request.URL.String()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	page, err := open(http.MethodGet, "")
	for err == nil {
		if on := refresh.FindStringSubmatch(page); on != nil {
			next, _ := url.Parse(address)
			if next, err = next.Parse(html.UnescapeString(on[1])); err != nil {
				return page, err
			}
			address = next.String()
			page, err = open(http.MethodGet, "")
			continue
		}
		if !strings.Contains(page, `<form method="post">`) {
			return page, nil
		}
		form := url.Values{}
		for _, field := range formField.FindAllStringSubmatch(page, -1) {
			form.Set(field[1], html.UnescapeString(field[2]))
		}
		page, err = open(http.MethodPost, form.Encode())
	}
	return page, err
}
