package certificates_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/sandbox/certificates"
)

func verify(t *testing.T, a *certificates.Authority, host string, at time.Time) error {
	t.Helper()
	pair, err := a.Certificate(host, at)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.PEM())
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: at})
	return err
}

// An authority is of no use for other hosts than its own.
func TestConstraints(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		hosts, good, bad []string
	}{
		{[]string{"api.example"}, []string{"api.example"}, []string{"example", "evil.example", "127.0.0.1", "::1", "api.example.evil"}},
		{[]string{"127.0.0.1", "api.example"}, []string{"127.0.0.1", "api.example"}, []string{"127.0.0.2", "evil.example"}},
		{[]string{"fd00::5"}, []string{"fd00::5"}, []string{"fd00::6", "api.example"}},
		{[]string{strings.Repeat("long.", 20) + "example"}, []string{strings.Repeat("long.", 20) + "example"}, []string{"example"}},
	} {
		a, err := certificates.New("files", tt.hosts, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range tt.good {
			if err := verify(t, a, host, now); err != nil {
				t.Errorf("%v: %s: %v", tt.hosts, host, err)
			}
		}
		for _, host := range tt.bad {
			if err := verify(t, a, host, now); err == nil {
				t.Errorf("%v: a certificate for %s is valid", tt.hosts, host)
			}
		}
	}
}

// A host's certificate is renewed before it ends.
func TestRenewal(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a, err := certificates.New("files", []string{"api.example"}, now)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := a.Certificate("api.example", now)
	again, _ := a.Certificate("api.example", now.Add(20*time.Hour))
	later := now.Add(60 * 24 * time.Hour)
	if again != first {
		t.Error("a valid certificate is made anew")
	}
	if err := verify(t, a, "api.example", later); err != nil {
		t.Errorf("after two months: %v", err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	a, err := certificates.New("files", []string{"api.example"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, _ := certificates.New("another", []string{"x.example"}, time.Now())
	folder := t.TempDir()
	further := filepath.Join(folder, "further.pem")
	if err := os.WriteFile(further, other.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := a.Write(filepath.Join(folder, "new"), []string{"", further})
	if err != nil {
		t.Fatal(err)
	}
	alone, _ := os.ReadFile(files.Paths()[0])
	bundle, _ := os.ReadFile(files.Paths()[1])
	if string(alone) != string(a.PEM()) || !strings.Contains(string(bundle), string(other.PEM())) || !strings.Contains(string(bundle), string(a.PEM())) {
		t.Errorf("%s\n%s", alone, bundle)
	}
	if env := files.Env(); !slices.Contains(env, "NODE_EXTRA_CA_CERTS="+files.Paths()[0]) || !slices.Contains(env, "SSL_CERT_FILE="+files.Paths()[1]) {
		t.Error(env)
	}
	files.Remove()
	if left, _ := os.ReadDir(filepath.Join(folder, "new")); len(left) > 0 {
		t.Error(left)
	}
	if _, err := a.Write(folder, []string{further + ".missing"}); err == nil {
		t.Error("a missing file is not reported")
	}
}
