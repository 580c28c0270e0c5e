//go:build linux

package secret_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// TestSecretService reads a secret from a real GNOME keyring on its own bus. The
// keyring's own program stored the secret.
func TestSecretService(t *testing.T) { // it sets the environment
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
	if _, err := secret.FromKeyring("luanette-test", "ann"); fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "${env:NAME}") {
		t.Errorf("without a keyring: %v (%s)", err, fault.HintOf(err))
	}
	startKeyring(t)
	store := exec.CommandContext(t.Context(), "secret-tool", "store", "--label=test", "service", "luanette-test", "username", "ann")
	store.Stdin = strings.NewReader("hunter2 of the keyring")
	if out, err := store.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	finder := secret.Finder{Keyring: secret.FromKeyring, Problem: func(_ string, cause error) error { return cause }}
	found, err := finder.Find("Bearer ${keyring:luanette-test/ann}")
	if err != nil || found.Reveal() != "Bearer hunter2 of the keyring" {
		t.Errorf("found %q, %v", found.Reveal(), err)
	}
	if _, err := finder.Find("${keyring:luanette-test/bob}"); fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "secret-tool store") {
		t.Errorf("a missing secret: %v (%s)", err, fault.HintOf(err))
	}
}

// startKeyring starts a bus and an open keyring on it, with folders of their own.
func startKeyring(t *testing.T) {
	t.Helper()
	for _, program := range []string{"dbus-daemon", "gnome-keyring-daemon", "secret-tool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (apt-get install dbus gnome-keyring libsecret-tools): not tested with a real keyring", program)
		}
	}
	folder, err := os.MkdirTemp("", "keyring-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, folder)
	}
	bus := exec.CommandContext(t.Context(), "dbus-daemon", "--session", "--nofork", "--print-address=1", "--address=unix:path="+filepath.Join(folder, "bus"))
	said, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the keyring ends with its bus
		_ = bus.Process.Kill()
		_ = bus.Wait()
	})
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatalf("the bus did not start: %v", err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", strings.TrimSpace(address))
	keyring := exec.CommandContext(t.Context(), "gnome-keyring-daemon", "--unlock", "--components=secrets", "--daemonize")
	keyring.Stdin = strings.NewReader("the keyring's password")
	if out, err := keyring.CombinedOutput(); err != nil {
		t.Fatalf("gnome-keyring-daemon: %v: %s", err, out)
	}
}
