// Package packagestest serves packages to npm, for tests.
package packagestest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Registry is a registry of npm with the packages of a test.
type Registry struct {
	*httptest.Server

	mu       sync.Mutex
	versions map[string][]map[string]any // descriptions by name, the latest last
	tarballs map[string][]byte           // by path
	asked    int                         // requests so far
	hold     func(path string)           // called before each answer
}

// New starts a registry that ends with the test. It skips the test where npm is missing.
func New(t *testing.T) *Registry {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	r := &Registry{versions: map[string][]map[string]any{}, tarballs: map[string][]byte{}, hold: func(string) {}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.asked++
	hold, tarball := r.hold, r.tarballs[req.URL.Path]
	list := r.versions[strings.TrimPrefix(req.URL.Path, "/")]
	r.mu.Unlock()
	hold(req.URL.Path)
	switch {
	case tarball != nil:
		_, _ = w.Write(tarball)
	case list != nil:
		all := map[string]any{}
		for _, v := range list {
			all[v["version"].(string)] = v
		}
		latest := list[len(list)-1]
		_ = json.NewEncoder(w).Encode(map[string]any{"name": latest["name"], "dist-tags": map[string]any{"latest": latest["version"]}, "versions": all})
	default:
		http.NotFound(w, req)
	}
}

// Publish adds a version of a package with these files.
func (r *Registry) Publish(name, version string, manifest map[string]any, files map[string]string) {
	description := map[string]any{"name": name, "version": version}
	for key, value := range manifest {
		description[key] = value
	}
	text, _ := json.Marshal(description)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	add := func(file, content string) {
		_ = archive.WriteHeader(&tar.Header{Name: "package/" + file, Mode: 0o755, Size: int64(len(content))})
		_, _ = archive.Write([]byte(content))
	}
	add("package.json", string(text))
	for file, content := range files {
		add(file, content)
	}
	_ = archive.Close()
	_ = zip.Close()
	sum := sha512.Sum512(packed.Bytes())
	path := "/" + name + "/-/" + name[strings.LastIndex(name, "/")+1:] + "-" + version + ".tgz"
	description["dist"] = map[string]any{"tarball": r.URL + path, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
	if _, scripts := manifest["scripts"]; scripts {
		description["hasInstallScript"] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions[name], r.tarballs[path] = append(r.versions[name], description), packed.Bytes()
}

// Requests counts the requests so far.
func (r *Registry) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Hold sets what is done before each answer.
func (r *Registry) Hold(do func(path string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold = do
}

// Replace publishes a package as if there had been nothing of it before.
func (r *Registry) Replace(name, version string, manifest map[string]any, files map[string]string) {
	r.mu.Lock()
	delete(r.versions, name)
	r.mu.Unlock()
	r.Publish(name, version, manifest, files)
}

// Env is an environment in which npm uses the registry, with a cache and a home of its own.
func (r *Registry) Env(t *testing.T) []string {
	t.Helper()
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), //nolint:forbidigo // npm is there
		"npm_config_registry=" + r.URL, "npm_config_cache=" + t.TempDir(),
	}
}
