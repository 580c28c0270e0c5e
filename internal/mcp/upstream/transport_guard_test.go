package upstream_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

// locked refuses requests without the key.
func locked(key string) func() http.Handler {
	return func() http.Handler {
		inner := modernHandler()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+key {
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://as.test/x"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			inner.ServeHTTP(w, r)
		})
	}
}

func TestServerThatRequiresCredentials(t *testing.T) {
	t.Parallel()
	srv := httpServer(t, locked("s3cret"), upstream.Spec{})
	h := upstreamtest.Open(t, srv)
	e := h.Await(t, "upstream.needs_auth").Data.(upstream.NeedsAuth)
	if !strings.Contains(e.Challenge, "as.test") {
		t.Errorf("event = %+v", e)
	}
	_, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("echo")})
	if fault.CodeOf(err) != fault.NeedsAuth || fault.HintOf(err) == "" {
		t.Errorf("call: %v", err)
	}
	if st, _ := h.Manager.Status("test"); st.State != upstream.StateNeedsAuth || !strings.Contains(st.Challenge, "Bearer") || time.Until(st.NextTry) < 30*time.Second {
		t.Errorf("status = %+v", st)
	}
	spec := srv.Spec
	spec.Headers = map[string]string{"Authorization": "Bearer s3cret"}
	if err := h.Manager.Add(spec); err != nil {
		t.Fatal(err)
	}
	h.Await(t, "upstream.connected")
	if text := h.Echo(t, "let in"); text != "let in" {
		t.Errorf("echo said %q", text)
	}
}

func TestCredentialsRequiredOnlyAtThePath(t *testing.T) {
	t.Parallel()
	srv := httpServer(t, func() http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/mcp", locked("s3cret")())
		return mux
	}, upstream.Spec{})
	upstreamtest.Open(t, srv).Await(t, "upstream.needs_auth")
}

func TestBearerTokenFromTheEnvironment(t *testing.T) {
	t.Parallel()
	srv := httpServer(t, locked("s3cret"), upstream.Spec{Settings: upstream.Settings{BearerEnv: "MY_TOKEN"}})
	srv.Options.Getenv = func(name string) (string, bool) { return "s3cret", name == "MY_TOKEN" }
	upstreamtest.Start(t, srv)

	srv.Options.Getenv = func(string) (string, bool) { return "", false }
	h := upstreamtest.Open(t, srv)
	if e := h.Await(t, "upstream.needs_auth").Data.(upstream.NeedsAuth); !strings.Contains(e.Error, "MY_TOKEN") {
		t.Errorf("event = %+v", e)
	}
}

func TestCredentialsThatExpire(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	inner := legacyHandler()
	srv := httpServer(t, func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if revoked.Load() {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			inner.ServeHTTP(w, r)
		})
	}, upstream.Spec{})
	h := upstreamtest.Start(t, srv)
	revoked.Store(true)
	_, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("write")})
	if fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("call: %v", err)
	}
	h.Await(t, "upstream.needs_auth")
}

func TestAddressesCanBeRefused(t *testing.T) {
	t.Parallel()
	refused := errors.New("private address")
	control := func(_, address string, _ syscall.RawConn) error {
		if strings.HasPrefix(address, "127.") {
			return refused
		}
		return nil
	}
	for name, guard := range map[string]func(*upstreamtest.Server){
		"of anybody":         func(srv *upstreamtest.Server) { srv.Options.DialControl = control },
		"of an organisation": func(srv *upstreamtest.Server) { srv.Options.GuardedControl, srv.Spec.Guarded = control, true },
	} {
		srv := httpServer(t, modernHandler, upstream.Spec{})
		guard(&srv)
		h := upstreamtest.Open(t, srv)
		if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !strings.Contains(e.Error, "private address") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestRedirectsDoNotLeakCredentials(t *testing.T) {
	t.Parallel()
	var visited atomic.Bool
	elsewhere := newSite(t, func() http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Store(true) })
	})
	for name, c := range map[string]struct {
		to       string
		connects bool
	}{
		"elsewhere":        {elsewhere.url() + "/mcp", false},
		"on the same host": {"/moved", true},
	} {
		handler := modernHandler()
		srv := httpServer(t, func() http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/moved", handler)
			mux.Handle("/start", http.RedirectHandler(c.to, http.StatusPermanentRedirect))
			return mux
		}, upstream.Spec{Settings: upstream.Settings{URL: "/start", Headers: map[string]string{"X-Key": "s3cret"}}})
		h := upstreamtest.Open(t, srv)
		if c.connects {
			h.Await(t, "upstream.connected")
			continue
		}
		if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !strings.Contains(e.Error, "redirected to") || visited.Load() {
			t.Errorf("%s: %+v, visited %v", name, e, visited.Load())
		}
	}
}

func TestChildHasACleanEnvironment(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "environment"))
	srv.Spec.Env["DECLARED"] = "yes"
	srv.Spec.EnvFile = t.TempDir() + "/env"
	if err := os.WriteFile(srv.Spec.EnvFile, []byte("# comment\nexport FROM_FILE=\"also\"\nDECLARED=no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv.Spec.InheritEnv = []string{"GIT_*", "EDITOR"}
	srv.Options.Environ = func() []string { return inheritedSample() }
	h := upstreamtest.Start(t, srv)
	env := h.Echo(t, "")
	for _, want := range []string{
		"DECLARED=yes", "FROM_FILE=also", "HOME=/home/x", "PATH=", "LC_TIME=C", "XDG_CACHE_HOME=/c", "NODE_EXTRA_CA_CERTS=/ca", "no_proxy=a", "HTTPS_PROXY=p",
		"npm_config_registry=r", "NPM_CONFIG_CACHE=n", "UV_INDEX_URL=u", "PIP_INDEX_URL=i", "GIT_AUTHOR_NAME=me", "EDITOR=vi",
	} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	if strings.Contains(env, "s3cret") {
		t.Errorf("a secret leaked: %q", env)
	}
}

func inheritedSample() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "AWS_SECRET=s3cret", "LUANETTE_TOKEN=s3cret", "LC_TIME=C", "XDG_CACHE_HOME=/c", "NODE_EXTRA_CA_CERTS=/ca",
		"no_proxy=a", "HTTPS_PROXY=p", "npm_config_registry=r", "NPM_CONFIG_CACHE=n", "UV_INDEX_URL=u", "PIP_INDEX_URL=i", "GIT_AUTHOR_NAME=me", "EDITOR=vi",
		"home=s3cret", "=C:=s3cret",
	}
}

func TestCleanEnvironmentHasOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "environment"))
	binary := srv.Spec.Command
	dir := filepath.Dir(binary)
	srv.Spec.Command = filepath.Base(binary) // found in our PATH, although the process gets none
	srv.Spec.CleanEnv, srv.Spec.InheritEnv = true, []string{"LC_*"}
	srv.Options.Environ = inheritedSample
	srv.Options.Getenv = func(name string) (string, bool) { return dir, name == "PATH" }
	h := upstreamtest.Start(t, srv)
	if got := h.Echo(t, ""); got != "LC_TIME=C\nPID_DIR="+srv.Spec.Env["PID_DIR"]+"\n"+roleVariable+"=environment" {
		t.Errorf("environment = %q", got)
	}
	srv.Spec.InheritEnv = []string{"GIT_["}
	if err := srv.Spec.Validate(); err == nil || !strings.Contains(err.Error(), "inherit_env") {
		t.Errorf("a pattern that is not one: %v", err)
	}
}

func TestStandardErrorIsPublished(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "dies at once"))
	h := upstreamtest.Open(t, srv)
	if e := h.Await(t, "upstream.stderr").Data.(upstream.Stderr); e.Line != "no licence found" {
		t.Errorf("line = %q", e.Line)
	}
	if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !strings.Contains(e.Error, "exit status 4") || !strings.Contains(e.Error, "no licence found") {
		t.Errorf("event = %+v", e)
	}
	spec := srv.Spec
	spec.Command = "no-such-program-anywhere"
	if err := h.Manager.Add(spec); err != nil {
		t.Fatal(err)
	}
	for {
		e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting)
		if strings.Contains(e.Error, "not found") {
			break
		}
	}
}
