package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/workspace"
)

// TestStories runs the stories of every module: testdata/*.txtar in its folder. Each
// NAME.lua and NAME.js of a story runs in its own environment with the story's
// files/…, as main(params) if there is a NAME.params. Both must have the outcome in
// these sections:
//
//	NAME.json    what it returned
//	NAME.error   kind and message of what it failed with, and the suggestions
//	NAME.output  what it printed and logged
//	NAME.trace   attributes and events of its span, and metrics
//	NAME.files   what is in the folder it may write, and how long each file is
//	NAME.uploads the music it uploaded
//
// The last three are only compared if they exist. $READ, $WRITE, $TEMP, $CONTENTS
// and $HTTP stand for the run's folders and for a web server that allows requests.
// UPDATE=1 rewrites the stories.
func TestStories(t *testing.T) {
	t.Parallel()
	stories, err := filepath.Glob("../module/*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../module/*/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	for _, page := range pages {
		folder := filepath.Dir(page)
		tested := slices.ContainsFunc(stories, func(path string) bool { return strings.HasPrefix(path, folder+"/") })
		if !tested && filepath.Base(folder) != "parallel" { // TestParallel needs tools of its own
			t.Errorf("%s has no story", folder)
		}
	}
	for _, path := range append(stories, "testdata/document.txtar") {
		module := filepath.Base(filepath.Dir(filepath.Dir(path)))
		t.Run(module+"/"+strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runStory(t, path)
		})
	}
}

func runStory(t *testing.T, path string) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: archive.Comment}
	for _, file := range archive.Files {
		language := LanguageOf(file.Name)
		if language == "" || strings.HasPrefix(file.Name, "files/") {
			if strings.HasPrefix(file.Name, "files/") || strings.HasSuffix(file.Name, ".params") {
				got.Files = append(got.Files, file)
			}
			continue
		}
		got.Files = append(got.Files, file)
		name := strings.TrimSuffix(file.Name, filepath.Ext(file.Name))
		t.Run(file.Name, func(t *testing.T) {
			scene := newScene(t, archive)
			outcome := scene.play(t, name, language, string(file.Data))
			if language == JavaScript && scene.has(name+".lua") {
				agree(t, got, outcome)
				return
			}
			got.Files = append(got.Files, outcome...)
		})
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, txtar.Format(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	compare(t, archive, got)
}

// agree reports differences between the outcome of a script in JavaScript and of the
// same script in Lua, which was compared before.
func agree(t *testing.T, lua *txtar.Archive, outcome []txtar.File) {
	t.Helper()
	twin := map[string]string{}
	for _, file := range lua.Files {
		twin[file.Name] = string(file.Data)
	}
	for _, file := range outcome {
		if want := twin[file.Name]; strings.HasSuffix(file.Name, ".trace") {
			continue // it has the source's hash
		} else if want != string(file.Data) {
			t.Errorf("%s\n in JavaScript:\n%s\n in Lua:\n%s", file.Name, file.Data, want)
		}
	}
}

// compare reports the sections that differ.
func compare(t *testing.T, want, got *txtar.Archive) {
	t.Helper()
	expected := map[string]string{}
	for _, file := range want.Files {
		expected[file.Name] = string(file.Data)
	}
	for _, file := range got.Files {
		was, ok := expected[file.Name]
		delete(expected, file.Name)
		if !ok || was != string(file.Data) {
			t.Errorf("%s\n got:\n%s\nwant:\n%s", file.Name, file.Data, was)
		}
	}
	for name, data := range expected {
		t.Errorf("%s is missing:\n%s", name, data)
	}
}

// scene is the environment of one script of a story.
type scene struct {
	archive     *txtar.Archive
	read, write string
	temp        string
	traces      *traces
	music       *hootenanny
	runner      *Runner
	web         string
	contents    string
}

func newScene(t *testing.T, archive *txtar.Archive) *scene {
	t.Helper()
	s := &scene{archive: archive, read: t.TempDir(), write: t.TempDir(), temp: t.TempDir(), traces: newTraces(), contents: t.TempDir()}
	for _, file := range archive.Files {
		if name, ok := strings.CutPrefix(file.Name, "files/"); ok {
			path := filepath.Join(s.read, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, file.Data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.music, s.web = newHootenanny(t, s.read), newWeb(t)
	s.runner = newRunner(t, func(o *Options) {
		o.Tools = fakeTools(s.music)
		o.Contents = newContentStore(t, s.contents, s.read)
		o.Clock = newInstantClock(time.Date(2025, 12, 11, 10, 9, 8, 0, time.UTC))
		o.Events = event.New(event.BusOptions{Clock: o.Clock})
		o.TempDir = s.temp
		o.Files = host.FilesOptions{Read: []string{s.read}, Write: []string{s.write}}
		o.Tracer, o.Meter = s.traces.tracer(), s.traces.meter()
		o.Upstreams = &upstreamManager{}
		o.Results = &resultStore{}
		o.KV = openKV(t)
		jobs := &instantJobs{}
		o.Jobs = func() Jobs { jobs.runner = s.runner; return jobs }
		o.HTTP = webClient(t, s.web)
		o.Commands = workspace.NewPrograms(workspace.CommandOptions{Allow: []string{"sh"}, Dir: s.write})
		o.Getenv = func(name string) (string, bool) { return "/home/ada", name == "HOME" }
	})
	return s
}

// play runs a script and returns the sections of its outcome.
func (s *scene) play(t *testing.T, name, language, source string) []txtar.File {
	t.Helper()
	q := Request{Source: s.into(source), Language: language, Limits: Limits{Time: 2 * time.Minute}}
	if params, ok := s.section(name + ".params"); ok {
		q.Main, q.Params = true, json.RawMessage(s.into(params))
	}
	var progress []string
	q.Caller = watcher(&progress)
	outcome, err := s.runner.Run(t.Context(), q)
	var sections []txtar.File
	add := func(kind, text string) {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		sections = append(sections, txtar.File{Name: name + "." + kind, Data: []byte(s.outOf(text))})
	}
	if err != nil {
		add("error", problem(err))
	} else {
		add("json", pretty(t, outcome.Result))
	}
	if text := said(outcome.Output, progress); text != "" {
		add("output", text)
	}
	if _, ok := s.section(name + ".trace"); ok {
		add("trace", s.traces.text(t))
	}
	if _, ok := s.section(name + ".uploads"); ok {
		add("uploads", s.music.uploads.String())
	}
	if _, ok := s.section(name + ".files"); ok {
		add("files", listing(t, s.write))
	}
	return sections
}

func (s *scene) section(name string) (string, bool) {
	for _, file := range s.archive.Files {
		if file.Name == name {
			return string(file.Data), true
		}
	}
	return "", false
}

func (s *scene) has(name string) bool {
	_, ok := s.section(name)
	return ok
}

// into replaces the placeholders of paths with the scene's paths, outOf the reverse.
func (s *scene) into(text string) string {
	return strings.NewReplacer("$READ", s.read, "$WRITE", s.write, "$HTTP", s.web).Replace(text)
}

func (s *scene) outOf(text string) string {
	own := regexp.MustCompile(regexp.QuoteMeta(s.temp) + `/luanette-\d+`)
	text = strings.NewReplacer(s.read, "$READ", s.write, "$WRITE", s.contents, "$CONTENTS").Replace(own.ReplaceAllString(text, "$$TEMP"))
	if s.web != "" {
		text = strings.ReplaceAll(text, s.web, "$HTTP")
		text = strings.ReplaceAll(text, strings.TrimPrefix(s.web, "http://"), "$HOST")
	}
	return text
}

// pretty formats JSON for people: short values on one line.
func pretty(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	if len(raw) <= 100 {
		return string(raw)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", " "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// problem is the text of an error, without the suggestions that are the same for all.
func problem(err error) string {
	var failure *Error
	if !errors.As(err, &failure) {
		return "not a failure of the script: " + err.Error()
	}
	text := fmt.Sprintf("%s: %s", failure.Kind, failure.Message)
	if failure.Line > 0 {
		text += fmt.Sprintf("\nline %d", failure.Line)
	}
	for _, suggestion := range failure.Suggestions {
		text += "\nhint: " + suggestion
	}
	return text
}

func said(lines []host.OutputLine, progress []string) string {
	var out strings.Builder
	for _, line := range lines {
		stream := line.Stream
		if line.Level != "" {
			stream = line.Level
		}
		fmt.Fprintf(&out, "%s: %s\n", stream, strings.ReplaceAll(line.Text, "\n", "\n  "))
	}
	for _, line := range progress {
		fmt.Fprintf(&out, "progress: %s\n", line)
	}
	return out.String()
}

func listing(t *testing.T, folder string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s %d\n", strings.TrimPrefix(path, folder+"/"), info.Size())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
