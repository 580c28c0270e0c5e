package client

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// secretConfig has a secret in every place of a configuration that may hold one.
const secretConfig = `
database = "postgres://luanette:pw-database-1@db.example/luanette?sslpassword=pw-query-22"
[chat]
key = "chat-key-333"
callback_token = "${file:token.txt}"
base_url = "https://user:pw-model-44@model.example/v1"
[oauth]
key = "oauth-key-5555"
[bridge]
curve_secret = "curve-bridge-66"
[upstreams.web]
url = "https://web.example/mcp?access=url-query-777"
headers = { X-Team = "plain header 8", Authorization = "Bearer header-bearer-9" }
bearer_env = "WEB_CREDENTIAL"
[upstreams.web.oauth]
client_secret = "oauth-client-10"
[upstreams.child]
command = "child"
args = ["--api-key", "argument-11111", "--password=argument-12222"]
env = { ONE = "child value 13", TWO = "${UNSUSPICIOUS}" }
[upstreams.backend]
url = "zmq+tcp://127.0.0.1:1"
curve = { server = "public", secret = "curve-client-14" }
`

// secretValues are what none of the parts of an archive may contain.
var secretValues = []string{
	"pw-database-1", "pw-query-22", "chat-key-333", "callback-from-file", "pw-model-44", "oauth-key-5555", "curve-bridge-66",
	"url-query-777", "plain header 8", "header-bearer-9", "web-credential-15", "oauth-client-10",
	"argument-11111", "argument-12222", "child value 13", "unsuspicious \"16\" & more", "curve-client-14",
	"ghp_16charactersAndMore123456", "aws/secret+17", "cli-key-18888", "proxy-pw-19",
}

func secretEnvironment() config.Environment {
	return config.Environment{
		"HOME": "/home/ann", "LUANETTE_LOG_LEVEL": "warn", "WEB_CREDENTIAL": "web-credential-15", "UNSUSPICIOUS": "unsuspicious \"16\" & more",
		"GITHUB_TOKEN": "ghp_16charactersAndMore123456", "AWS_SECRET_ACCESS_KEY": "aws/secret+17", "LUANETTE_KEY": "cli-key-18888",
		"HTTPS_PROXY": "http://ann:proxy-pw-19@proxy.example:3128",
	}
}

// indiscreet is a server that repeats all secrets in all forms.
func indiscreet(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/nodes":
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]string{"code": "denied", "message": "not with " + secretValues[0]})
			return
		case "/debug/pprof/heap", "/debug/pprof/mutex", "/debug/pprof/profile":
			_ = pprof.Lookup("heap").WriteTo(w, 0)
			return
		}
		_, _ = io.WriteString(w, "state of "+r.URL.RequestURI()+"\n")
		for _, value := range secretValues {
			quoted, _ := json.Marshal(value)
			_, _ = io.WriteString(w, "say "+value+" or "+string(quoted)+" at https://x.example/"+url.PathEscape(value)+" or ?q="+url.QueryEscape(value)+"\n")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// unpack returns the files of an archive; profiles are unpacked, too.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	packed, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, file := range packed.File {
		reader, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file.Name, ".pprof") {
			profile, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if content, err = io.ReadAll(profile); err != nil {
				t.Fatal(err)
			}
		}
		files[file.Name] = string(content)
	}
	return files
}

func TestSupportArchiveHasNoSecrets(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, secretConfig)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "token.txt"), []byte("callback-from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := secretEnvironment()
	data := t.TempDir()
	loaded, err := config.Load(config.Sources{File: file, Env: env, Flags: map[string]string{"data": data}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "luanette.db"), []byte("stored"), 0o600); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	problems, err := Support{
		Config: loaded, Env: env, Version: "1.2.3", Address: indiscreet(t).URL, CPU: 1,
		Access: Access{Key: secret.New("cli-key-18888")}, Files: map[string]string{"doctor.txt": strings.Join(secretValues, "\n")},
	}.Write(t.Context(), &archive)
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, archive.Bytes())
	for name, content := range files {
		for _, value := range secretValues {
			quoted, _ := json.Marshal(value)
			for _, form := range []string{value, strings.Trim(string(quoted), `"`), url.QueryEscape(value), url.PathEscape(value)} {
				if strings.Contains(content, form) {
					t.Errorf("%s contains %s:\n%s", name, form, content)
				}
			}
		}
	}
	for name, want := range map[string]string{
		"version.json": `"version": "1.2.3"`, "config.toml": "[upstreams.child]", "variables.json": `"LUANETTE_LOG_LEVEL"`, "data.json": `"luanette.db"`,
		"doctor.txt": "[redacted]", "server/health.json": "state of /health", "server/upstreams.json": "state of /api/v1/upstreams",
		"server/events.txt": "state of /api/v1/events?after=all&follow=false", "server/goroutines.txt": "state of /debug/goroutines", "server/config.toml": "state of",
		"server/heap.pprof": "runtime", "server/mutex.pprof": "runtime", "server/cpu.pprof": "runtime", "problems.txt": "server/nodes.json: not with [redacted]",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, files[name])
		}
	}
	if len(problems) != 1 {
		t.Errorf("the problems are %q", problems)
	}
}

// Without a server the archive has the rest, and says so.
func TestSupportArchiveWithoutServer(t *testing.T) {
	t.Parallel()
	loaded, err := config.Load(config.Sources{File: configtest.WriteFile(t, ""), Flags: map[string]string{"data": t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	problems, err := Support{Config: loaded, Version: "1.2.3", Address: "http://" + netguardtest.ReservedAddress()}.Write(t.Context(), &archive)
	files := unpack(t, archive.Bytes())
	if err != nil || len(problems) == 0 || files["problems.txt"] == "" || files["config.toml"] == "" || files["server/health.json"] != "" {
		t.Errorf("problems %q, error %v, files %q", problems, err, files["problems.txt"])
	}
}
