package client

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/config"
)

// Support collects what helps to find the cause of a problem, without secrets.
type Support struct {
	Config  *config.Loaded
	Env     config.Environment
	Version string
	Address string // of the running server; without one, only this process and the files are described
	Access  Access
	CPU     time.Duration     // how long the server's processor time is profiled; zero: not at all
	Files   map[string]string // further texts, by name
}

// maxSupportFile is the largest part of an archive, in bytes.
const maxSupportFile = 32 << 20

// Write writes a ZIP archive. Problems are what could not be collected; the archive lists
// them too.
func (s Support) Write(ctx context.Context, w io.Writer) (problems []string, err error) {
	archive := &supportArchive{zip: zip.NewWriter(w), hide: hiding(append(s.Config.KnownSecrets(s.Env), s.Access.Key.Reveal()))}
	archive.json("version.json", s.version())
	var shown bytes.Buffer
	if err := s.Config.Show(&shown); err != nil {
		archive.problem("config.toml", err)
	}
	archive.text("config.toml", shown.String())
	archive.json("variables.json", s.variables())
	archive.json("data.json", dataFiles(s.Config.Data))
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		archive.text(name, s.Files[name])
	}
	if s.Address != "" {
		s.addServer(ctx, archive)
	}
	archive.text("problems.txt", strings.Join(archive.problems, "\n"))
	if err := archive.zip.Close(); archive.err == nil {
		archive.err = err
	}
	return archive.problems, archive.err
}

// addServer adds what the running server says about itself.
func (s Support) addServer(ctx context.Context, archive *supportArchive) {
	api, err := serverapi.Connect(s.Address, s.Access)
	if err != nil {
		archive.problem("server", err)
		return
	}
	for _, part := range []struct{ name, path string }{
		{"server/health.json", "/health"},
		{"server/upstreams.json", "/api/v1/upstreams"},
		{"server/nodes.json", "/api/v1/nodes"},
		{"server/config.toml", "/api/v1/config"},
		{"server/events.txt", "/api/v1/events?after=all&follow=false"},
		{"server/goroutines.txt", "/debug/goroutines"},
	} {
		if text, err := api.Send(ctx, http.MethodGet, part.path, nil); err != nil {
			archive.problem(part.name, err)
		} else {
			archive.text(part.name, string(text))
		}
	}
	profiles := []struct{ name, path string }{{"server/heap.pprof", "/debug/pprof/heap"}, {"server/mutex.pprof", "/debug/pprof/mutex"}}
	if s.CPU > 0 {
		profiles = append(profiles, struct{ name, path string }{"server/cpu.pprof", fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", math.Ceil(s.CPU.Seconds()))}) // parts of a second would be read as 30 s
	}
	for _, part := range profiles {
		if profile, err := api.Send(ctx, http.MethodGet, part.path, nil); err != nil {
			archive.problem(part.name, err)
		} else {
			archive.add(part.name, profile)
		}
	}
}

// version describes this program and its machine.
func (s Support) version() any {
	info, _ := debug.ReadBuildInfo()
	modules := []string{}
	if info != nil {
		for _, m := range info.Deps {
			modules = append(modules, m.Path+" "+m.Version)
		}
	}
	return map[string]any{
		"version": s.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "processors": runtime.NumCPU(),
		"time": time.Now().UTC().Format(time.RFC3339), "modules": modules,
	}
}

// variables are the names of the variables that change how programs behave.
func (s Support) variables() []string {
	names := []string{}
	for name := range s.Env {
		for _, prefix := range []string{"LUANETTE_", "OTEL_", "GO", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "XDG_", "LANG", "LC_", "TZ"} {
			if strings.HasPrefix(strings.ToUpper(name), prefix) {
				names = append(names, name)
				break
			}
		}
	}
	slices.Sort(names)
	return names
}

// dataFile is a file of the data folder.
type dataFile struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Mode     string    `json:"mode"`
	Modified time.Time `json:"modified"`
}

// dataFiles lists the top level of the data folder, without contents.
func dataFiles(folder string) []dataFile {
	list := []dataFile{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return list // there may be none yet
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			list = append(list, dataFile{filepath.Base(entry.Name()), info.Size(), info.Mode().String(), info.ModTime().UTC()})
		}
	}
	return list
}

// supportArchive writes the files of an archive.
type supportArchive struct {
	zip      *zip.Writer
	hide     func(string) string
	problems []string
	err      error // the first of writing
}

func (a *supportArchive) problem(name string, err error) {
	a.problems = append(a.problems, a.hide(fmt.Sprintf("%s: %v", name, fault.From(err))))
}

func (a *supportArchive) json(name string, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		a.problem(name, err)
		return
	}
	a.text(name, string(text))
}

// text adds a text without secrets.
func (a *supportArchive) text(name, text string) { a.add(name, []byte(a.hide(text))) }

func (a *supportArchive) add(name string, content []byte) {
	if a.err != nil {
		return
	}
	if len(content) > maxSupportFile {
		a.problems = append(a.problems, fmt.Sprintf("%s: only the first %d of %d bytes", name, maxSupportFile, len(content)))
		content = content[:maxSupportFile]
	}
	var file io.Writer
	if file, a.err = a.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now()}); a.err == nil {
		_, a.err = file.Write(content)
	}
}

// hiding returns a function that removes secrets from a text: those that are known, as they
// are and as they are written in JSON and in URLs, and what looks like one.
func hiding(secrets []string) func(string) string {
	var pairs []string
	for _, text := range secrets {
		if text == "" {
			continue
		}
		for _, form := range []string{text, inJSON(text), url.QueryEscape(text), url.PathEscape(text)} {
			pairs = append(pairs, form, redact.Hidden)
		}
	}
	known := strings.NewReplacer(pairs...)
	return func(text string) string {
		lines := strings.SplitAfter(known.Replace(text), "\n")
		for i, line := range lines {
			lines[i] = redact.Text(line)
		}
		return strings.Join(lines, "")
	}
}

func inJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text // strings always encode
	}
	return string(quoted[1 : len(quoted)-1])
}
