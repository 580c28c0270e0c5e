// Package package_test installs what `make release-snapshot` builds, as people do, and runs
// it. `make package-test` runs it; without LUANETTE_TEST_RELEASE, the folder of a release,
// everything is skipped.
package package_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// released returns the only file of the release that matches a pattern.
func released(t *testing.T, pattern string) string {
	t.Helper()
	folder := os.Getenv("LUANETTE_TEST_RELEASE")
	if folder == "" {
		t.Skip("make package-test builds a release and tests it")
	}
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found[0]
}

// run runs a command and returns what it prints.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestDeb installs the Debian package in an empty root, and runs the program there.
func TestDeb(t *testing.T) {
	t.Parallel()
	deb := released(t, "*_"+runtime.GOARCH+".deb")
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is not installed")
	}
	root := t.TempDir()
	for _, folder := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "", nil, "dpkg", "--root="+root, "--force-not-root", "--log="+filepath.Join(root, "log"), "--install", deb)
	program, prefix := filepath.Join(root, "usr/bin/luanette"), []string{}
	if os.Getuid() == 0 { // nothing of this machine is visible there: the binary is enough
		program, prefix = "chroot", []string{root, "/usr/bin/luanette"}
	}
	if got := run(t, "", nil, program, append(prefix, "--version")...); !strings.Contains(got, "0.0.0-snapshot") {
		t.Errorf("version %q", got)
	}
	if got := run(t, "", []string{"HOME=/"}, program, append(prefix, "eval", "--data", "/data", "return 6*7")...); !strings.Contains(got, "42") {
		t.Errorf("eval %q", got)
	}
	for _, unit := range []string{"system", "user"} {
		text, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd", unit, "luanette.service"))
		if err != nil || !strings.Contains(string(text), "ExecStart=/usr/bin/luanette serve") {
			t.Errorf("the %s unit: %s, %v", unit, text, err)
		}
	}
}

// TestNPM installs the npm packages as npx does, and runs the program through the wrapper.
func TestNPM(t *testing.T) {
	t.Parallel()
	cpu := strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	folder := t.TempDir()
	env := []string{"npm_config_offline=true", "LUANETTE_DATA=" + filepath.Join(folder, "data")}
	run(t, folder, env, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
		released(t, "luanette-linux-"+cpu+"-*.tgz"), released(t, "luanette-0*.tgz"))
	if got := run(t, folder, env, "npx", "luanette", "--version"); !strings.Contains(got, "0.0.0-snapshot") {
		t.Errorf("version %q", got)
	}
	cmd := exec.CommandContext(t.Context(), "npx", "luanette", "no-such-command")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() == 0 {
		t.Errorf("an unknown command: %v", err)
	}
	cmd = exec.CommandContext(t.Context(), "npx", "luanette", "stdio")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n")
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), `"serverInfo"`) {
		t.Errorf("stdio: %s, %v", out, err)
	}
}

// TestBundle checks the .mcpb with its own validator, and that its binary can be executed.
func TestBundle(t *testing.T) {
	t.Parallel()
	archive, err := zip.OpenReader(released(t, "*_linux_"+runtime.GOARCH+".mcpb"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	folder := t.TempDir()
	for _, f := range archive.File {
		if f.Name == "server/luanette" && f.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %v", f.Name, f.Mode())
		}
		if f.Name != "manifest.json" {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(r)
		if err := os.WriteFile(filepath.Join(folder, f.Name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, folder, nil, "npx", "-y", "@anthropic-ai/mcpb@2.1.2", "validate", "manifest.json")
}

// TestImage checks that the image runs without rights, and listens for other machines,
// which the program does only with a key.
func TestImage(t *testing.T) {
	t.Parallel()
	files := readTar(t, released(t, "*_linux_"+runtime.GOARCH+".oci.tar"))
	var index struct{ Manifests []struct{ Digest string } }
	var manifest struct{ Config struct{ Digest string } }
	var config struct {
		Config struct {
			User       string
			Entrypoint []string
			Env        []string
		}
	}
	blob := func(digest string) []byte { return files["blobs/"+strings.Replace(digest, ":", "/", 1)] }
	err := json.Unmarshal(files["index.json"], &index)
	if err == nil {
		err = json.Unmarshal(blob(index.Manifests[0].Digest), &manifest)
	}
	if err == nil {
		err = json.Unmarshal(blob(manifest.Config.Digest), &config)
	}
	c := config.Config
	if err != nil || c.User != "65532:65532" || c.Entrypoint[0] != "/usr/bin/luanette" || !strings.Contains(strings.Join(c.Env, " "), "LUANETTE_LISTEN=0.0.0.0:8081") {
		t.Errorf("%+v, %v", config, err)
	}
}

func readTar(t *testing.T, path string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name], _ = io.ReadAll(r)
	}
}

// TestServerJSON checks the rules of the registry that are not in its schema.
func TestServerJSON(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(released(t, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Name, Description, Version string
		Packages                   []struct{ RegistryType, Identifier, Version, FileSha256 string }
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9.-]+/[A-Za-z0-9._-]+$`).MatchString(s.Name) || len(s.Description) > 100 || s.Version == "" {
		t.Errorf("%+v", s)
	}
	for _, p := range s.Packages {
		if p.RegistryType == "mcpb" && len(p.FileSha256) != 64 || p.Version != s.Version {
			t.Errorf("%+v", p)
		}
	}
}

// TestGoInstall installs the program from its module, as `go install …@latest` does, and
// loads the page. The module comes from this checkout, through a proxy in a folder.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	released(t, "server.json")
	const path, version = "github.com/luanette/luanette", "v0.0.1-test"
	root, folder := filepath.Join("..", ".."), t.TempDir()
	proxy := filepath.Join(folder, "proxy", path, "@v")
	if err := os.MkdirAll(proxy, 0o755); err != nil {
		t.Fatal(err)
	}
	sources := filepath.Join(folder, "sources")
	run(t, root, nil, "git", "archive", "--prefix=sources/", "--output="+filepath.Join(folder, "sources.tar"), "HEAD")
	run(t, folder, nil, "tar", "xf", "sources.tar")
	archive, err := os.Create(filepath.Join(proxy, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(modzip.CreateFromDir(archive, module.Version{Path: path, Version: version}, sources), archive.Close()); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err == nil {
		err = os.WriteFile(filepath.Join(proxy, version+".mod"), mod, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(proxy, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(proxy, "list"), []byte(version+"\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	cache := strings.TrimSpace(run(t, "", nil, "go", "env", "GOMODCACHE"))
	env := []string{
		"GOBIN=" + folder, "GOPROXY=file://" + filepath.Join(folder, "proxy") + ",file://" + filepath.Join(cache, "cache", "download"),
		"GONOSUMDB=*", "GOFLAGS=-modcacherw -trimpath", "GOMODCACHE=" + filepath.Join(folder, "modules"), "CGO_ENABLED=0",
	}
	run(t, folder, env, "go", "install", path+"/cmd/luanette@"+version)
	program := filepath.Join(folder, "luanette")
	if got := run(t, folder, nil, program, "--version"); !strings.HasPrefix(got, "luanette ") {
		t.Errorf("version %q", got)
	}
	if body := page(t, program, folder); !strings.Contains(body, "./assets/index.js") {
		t.Errorf("the page: %s", body)
	}
}

// page starts a server and loads its page.
func page(t *testing.T, program, folder string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(folder, "data"))
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var lines []byte
	for address := regexp.MustCompile(`page +(http://\S+)`); ; {
		chunk := make([]byte, 4096)
		n, err := stderr.Read(chunk)
		lines = append(lines, chunk[:n]...)
		if m := address.FindSubmatch(lines); m != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return get(t, string(m[1]))
		}
		if err != nil {
			t.Fatalf("%s\n%v", lines, err)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := new(http.Client).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
