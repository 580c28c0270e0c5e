package certpool_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/certpool/certpooltest"
	"github.com/luanette/luanette/internal/base/fault"
)

func TestClient(t *testing.T) {
	t.Parallel()
	file, certificate := certpooltest.New(t)
	other, _ := certpooltest.New(t)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct {
		files []string
		host  string
		hint  string // empty if it works
	}{
		"its authority": {[]string{file}, "127.0.0.1", ""},
		"several":       {[]string{"", other, file}, "127.0.0.1", ""},
		"none":          {nil, "127.0.0.1", "ca_file"},
		"another":       {[]string{other}, "127.0.0.1", "ca_file"},
		"another name":  {[]string{file}, "localhost", "another name"},
	} {
		client, err := certpool.Client(tt.files...)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(strings.Replace(server.URL, "127.0.0.1", tt.host, 1))
		if err == nil {
			response.Body.Close()
		}
		if (err == nil) != (tt.hint == "") || !strings.Contains(certpool.Hint(err), tt.hint) {
			t.Errorf("%s: %v, hint %q", name, err, certpool.Hint(err))
		}
		client.CloseIdleConnections()
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	if pool, err := certpool.Load("", ""); pool != nil || err != nil {
		t.Errorf("no files: %v, %v", pool, err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{empty: "contains no certificate", empty + ".missing": "no such file"} {
		_, err := certpool.Load(file)
		if fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, hint %q", file, err, fault.HintOf(err))
		}
	}
}
